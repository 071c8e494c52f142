"""What to change when a target is missed: levers ranked by how little they change, alone or in pairs.

Works on known facts only. With the model's layers every gain is recomputed to the block; without, capacity is taken
as proportional to the cache's bytes, and where that does not hold the gain is an interval. Where the evidence can be
read in several ways, a gain spans them all. A lever that cannot be computed is a direction: it has no number.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, islice, product, starmap
from math import floor, inf

from kvguard.errors import ConfigError
from kvguard.kvcache.fit import check_fit
from kvguard.kvcache.layers import ModelLayers
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.load import Request
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.pool import blocks_per_request, max_concurrency, pool_blocks
from kvguard.kvcache.spelling import AND
from kvguard.kvcache.uniform import UniformPool
from kvguard.kvcache.workload import serve
from kvguard.slotted import dataclass, replace
from kvguard.units import Interval

UNCHANGED = Interval(1.0, 1.0)
"""The factor of a change that leaves capacity as it is where no layout can be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a deployment, measured or planned. Bytes are of one rank, figures of one engine; None: unknown.

    `concurrency` is at `max_model_len`; `kv_cache_bytes` may be negative where a start found no room. `free_share` is
    the largest utilisation that the card had room for. With `read` (the model's layers under given flags) and
    `options` the arithmetic is exact. Without them `uniform` is the pool as it is if all layers are of one kind, and
    `one_kind_of_layer` says whether they are.
    """

    kv_cache_bytes: Interval | None = None
    fixed: str | None = None
    """What an option sets, whatever memory there is: "blocks" or "bytes"."""
    unfixed_factor: float | None = None
    """How many times the blocks would be there without the option; None where that is not known."""
    concurrency: Interval | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    total_bytes: Interval | None = None
    utilization: float | None = None
    free_share: float | None = None
    weights_bytes: Interval | None = None
    quantized: bool | None = None
    quantized_weights_bytes: Interval | None = None
    graph_bytes: Interval | None = None
    """What the cache has more without CUDA graphs; None also where their memory is not taken off it."""
    graphs_taken_off: bool = False
    """Whether memory of CUDA graphs is taken off the cache, whether or not it is known how much."""
    graph_estimate_gap_bytes: int | None = None
    kv_cache_dtype: str | None = None
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    one_kind_of_layer: bool = False
    uniform: UniformPool | None = None
    read: Callable[[Options], ModelLayers] | None = None
    options: Options | None = None
    workload: Request | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be met: requests of max_model_len in one engine, of the load over all engines, or a rank's bytes."""

    requests: float
    of_workload: bool = False
    of_bytes: bool = False
    """Whether `requests` is bytes of the cache on a rank instead."""
    fixed: tuple[tuple[str, str], ...] = ()
    """Flags whose value is not open, with it: no other is proposed."""


@dataclass(frozen=True, slots=True)
class Lever:
    """One change, or two that go together.

    `gives` is the target's figure after the change, None for a direction; `meets` says whether its low end meets the
    target; `cost` orders levers: the smaller, the less of the service is given up. `price` says it in a few words,
    `remark` what else is to be known of it.
    """

    flag: str
    value: str
    gives: Interval | None
    price: str
    meets: bool
    cost: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One target against a plan: `pass`, `fail` or `unknown`, and what to change, ranked, where it is not met."""

    target: Target
    outcome: str
    levers: tuple[Lever, ...]


def worst(answers: Sequence[Answer]) -> Answer | None:
    """The answer that decides where several targets are asked for; None without any."""
    return max(answers, key=lambda answer: ("pass", "unknown", "fail").index(answer.outcome), default=None)


@dataclass(frozen=True, slots=True)
class Change:
    """A lever before it is weighed: how it turns the facts."""

    flag: str
    value: str
    price: str
    cost: int
    apply: Callable[[Facts], Facts]
    factor: Interval = UNCHANGED
    remark: str = ""
    settings: "tuple[Change, ...]" = ()
    """The same lever at each of its settings, the least first, where it has several."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be met, and what is known: once for each reading of the evidence, the most likely first."""

    readings: tuple[Facts, ...]
    target: Target

    @property
    def facts(self) -> Facts:
        """The most likely reading; flags are the same in all."""
        return self.readings[0]

    def figure(self, apply: Callable[[Facts], Facts], factor: Interval = UNCHANGED) -> Interval | None:
        """The target's figure after a change, over all readings; None where one of them does not tell."""
        found = [self._figure_of(facts, apply, factor) for facts in self.readings]
        known = [figure for figure in found if figure is not None]
        if len(known) < len(found):
            return None
        return Interval(min(figure.low for figure in known), max(figure.high for figure in known))

    def met_by(self, figure: Interval | None) -> bool:
        """Whether the pessimistic end is enough."""
        return figure is not None and figure.low >= self.target.requests - 1e-9

    def met_with(self, apply: Callable[[Facts], Facts], factor: Interval = UNCHANGED) -> bool:
        """Whether a change is enough in every reading."""
        return all(self.met_by(self._figure_of(facts, apply, factor)) for facts in self.readings)

    def _figure_of(self, facts: Facts, apply: Callable[[Facts], Facts], factor: Interval) -> Interval | None:
        after = apply(facts)
        return weigh(after, self.target, _with_bytes(factor, facts.kv_cache_bytes, after.kv_cache_bytes))


def weigh(facts: Facts, target: Target, factor: Interval | None = UNCHANGED) -> Interval | None:
    """The target's figure under these facts; None where they do not say.

    Args:
        facts: what is known.
        target: which figure.
        factor: what a change does to capacity where no layout can be computed; None where that is not known.
    """
    if target.of_bytes:
        return facts.kv_cache_bytes
    if facts.read is not None and facts.options is not None and facts.kv_cache_bytes is not None:
        return _weigh_exactly(facts, target)
    if facts.concurrency is None or facts.max_model_len is None or factor is None:
        return None
    at_length = Interval(facts.concurrency.low * factor.low, facts.concurrency.high * factor.high)
    return _weigh_workload_by_log(facts, at_length, factor) if target.of_workload else at_length


def _weigh_exactly(facts: Facts, target: Target) -> Interval | None:
    layout = layout_of(facts)
    if layout is None or facts.kv_cache_bytes is None:
        return None
    if target.of_workload and _refused(layout, facts.kv_cache_bytes.high):
        return Interval.exact(0.0)  # no load is served by a server that does not start
    ends = [_figure(layout, facts, target, end) for end in (facts.kv_cache_bytes.low, facts.kv_cache_bytes.high)]
    return Interval(*ends)


def _figure(layout: Layout, facts: Facts, target: Target, kv_cache_bytes: float) -> float:
    blocks, _ = pool_blocks(layout, [int(kv_cache_bytes)] * len(layout.stages))
    if target.of_workload and facts.workload is not None:
        service = serve(layout, blocks, facts.workload)
        if service.limited_by == "max_model_len":
            return 0.0
        held = min(service.concurrency, layout.serving.max_num_seqs)
        return _over_engines(held, facts.data_parallel_size)
    figure, length = max_concurrency(layout, blocks) or 0.0, layout.serving.max_model_len
    if not _refused(layout, kv_cache_bytes):
        return figure
    return min(figure, max(0, blocks - 1) / blocks_per_request(layout, length))  # the start itself would be refused


def _refused(layout: Layout, kv_cache_bytes: float) -> bool:
    return check_fit(layout, [max(0, int(kv_cache_bytes))] * len(layout.stages), None) is not None


def refused(facts: Facts) -> bool:
    """Whether a start of these facts may be refused for its memory; not where the model is not known."""
    layout = layout_of(facts)
    return layout is not None and facts.kv_cache_bytes is not None and _refused(layout, facts.kv_cache_bytes.low)


def layout_of(facts: Facts) -> Layout | None:
    """The layout of these facts; None where the model is not known, or vLLM refuses the combination."""
    return None if facts.read is None or facts.options is None else _layout(facts.read, facts.options)


@lru_cache(maxsize=512)
def _layout(read: Callable[[Options], ModelLayers], options: Options) -> Layout | None:
    """One search asks for the same layouts again and again."""
    try:
        model = read(options)
        serving, _ = resolve(options, model)
        return lay_out(model, serving)
    except ConfigError:
        return None


def _over_engines(held: float, engines: int) -> float:
    """Requests that several engines serve: each as many whole ones as the smallest, for a router balances by number."""
    return held if engines == 1 or held == inf else floor(held + 1e-9) * engines


def _weigh_workload_by_log(facts: Facts, at_length: Interval, factor: Interval) -> Interval | None:
    """Without the layers: a request costs at most one of max_model_len.

    With one kind of layer it costs its blocks. Of several kinds a short one may cost less than its share of the
    length: start-up counts tokens in flight for each sliding group, which no decoding request holds.
    """
    load = facts.workload
    if load is None or facts.max_model_len is None or not load.request_tokens:
        return None
    if facts.uniform is None:
        scale = facts.max_model_len / load.request_tokens
        growing = Interval(at_length.low * scale, at_length.high * scale if facts.one_kind_of_layer else inf)
    else:
        pool = facts.uniform.scaled(factor)
        growing = pool.holds(pool.request(load))
    fixed = growing if facts.one_kind_of_layer else at_length
    most = facts.max_num_seqs or inf
    low, high = min(growing.low, fixed.low, most), min(max(growing.high, fixed.high), most)
    return Interval(_over_engines(low, facts.data_parallel_size), _over_engines(high, facts.data_parallel_size))


def rank_levers(question: Question, changes: Sequence[Change]) -> tuple[Lever, ...]:
    """The levers for a target, cheapest first: those that meet it alone, then pairs if none does, then the rest.

    Args:
        question: what is to be met, and what is known.
        changes: the candidates, from `changes.py`.

    Pairs are looked for where no single lever does it without giving up length or adding cards.
    """
    singles = [_lever(question, change) for change in changes]
    alone = [lever for lever in singles if lever.meets]
    rest = sorted((lever for lever in singles if not lever.meets), key=_shortfall)
    met = sorted((*alone, *_pairs_needed(question, changes, alone)), key=lambda lever: lever.cost)
    return (*met, *rest)


DIRECTION = 100
"""From this cost on a change is a direction: it has no number and joins no pair."""
REQUEST_LENGTH, SHARED_PREFIX = "tokens a request", "tokens that all prompts share"
"""Stand for a flag where the load itself is what changes."""


def direction(flag: str, value: str, price: str, remark: str = "") -> Change:
    """A change of which the facts do not say how much it gives."""
    return Change(flag, value, price, DIRECTION, lambda facts: facts, remark=remark)


_PAIRS_SHOWN = 3
_GIVES_UP_LENGTH = ("--max-model-len", REQUEST_LENGTH, SHARED_PREFIX)
_MORE_CARDS = ("--tensor-parallel-size", "--data-parallel-size")


def _pairs_needed(question: Question, changes: Sequence[Change], alone: Sequence[Lever]) -> list[Lever]:
    """Two changes together, where one meets the target only at the price of length or of more cards."""
    if any(lever.flag not in (*_GIVES_UP_LENGTH, *_MORE_CARDS) for lever in alone):
        return []
    joined = [change for change in changes if change.cost < DIRECTION and change.flag not in _GIVES_UP_LENGTH]
    same_cards = _pairs(question, [change for change in joined if change.flag not in _MORE_CARDS])
    if same_cards or any(lever.flag in _MORE_CARDS for lever in alone):
        return same_cards
    return _pairs(question, joined)


def _pairs(question: Question, changes: Sequence[Change]) -> list[Lever]:
    pairs = [(one, other) for one, other in combinations(changes, 2) if one.flag != other.flag]
    found: list[Lever] = []
    for one, other in sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost):
        if len(found) == _PAIRS_SHOWN:
            break
        settings = product(*((*change.settings, change) for change in (one, other)))
        met = (pair for pair in starmap(_joined, settings) if question.met_with(pair.apply, pair.factor))
        found += [_lever(question, pair) for pair in islice(met, 1)]
    return found


