"""The memory parts drawn to scale: one bar, cut into a line a part, each beginning where the one before it ends."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kvguard.render.layout import NO_BREAK, Cell, Terminal, Tone, columns, wrap
from kvguard.render.memory_parts import (
    GRAPHS_OUTSIDE,
    Part,
    PartKind,
    graphs_beside,
    graphs_note,
    memory_budget,
    memory_parts,
)
from kvguard.render.quantities import show_size
from kvguard.startup.report import Start
from kvguard.units import format_bytes

_GLYPHS: Mapping[PartKind, tuple[str, Tone]] = MappingProxyType(
    {
        PartKind.TAKEN: ("█", Tone.PLAIN),
        PartKind.KV_CACHE: ("█", Tone.ACCENT),
        PartKind.UNNAMED: ("▒", Tone.QUIET),
        PartKind.OUTSIDE: ("░", Tone.QUIET),
    }
)
_GRAPHS_GLYPH = "▓"
_SLIVER = "▏"
"""Stands for a part that is there and too small for a column of its own."""
SHORTEST, LONGEST = 12, 64
"""Columns of the bar: below, it shows nothing; above, it only gets long."""


def memory_bar(start: Start, terminal: Terminal, indent: str) -> list[str]:
    """The lines of the drawing, its title first; nothing where the log names too little."""
    parts = memory_parts(start)
    if not parts:
        return []
    labels = [(part.name, show_size(part.size)) for part in parts]
    room = (
        terminal.width - len(indent) - max(len(name) for name, _ in labels) - max(len(size) for _, size in labels) - 4
    )
    bars = staircase([part.size for part in parts], max(SHORTEST, min(room, LONGEST)))
    rows = []
    for part, (name, size), (blank, length) in zip(parts, labels, bars, strict=True):
        glyph, tone = _glyph(part)
        drawn = glyph * length if length else (_SLIVER if part.size > 0 else "")
        bold = Tone.STRONG if part.kind is PartKind.KV_CACHE else Tone.PLAIN
        rows.append([Cell(name, bold), Cell(size, bold, right=True), Cell(" " * blank + drawn, tone)])
    title = [terminal.paint(line, Tone.STRONG) for line in wrap(_title(start), terminal.width)]
    note = graphs_note(start)
    below = wrap(note, terminal.width, indent) if note else []
    return [*title, *columns(rows, terminal, indent), *(terminal.paint(line, Tone.QUIET) for line in below)]


def _glyph(part: Part) -> tuple[str, Tone]:
    glyph, tone = _GLYPHS[part.kind]
    return (_GRAPHS_GLYPH if part.name == GRAPHS_OUTSIDE else glyph), tone


def memory_line(start: Start, terminal: Terminal, indent: str) -> list[str]:
    """The same as an equation: what vLLM may take, and what of it each part took."""
    parts = [part for part in memory_parts(start) if part.kind is not PartKind.OUTSIDE]
    if not parts:
        return []
    taken = ", ".join(f"{part.name} {_in_gib(part.size)}".replace(" ", NO_BREAK) for part in parts)
    memory, budget = start.memory, memory_budget(start.memory)
    utilization = memory.utilization if memory.utilization is not None else start.gpu_memory_utilization
    whole = "GPU memory in GiB"
    if memory.total_gpu is not None and budget is not None and utilization is not None:
        whole = f"{whole}, {_in_gib(memory.total_gpu)} × {utilization:g} = {_in_gib(budget)}"
    beside = graphs_beside(start)
    graphs = "" if beside is None else f"; outside it CUDA graphs {_in_gib(beside)}".replace(" ", NO_BREAK)
    return [terminal.paint(line, Tone.QUIET) for line in wrap(f"{whole}: {taken}{graphs}", terminal.width, indent)]


def _in_gib(size: float) -> str:
    """The size without its unit; one that would read as zero keeps it."""
    return show_size(size).removesuffix(" GiB")


def staircase(sizes: Sequence[float], width: int) -> list[tuple[int, int]]:
    """Each part's first column and its length; the edges are rounded, so that the lengths add up to the width."""
    whole = sum(size for size in sizes if size > 0)
    bars, edge = [], 0.0
    for size in sizes:
        first = round(edge / whole * width) if whole else 0
        edge += max(size, 0)
        bars.append((first, (round(edge / whole * width) if whole else 0) - first))
    return bars


def _title(start: Start) -> str:
    memory = start.memory
    many = (start.tensor_parallel_size or 1) * (start.pipeline_parallel_size or 1) > 1 or len(start.engines) > 1
    title = "GPU memory of the tightest rank" if many else "GPU memory"
    if memory.total_gpu is None:
        return f"{title}, as far as the log names it"
    utilization = memory.utilization if memory.utilization is not None else start.gpu_memory_utilization
    budget = memory_budget(memory)
    if utilization is None or budget is None:
        return f"{title}: {format_bytes(memory.total_gpu)}"
    share = f"{format_bytes(budget)} for vLLM (utilization {utilization:g})"
    return f"{title}: {format_bytes(memory.total_gpu)}, of which {share}"
