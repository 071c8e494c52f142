"""The tables of figures on a terminal page: capacity, engines, starts, times; each is empty where there is none."""

from kvguard.render.key_figures import KeyFigure, key_figure
from kvguard.render.layout import INDENT, Cell, Terminal, Tone, columns, wrap
from kvguard.render.log_text import shown
from kvguard.render.probe_budget import probe_budget_line
from kvguard.render.quantities import show, show_bare
from kvguard.render.start_facts import FAILURE_WORDS, PHASE_WORDS, place_of, timing_line
from kvguard.startup.report import Capacity, CapacityReport, Start

WIDEST_CELL = 32
"""Columns of one cell of a table: a name that vLLM prints has less."""


_FIGURES = (
    ("maximum concurrency", "max_concurrency", "requests"),
    ("KV cache size", "kv_cache_tokens", "tokens"),
    ("KV cache memory", "kv_cache_bytes", "bytes"),
    ("GPU blocks", "gpu_blocks", "blocks"),
    ("weights", "weights_bytes", "bytes"),
)


def capacity_section(start: Start, report: CapacityReport, terminal: Terminal) -> list[str]:
    """What the weakest engine holds, with the line of each figure and what follows from them."""
    weakest = start.capacity.weakest
    cells = [_figure_row(name, key_figure(start, fact), unit, report) for name, fact, unit in _FIGURES]
    if start.memory.cuda_graphs is not None:
        graphs = KeyFigure(start.memory.cuda_graphs, start.lines.get("memory.cuda_graphs"))
        cells.append(_figure_row("CUDA graphs", graphs, "bytes", report))
    derived = [
        line
        for fact, figure in weakest.derived.items()
        for line in wrap(f"{_follows(fact, figure.value)}: {figure.how}", terminal.width, INDENT)
    ]
    several = len(start.engines) > 1 and weakest.engine is not None
    title = f"Capacity of engine {weakest.engine}, the weakest of {len(start.engines)}" if several else "Capacity"
    return [terminal.paint(title, Tone.STRONG), *columns(cells, terminal, INDENT), *derived]


def engines_section(start: Start, terminal: Terminal) -> list[str]:
    """Each engine's figures and their sums, where there are several engines."""
    if len(start.engines) < 2:
        return []
    header = ["engine", "concurrency", "tokens", "blocks", "KV cache"]
    rows = [[Cell(title, Tone.QUIET, right=bool(i)) for i, title in enumerate(header)]]
    for engine in start.engines:
        figures = _engine_figures(engine)
        weakest = engine.engine == start.capacity.weakest.engine
        name = f"{engine.engine or '?'}{' (weakest)' if weakest else ''}"
        rows.append([Cell(name), *(Cell(text, right=True) for text in figures)])
    total = start.capacity
    together = Capacity(max_concurrency=total.total_max_concurrency, kv_cache_tokens=total.total_kv_cache_tokens)
    rows.append(
        [
            Cell("together", Tone.QUIET),
            *(Cell(text, Tone.QUIET, right=True) for text in _engine_figures(together)[:2]),
        ]
    )
    return [terminal.paint("Engines", Tone.STRONG), *columns(rows, terminal, INDENT)]


def _figure_row(name: str, figure: KeyFigure, unit: str, report: CapacityReport) -> list[Cell]:
    if figure.value is None:
        return [Cell(name), Cell(figure.missing, Tone.QUIET)]
    whence = "computed" if figure.how else ", ".join(filter(None, [place_of(figure.place, report), figure.whence]))
    return [Cell(name), Cell(show(figure.value, unit), Tone.STRONG), Cell(whence, Tone.QUIET)]


def _follows(fact: str, value: float) -> str:
    name, unit = next(((name, unit) for name, known, unit in _FIGURES if known == fact), ("block size", "tokens"))
    return f"{name} {show(value, unit)} follows"


def _engine_figures(engine: Capacity) -> list[str]:
    figures = (
        (engine.max_concurrency, "requests"),
        (engine.kv_cache_tokens, "tokens"),
        (engine.gpu_blocks, "blocks"),
        (engine.kv_cache_bytes, "bytes"),
    )
    return ["–" if value is None else show_bare(value, unit) for value, unit in figures]


def starts_section(report: CapacityReport, terminal: Terminal) -> list[str]:
    """The starts that a log holds, where it holds several; one each of several nodes is no history."""
    if all(start.index == 1 for start in report.history):
        return []
    rows = [
        [
            Cell(f"{start.index}", right=True),
            Cell(f"lines {start.first_line} to {start.last_line}", Tone.QUIET),
            Cell(f"vLLM {shown(start.vllm_version, WIDEST_CELL)}" if start.vllm_version else ""),
            Cell(f"failed: {FAILURE_WORDS[start.failure_kind]}" if start.failure_kind else PHASE_WORDS[start.phase]),
            Cell("" if start.max_concurrency is None else show(start.max_concurrency, "requests")),
        ]
        for start in report.history
    ]
    return [terminal.paint("Starts", Tone.STRONG), *columns(rows, terminal, INDENT)]


def probes_section(start: Start, terminal: Terminal) -> list[str]:
    """How long the start took, by part, and the startupProbe that lets such a start through."""
    line = probe_budget_line(start.timings)
    timing = timing_line(start.timings)
    if line is None and timing is None:
        return []
    texts = [text for text in (timing, line) if text is not None]
    return [terminal.paint("Time", Tone.STRONG), *(row for text in texts for row in wrap(text, terminal.width, INDENT))]
