"""Where one rank's GPU memory went: the parts that the log names, in the order in which vLLM takes them."""

from enum import StrEnum

from kvguard.slotted import dataclass
from kvguard.startup.graphs import activation_alone, graphs_counted
from kvguard.startup.report import Memory, Start
from kvguard.units import GIB, format_bytes

NOISE_BYTES = 0.05 * GIB
"""Sums of figures with two decimals are off by this much at most: five of them, each by half of its last place."""


GRAPHS_OUTSIDE = "CUDA graphs outside"
"""The part that CUDA graphs take of what lies outside the budget."""


class PartKind(StrEnum):
    """What a part means to the reader."""

    TAKEN = "taken"
    KV_CACHE = "kv_cache"
    UNNAMED = "unnamed"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of the bar; `size` in bytes of one rank, negative where the KV cache lacks that much."""

    name: str
    kind: PartKind
    size: float


def memory_parts(start: Start) -> tuple[Part, ...]:
    """The parts of the tightest rank's memory that add up to the whole GPU, or to what the log names of it.

    The engine's own figures stand in where the memory profile has none. Empty unless the KV cache and at least one
    other part are known: a bar of one part says nothing.
    """
    memory, weakest = start.memory, start.capacity.weakest
    kv_cache = memory.kv_cache if memory.kv_cache is not None else weakest.kv_cache_bytes
    weights = memory.weights if memory.weights is not None else weakest.weights_bytes
    if kv_cache is None:
        return ()
    graphs = memory.cuda_graphs_estimated if graphs_counted(start) else None
    taken = [Part(name, PartKind.TAKEN, size) for name, size in _taken(start, weights, graphs) if size is not None]
    inside = sum(part.size for part in taken) + kv_cache
    budget = [*taken, *_unnamed(memory, inside), Part("KV cache", PartKind.KV_CACHE, kv_cache)]
    outside = _outside(memory, graphs_beside(start) or 0)
    return tuple(budget + outside) if len(budget) + len(outside) > 1 else ()


def graphs_beside(start: Start) -> int | None:
    """Bytes that capturing CUDA graphs took beside the budget; `None` where they are in it, or nothing tells."""
    taken = start.memory.cuda_graphs
    return taken if taken is not None and taken > 0 and graphs_counted(start) is False else None


def graphs_note(start: Start) -> str | None:
    """What capturing CUDA graphs took, beside what was set aside for them; a figure below zero is noise, and none."""
    taken, estimated = start.memory.cuda_graphs, start.memory.cuda_graphs_estimated
    if taken is None or taken < 0:
        return None
    if graphs_beside(start):
        return f"CUDA graphs took {format_bytes(taken)} more, outside the budget, when they were captured."
    if estimated is None or not graphs_counted(start):
        return f"CUDA graphs took {format_bytes(taken)} when they were captured."
    return f"CUDA graphs took {format_bytes(taken)}; {format_bytes(estimated)} had been set aside for them."


def _taken(start: Start, weights: int | None, graphs: int | None) -> list[tuple[str, int | None]]:
    memory = start.memory
    if memory.consumed is not None and (weights is None or memory.non_torch is None):
        named: list[tuple[str, int | None]] = [("weights and non-torch", memory.consumed)]
    else:
        named = [("weights", weights), ("non-torch", memory.non_torch)]
    return [*named, ("activation peak", activation_alone(start)), ("CUDA graphs", graphs)]


def memory_budget(memory: Memory) -> float | None:
    """What vLLM may take of the GPU: as printed, or its share of the whole; `None` where the log does not say."""
    if memory.usable is not None or memory.total_gpu is None or memory.utilization is None:
        return memory.usable
    return memory.total_gpu * memory.utilization


def _unnamed(memory: Memory, inside: float) -> list[Part]:
    """What the budget (the whole GPU, where no budget is known) holds beyond the parts that the log names."""
    budget = memory_budget(memory)
    whole = memory.total_gpu if budget is None else budget
    if whole is None or whole - inside <= NOISE_BYTES:
        return []
    return [Part("not itemised", PartKind.UNNAMED, whole - inside)]


def _outside(memory: Memory, graphs: int) -> list[Part]:
    """What `gpu_memory_utilization` leaves: room for others, and for CUDA graphs where vLLM did not plan for them."""
    budget = memory_budget(memory)
    if memory.total_gpu is None or budget is None or memory.total_gpu <= budget:
        return []
    whole = memory.total_gpu - budget
    if not 0 < graphs <= whole:
        return [Part("outside the budget", PartKind.OUTSIDE, whole)]
    parts = (Part(GRAPHS_OUTSIDE, PartKind.OUTSIDE, graphs), Part("left outside", PartKind.OUTSIDE, whole - graphs))
    return [part for part in parts if part.size > 0]
