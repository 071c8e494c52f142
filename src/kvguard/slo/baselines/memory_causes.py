"""Causes in memory: starts that failed for it, and where the cache's bytes went."""

from kvguard.kvcache import releases
from kvguard.slo.baselines.budget import NOISE, BudgetChange, Part
from kvguard.slo.baselines.evidence import Evidence, arrow, factor, signed_bytes
from kvguard.startup.report import FailureKind
from kvguard.units import GIB, format_bytes, format_count

_SAME_CARD = 0.01
"""Drivers and reserved memory make two cards of one model differ by less than this share."""
NOTABLE_GRAPHS = GIB
"""Gap between the CUDA graphs' estimate and what they took from which it is worth a sentence."""


def refused(evidence: Evidence) -> str | None:
    failure = evidence.pair.new.failure
    if failure is None or evidence.pair.old.failure is not None:
        return None
    if failure.kind is not FailureKind.KV_CACHE_TOO_SMALL or failure.needed_bytes is None:
        return f"the new start failed: {_FAILED.get(failure.kind, failure.message)}"
    length = failure.requested_max_model_len or evidence.pair.new.max_model_len
    request = "one request" if length is None else f"one request of {format_count(length)} tokens"
    needed = f"the new start failed: {request} needs {format_bytes(failure.needed_bytes)} of KV cache"
    there = "" if failure.available_bytes is None else f", {format_bytes(failure.available_bytes)} are there"
    since = ""
    same_length = evidence.pair.same("max_model_len") and evidence.pair.new.layers != "uniform"
    if evidence.pair.crossed(releases.IN_FLIGHT_TOKENS) and same_length:
        since = "; since 0.26.0 sliding-window layers reserve for two batches in flight, where it was one"
    return needed + there + since


_FAILED = {
    FailureKind.NO_KV_MEMORY: "nothing is left for the KV cache",
    FailureKind.OOM: "the device ran out of memory after the KV cache had been sized",
    FailureKind.FREE_MEMORY_BELOW_UTILIZATION: "less device memory was free than gpu_memory_utilization asks for",
    FailureKind.KV_CACHE_TOO_SMALL: "the KV cache is too small for the context",
}


def recovered(evidence: Evidence) -> str | None:
    failed, length = evidence.pair.old.failure, evidence.pair.options("max_model_len")
    if failed is None or evidence.pair.new.failure is not None:
        return None
    if None not in length and length[0] != length[1]:
        return f"the old start failed and the new one did not, at max_model_len {arrow(*length)}"
    return "the old start failed, the new one did not"


def cache_moved(evidence: Evidence) -> str | None:
    """The cache's change as the sum of its parts, and what no part explains of it."""
    budget = evidence.budget
    change = budget.cache.change
    if change is None or abs(change) <= NOISE:
        return None
    told = [f"{part.label} {signed_bytes(part.change or 0.0)}" for part in _by_weight(budget)]
    left = budget.unexplained
    if left is not None and abs(left) > NOISE:
        if not told and _profile_change(evidence) is not None:
            return None  # told as what it is
        if _captured_graphs(evidence) is not None:
            told.append(f"captured graphs {signed_bytes(-left)}")
        else:
            told.append(f"unexplained {signed_bytes(left)}{_one_sided(budget)}")
    return f"KV cache {signed_bytes(change)}{_share(budget.cache)}: {', '.join(told)}"


def _by_weight(budget: BudgetChange) -> list[Part]:
    """Parts that moved, the heaviest first."""
    moved = [part for part in budget.parts if abs(part.effect or 0.0) > NOISE]
    return sorted(moved, key=lambda part: -abs(part.effect or 0.0))


def _share(cache: Part) -> str:
    if not cache.old or cache.new is None or cache.old < 0 or cache.new < 0:
        return ""
    return f" ({factor(cache.new / cache.old)})"


def _one_sided(budget: BudgetChange) -> str:
    """Parts that one log alone tells: what is unexplained may lie in them."""
    notes = []
    for when, value in (("before", "new"), ("now", "old")):
        sides = [(part, getattr(part, value)) for part in budget.parts if part.change is None and part.name != "usable"]
        named = ", ".join(f"{part.label} {format_bytes(count)}" for part, count in sides if count)
        if named:
            notes.append(f"not told {when}: {named}")
    return f" ({'; '.join(notes)})" if notes else ""