def _joined(first: Change, second: Change) -> Change:
    return Change(
        flag=f"{first.flag}{AND}{second.flag}",
        value=f"{first.value}{AND}{second.value}",
        price=f"{first.price}; {second.price}",
        cost=first.cost + second.cost,
        apply=lambda known: second.apply(first.apply(known)),
        factor=Interval(first.factor.low * second.factor.low, first.factor.high * second.factor.high),
        remark="; ".join(remark for remark in (first.remark, second.remark) if remark),
    )


def _lever(question: Question, change: Change) -> Lever:
    gives = None if change.cost >= DIRECTION else question.figure(change.apply, change.factor)
    meets = question.met_by(gives)
    return Lever(change.flag, change.value, gives, change.price, meets, change.cost, change.remark)


def _with_bytes(factor: Interval, before: Interval | None, after: Interval | None) -> Interval | None:
    """The factor of a change that also gave the cache more bytes; None where it had none that they could multiply."""
    if before is None or after is None or before == after:
        return factor
    if before.low <= 0:
        return None
    ends = factor.low * after.low / before.low, factor.high * after.high / before.high
    return Interval(min(ends), max(ends))


def _shortfall(lever: Lever) -> tuple[int, float]:
    return (1, lever.cost) if lever.gives is None else (0, -lever.gives.low)


def with_options(facts: Facts, **flags: object) -> Facts:
    """The same facts under other flags, where the flags are known."""
    return facts if facts.options is None else replace(facts, options=replace(facts.options, **flags))  # type: ignore[arg-type]
