"""What to change when a target is missed: levers ranked by how little they change, alone or in pairs.

Works on known facts only. With the model's layers every gain is recomputed to the block; without, capacity is taken
as proportional to the cache's bytes, and where that does not hold the gain is an interval. A lever that cannot be
computed from the facts is a direction: it has no number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import floor

from kvguard.errors import ConfigError
from kvguard.kvcache.fit import check_fit
from kvguard.kvcache.layers import ModelLayers
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.pool import blocks_per_request, max_concurrency, pool_blocks
from kvguard.kvcache.workload import Workload, serve
from kvguard.units import Interval

UNCHANGED = Interval(1.0, 1.0)
"""The factor of a change that leaves capacity as it is where no layout can be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a deployment, measured or planned. Bytes are of one rank, figures of one engine; None: unknown.

    `concurrency` is at `max_model_len`; `kv_cache_bytes` may be negative where a start found no room. `free_share` is
    the largest utilisation that the card had room for. With `read` (the model's layers under given flags) and
    `options` the arithmetic is exact.
    """

    kv_cache_bytes: Interval | None = None
    concurrency: Interval | None = None
    max_model_len: int | None = None
    total_bytes: Interval | None = None
    utilization: float | None = None
    free_share: float | None = None
    weights_bytes: Interval | None = None
    quantized: bool | None = None
    quantized_weights_bytes: Interval | None = None
    activation_peak_bytes: Interval | None = None
    graph_bytes: Interval | None = None
    graph_estimate_gap_bytes: int | None = None
    kv_cache_dtype: str | None = None
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    one_kind_of_layer: bool = False
    read: Callable[[Options], ModelLayers] | None = None
    options: Options | None = None
    workload: Workload | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be met: requests of max_model_len in one engine, or requests of the workload over all engines."""

    requests: float
    of_workload: bool = False


@dataclass(frozen=True, slots=True)
class Lever:
    """One change, or two that go together.

    `gives` is the target's figure after the change, None for a direction; `meets` says whether both ends meet the
    target; `cost` orders levers: the smaller, the less of the service is given up.
    """

    flag: str
    value: str
    gives: Interval | None
    price: str
    meets: bool
    cost: int


@dataclass(frozen=True, slots=True)
class Change:
    """A lever before it is weighed: how it turns the facts."""

    flag: str
    value: str
    price: str
    cost: int
    apply: Callable[[Facts], Facts]
    factor: Interval = UNCHANGED


def weigh(facts: Facts, target: Target, factor: Interval = UNCHANGED) -> Interval | None:
    """The target's figure under these facts; None where they do not say.

    Args:
        facts: what is known.
        target: which figure.
        factor: what a change does to capacity where no layout can be computed.
    """
    if facts.read is not None and facts.options is not None and facts.kv_cache_bytes is not None:
        return _weigh_exactly(facts, target)
    if facts.concurrency is None or facts.max_model_len is None:
        return None
    at_length = Interval(facts.concurrency.low * factor.low, facts.concurrency.high * factor.high)
    if not target.of_workload:
        return at_length
    return _weigh_workload_by_tokens(facts, at_length)


def _weigh_exactly(facts: Facts, target: Target) -> Interval | None:
    layout = layout_of(facts)
    if layout is None or facts.kv_cache_bytes is None:
        return None
    ends = [_figure(layout, facts, target, end) for end in (facts.kv_cache_bytes.low, facts.kv_cache_bytes.high)]
    return Interval(*ends)


def _figure(layout: Layout, facts: Facts, target: Target, kv_cache_bytes: float) -> float:
    blocks, _ = pool_blocks(layout, [max(0, int(kv_cache_bytes))] * len(layout.stages))
    if target.of_workload and facts.workload is not None:
        service = serve(layout, blocks, facts.workload)
        held = min(service.concurrency, layout.serving.max_num_seqs)
        return held if service.limited_by == "request_exceeds_pool" else held * facts.data_parallel_size
    figure, length = max_concurrency(layout, blocks) or 0.0, layout.serving.max_model_len
    if check_fit(layout, [max(0, int(kv_cache_bytes))] * len(layout.stages), None) is None:
        return figure
    return min(figure, (blocks - 1) / blocks_per_request(layout, length))  # the start itself would be refused


def layout_of(facts: Facts) -> Layout | None:
    """The layout of these facts; None where the model is not known, or vLLM refuses the combination."""
    if facts.read is None or facts.options is None:
        return None
    try:
        model = facts.read(facts.options)
        serving, _ = resolve(facts.options, model)
        return lay_out(model, serving)
    except ConfigError:
        return None


def _weigh_workload_by_tokens(facts: Facts, at_length: Interval) -> Interval | None:
    """Without the layers: a request costs between one max_model_len request and its share of one."""
    if facts.workload is None or facts.max_model_len is None or not facts.workload.request_tokens:
        return None
    scale = facts.max_model_len / facts.workload.request_tokens
    low = at_length.low * (scale if facts.one_kind_of_layer or scale < 1 else 1.0)
    engines = facts.data_parallel_size
    return Interval(low * engines, at_length.high * max(scale, 1.0 if scale < 1 else scale) * engines)


def rank_levers(facts: Facts, target: Target, changes: Sequence[Change]) -> tuple[Lever, ...]:
    """The levers for a target, cheapest first: those that meet it alone, then pairs if none does, then the rest.

    Args:
        facts: what is known.
        target: what is to be met.
        changes: the candidates, from `changes.py`.

    Pairs are looked for where no single lever does it without giving up length or adding cards.
    """
    singles = [_lever(facts, target, change) for change in changes]
    alone = [lever for lever in singles if lever.meets]
    rest = sorted((lever for lever in singles if not lever.meets), key=_shortfall)
    met = sorted((*alone, *_pairs_needed(facts, target, changes, alone)), key=lambda lever: lever.cost)
    return (*met, *rest)


DIRECTION = 100
"""From this cost on a change is a direction: it has no number and joins no pair."""

_PAIRS_SHOWN = 3
_GIVES_UP_LENGTH = ("--max-model-len", "fewer tokens a request")
_MORE_CARDS = ("--tensor-parallel-size", "--data-parallel-size")


def _pairs_needed(facts: Facts, target: Target, changes: Sequence[Change], alone: Sequence[Lever]) -> list[Lever]:
    """Two changes together, where one meets the target only at the price of length or of more cards."""
    if any(lever.flag not in (*_GIVES_UP_LENGTH, *_MORE_CARDS) for lever in alone):
        return []
    joined = [change for change in changes if change.cost < DIRECTION and change.flag not in _GIVES_UP_LENGTH]
    same_cards = _pairs(facts, target, [change for change in joined if change.flag not in _MORE_CARDS])
    if same_cards or any(lever.flag in _MORE_CARDS for lever in alone):
        return same_cards
    return _pairs(facts, target, joined)


def _pairs(facts: Facts, target: Target, changes: Sequence[Change]) -> list[Lever]:
    found = []
    for first, second in combinations(changes, 2):
        if first.flag == second.flag:
            continue
        joined = Change(
            flag=f"{first.flag} + {second.flag}",
            value=f"{first.value} + {second.value}",
            price=f"{first.price}; {second.price}",
            cost=first.cost + second.cost,
            apply=lambda known, first=first, second=second: second.apply(first.apply(known)),  # type: ignore[misc]
            factor=Interval(first.factor.low * second.factor.low, first.factor.high * second.factor.high),
        )
        lever = _lever(facts, target, joined)
        if lever.meets:
            found.append(lever)
    return sorted(found, key=lambda lever: lever.cost)[:_PAIRS_SHOWN]


def _lever(facts: Facts, target: Target, change: Change) -> Lever:
    if change.cost >= DIRECTION:
        return Lever(change.flag, change.value, None, change.price, False, change.cost)
    before = facts.kv_cache_bytes
    after = change.apply(facts)
    gives = weigh(after, target, _with_bytes(change.factor, before, after.kv_cache_bytes))
    meets = gives is not None and (floor(gives.low + 1e-9) if target.of_workload else gives.low) >= target.requests
    return Lever(change.flag, change.value, gives, change.price, meets, change.cost)


def _with_bytes(factor: Interval, before: Interval | None, after: Interval | None) -> Interval:
    """The factor of a change that also gave the cache more bytes."""
    if before is None or after is None or before.low <= 0 or before == after:
        return factor
    return Interval(factor.low * after.low / before.low, factor.high * after.high / before.high)


def _shortfall(lever: Lever) -> tuple[int, float]:
    return (1, lever.cost) if lever.gives is None else (0, -lever.gives.low)


def with_options(facts: Facts, **flags: object) -> Facts:
    """The same facts under other flags, where the flags are known."""
    return facts if facts.options is None else replace(facts, options=replace(facts.options, **flags))  # type: ignore[arg-type]