def card(evidence: Evidence) -> str | None:
    """Another device under the same deployment."""
    old, new = (side.memory.get("total_gpu") for side in (evidence.pair.old, evidence.pair.new))
    if old is None or new is None or abs(new.low - old.low) <= old.low * _SAME_CARD:
        return None
    return f"another card: {format_bytes(old.low)} → {format_bytes(new.low)} of device memory"


def graphs_counted(evidence: Evidence) -> str | None:
    """A loss of just the graphs' memory: they are taken off the cache now, and came on top before."""
    graphs = _captured_graphs(evidence)
    if graphs is None:
        return None
    size = format_bytes(graphs)
    return (
        f"the loss is the memory of the captured graphs ({size}): it comes off the KV cache now, and was on top before"
    )


def _captured_graphs(evidence: Evidence) -> float | None:
    """Bytes of the graphs that the new start captured, where just as much is missing and no estimate stands for it."""
    graphs, left = evidence.pair.new.memory.get("cuda_graphs"), evidence.budget.unexplained
    if graphs is None or left is None or "cuda_graphs_estimated" in evidence.pair.new.memory or left > -NOISE:
        return None
    return graphs.low if abs(left + graphs.low) <= max(NOISE, graphs.low / 10) else None


def graphs_taken_off(evidence: Evidence) -> str | None:
    graphs = evidence.pair.new.memory.get("cuda_graphs_estimated")
    if not evidence.pair.crossed(releases.GRAPHS_TAKEN_OFF) or graphs is None:
        return None
    text = f"since 0.20.0 the CUDA graphs' estimate ({format_bytes(graphs.low)}) is taken off the KV cache"
    keeps = _keeps_its_size(evidence, graphs.low)
    return text if keeps is None else f"{text}: --gpu-memory-utilization {keeps:.4f} keeps its size"


def _keeps_its_size(evidence: Evidence, graphs: float) -> float | None:
    """The utilisation that gives the graphs' memory back: as vLLM prints it, else by the card's size."""
    memory, share = evidence.pair.new.memory, evidence.pair.new.options.get("gpu_memory_utilization")
    told, total = memory.get("suggested_utilization"), memory.get("total_gpu")
    if told is not None:
        return told.low
    return None if total is None or not isinstance(share, int | float) else share + graphs / total.low


def graphs_wasted(evidence: Evidence) -> str | None:
    memory = evidence.pair.new.memory
    estimated, taken = memory.get("cuda_graphs_estimated"), memory.get("cuda_graphs")
    if estimated is None or taken is None or estimated.low - taken.low < NOTABLE_GRAPHS:
        return None
    gap = format_bytes(estimated.low - taken.low)
    return (
        f"CUDA graphs were estimated {format_bytes(estimated.low)} and took {format_bytes(taken.low)}: "
        f"{gap} of KV cache is never used"
    )


def profile_depends(evidence: Evidence) -> str | None:
    """A pool that changes with the length or the batch, by what the profile run itself needs."""
    moved = _profile_change(evidence)
    if moved is None:
        return None
    name = _profiled_option(evidence) or ""
    old, new = evidence.pair.options(name)
    return (
        f"{moved} with {name} {arrow(old, new)}: the profile run depends on it, so that a pool holds only for the "
        "length and batch that it was measured with"
    )


def _profiled_option(evidence: Evidence) -> str | None:
    return next((name for name in ("max_model_len", "max_num_batched_tokens") if not evidence.pair.same(name)), None)


def _profile_change(evidence: Evidence) -> str | None:
    """What moved with an option of the profile run, where no other part explains most of it."""
    change, explained = evidence.budget.cache.change, evidence.budget.explained
    if _profiled_option(evidence) is None:
        return None
    if change is None:
        blocks = evidence.moved("gpu_blocks") if evidence.pair.same("block_size") else None
        return None if blocks is None else f"blocks {factor(blocks)}"
    if abs(change) <= NOISE or (explained is not None and abs(change - explained) < abs(change) / 2):
        return None
    return f"KV cache {signed_bytes(change)}"
