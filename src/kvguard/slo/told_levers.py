"""Levers in words: what the search for them answers, as a verdict tells it, and which of them a page has room for."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isinf
from types import MappingProxyType

from kvguard.kvcache import changes
from kvguard.kvcache import levers as arithmetic
from kvguard.kvcache.levers import Facts, Target
from kvguard.kvcache.spelling import AND
from kvguard.slo.lever_facts import assumed_by
from kvguard.slo.verdict import Lever
from kvguard.slotted import replace
from kvguard.startup.report import Start
from kvguard.units import Interval, format_quantity

LENGTH, SEQUENCES = "--max-model-len", "--max-num-seqs"
NOTHING = "nothing: no more requests fit, only the printed concurrency rises"
NOT_TOLD = "how much, the log does not tell"
_MOST = 10
"""Levers that a check lists: those that meet the target, and the nearest of the others."""
_PAGE, _PAGE_SOLVED = 4, 2
"""Levers of the verdict itself: of a miss, of one that some meet."""
_ONLY_BYTES = (
    "--gpu-memory-utilization",
    "--quantization",
    "--enforce-eager",
    "--tensor-parallel-size",
    "--max-num-batched-tokens",
    SEQUENCES,
    "--kv-cache-memory-bytes",
)


# a log that goes on asks the same again and again
@lru_cache(maxsize=64)
def suggested(readings: tuple[Facts, ...], target: Target) -> tuple[arithmetic.Lever, ...]:
    """What would meet the target in every reading of the log, ranked."""
    return changes.suggest(readings[0], target, readings[1:])


def of_bytes(readings: tuple[Facts, ...], wanted: float) -> list[arithmetic.Lever]:
    """Levers that leave the cache of a rank more memory."""
    found = suggested(readings, Target(wanted, of_bytes=True))
    return [lever for lever in found if all(flag in _ONLY_BYTES for flag in lever.flag.split(AND))]


def of_length(lever: arithmetic.Lever, length: int | None) -> str:
    """Requests of the context length that the lever leaves."""
    left = int(lever.value) if lever.flag == LENGTH and lever.value.isdigit() else length
    return "requests" if left is None else requests_of(left)


def requests_of(tokens: int) -> str:
    """Requests of that length, as the unit of a lever."""
    return f"requests of {format_quantity(tokens, 'tokens')}"


def told(
    start: Start,
    found: Sequence[arithmetic.Lever],
    wanted: float,
    unit_of: Callable[[arithmetic.Lever], str],
    in_unit: Callable[[Interval], Interval] = lambda figure: figure,
) -> tuple[Lever, ...]:
    """The levers in words.

    Args:
        start: what the log is silent on.
        found: the levers, in requests.
        wanted: the target, in requests.
        unit_of: the unit in which a lever is told.
        in_unit: its figure in that unit.
    """
    ways = []
    for lever in found[:_MOST]:
        way = Lever(
            flag=lever.flag,
            value=lever.value or None,
            gives=NOT_TOLD,
            price=lever.price,
            unit=unit_of(lever),
            remark=lever.remark or None,
            assumes=assumed_by(lever.flag.split(AND), start),
        )
        counted = lever.gives and weighed(way, in_unit(lever.gives), lever.meets, lever.gives.high < wanted)
        ways.append(counted or replace(way, unit=""))
    return tuple(ways)


def weighed(way: Lever, figure: Interval, met: bool, missed: bool) -> Lever:
    """The lever with its figure, and whether it is enough: open where the figure's ends disagree."""
    high = None if isinf(figure.high) else figure.high
    counted = replace(way, low=figure.low, high=high, enough=True if met else (False if missed else None))
    unit = _AFTER_A_FIGURE.get(way.unit, way.unit)
    unit = unit.replace("requests", "request", 1) if counted.figure == "1" else unit
    return replace(counted, gives=f"{counted.figure} {unit}".strip())


_AFTER_A_FIGURE: Mapping[str, str] = MappingProxyType({"bytes": "", "ratio": "of the pool"})
"""Units that a figure carries itself."""


def shortlist(levers: Sequence[Lever], room: int | None = None) -> tuple[Lever, ...]:
    """What a page has room for: one of each flag, the cheapest that are enough, the nearest others, what is useless."""
    best = {lever.flag: lever for lever in reversed(levers)}
    singled = [lever for lever in levers if best[lever.flag] is lever]
    enough = [lever for lever in singled if lever.enough]
    useless = [lever for lever in singled if lever.gives == NOTHING]
    others = [lever for lever in singled if not lever.enough and lever.gives != NOTHING]
    computed = [lever for lever in others if lever.low is not None]
    left = room or (_PAGE_SOLVED if enough else _PAGE)
    return (*_cheapest(enough, left), *(computed or others)[: max(left - len(enough), 0)], *useless)


def _cheapest(enough: Sequence[Lever], most: int) -> list[Lever]:
    """The cheapest that are enough, the best of each kind (one change, two together) among them."""
    kinds = {len(lever.flags): lever for lever in reversed(enough)}
    chosen = [*kinds.values(), *(lever for lever in enough if lever not in kinds.values())][:most]
    return [lever for lever in enough if lever in chosen]
