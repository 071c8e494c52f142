"""The table of formats and the matrix of what it was tested with, for a terminal, a page of the docs, or a program."""

from collections.abc import Iterator, Sequence
from typing import Any

from kvguard.lines import formats
from kvguard.lines.line_format import LineFormat
from kvguard.lines.tested import TESTED_RUNS
from kvguard.render.layout import Cell, Terminal, Tone, columns, cut
from kvguard.startup.versions import NEWEST_TESTED, release
from kvguard.version import __version__

SIGNALS: tuple[tuple[str, tuple[LineFormat, ...]], ...] = (
    ("weights", formats.weights.ROWS),
    ("KV cache memory", formats.kv_memory.ROWS),
    ("KV cache tokens and concurrency", formats.kv_tokens.ROWS),
    ("blocks", formats.kv_blocks.ROWS),
    ("memory profile and times", formats.profiling.ROWS),
    ("configuration", formats.config.ROWS),
    ("course of a start", formats.lifecycle.ROWS),
    ("failures by memory or configuration", formats.failures.ROWS),
    ("memory that ran out", formats.out_of_memory.ROWS),
    ("processes that give up", formats.crashes.ROWS),
    ("statistics", formats.stats.ROWS),
    ("lines that only sound like it", formats.decoys.ROWS),
)
"""Every row by its signal, as the files of the table have them."""
CORE = "vllm"
CORE_PLATFORMS = ("cpu", "xpu", "rocm", "hpu", "tpu", "openvino")
"""Platforms inside vLLM's own repository, which share its release numbers; all else is a plugin with its own."""


def render_table(terminal: Terminal) -> str:
    """The rows for a person, one a line."""
    lines: list[str] = []
    room = max(terminal.width - 44, 30)
    for signal, rows in SIGNALS:
        cells = [
            [Cell(row.name), Cell(row.scope, Tone.QUIET), Cell(cut(", ".join(row.versions), room))] for row in rows
        ]
        lines += [*([""] if lines else []), terminal.paint(signal, Tone.STRONG), *columns(cells, terminal, "  ")]
    count = sum(len(rows) for _, rows in SIGNALS)
    return terminal.finish(
        [*lines, "", f"{count} formats; vLLM {_dotted(NEWEST_TESTED)} is the newest release tested."]
    )


def render_versions(terminal: Terminal) -> str:
    """The matrix for a person."""
    matrix = version_matrix()
    head = ["release", *(name for name in (CORE, *CORE_PLATFORMS)), "whole logs"]
    rows = [[Cell(title, Tone.QUIET, right=bool(index)) for index, title in enumerate(head)]]
    rows += [[Cell(text, right=bool(index)) for index, text in enumerate(row)] for row in matrix]
    plugins = [[Cell("plugin", Tone.QUIET), Cell("releases", Tone.QUIET), Cell("formats", Tone.QUIET, right=True)]]
    plugins += [[Cell(name), Cell(span), Cell(str(count), right=True)] for name, span, count in plugin_spans()]
    title = terminal.paint("Formats by release and platform", Tone.STRONG)
    return terminal.finish([title, *columns(rows, terminal, "  "), "", *columns(plugins, terminal, "  ")])


def render_page() -> str:
    """`docs/formats.md`: every row, and the matrix; written by `kvguard formats --format markdown`."""
    parts = [_PAGE_HEAD]
    for signal, rows in SIGNALS:
        lines = [f"| `{row.name}` | {_tells(row)} | {row.scope} | {'; '.join(row.versions)} |" for row in rows]
        parts.append("\n".join([f"## {signal[0].upper()}{signal[1:]}", "", *_TABLE_HEAD, *lines]))
    head = ["| release |", *(f" {name} |" for name in (CORE, *CORE_PLATFORMS)), " whole logs |"]
    matrix = ["".join(head), f"|---|{'--:|' * (len(CORE_PLATFORMS) + 2)}"]
    matrix += [f"| {' | '.join(row)} |" for row in version_matrix()]
    plugins = ["| plugin | its releases | formats |", "|---|---|--:|"]
    plugins += [f"| {name} | {span} | {count} |" for name, span, count in plugin_spans()]
    parts.append("\n".join(["## Tested with", "", _MATRIX_TEXT, "", *matrix, "", *plugins]))
    return "\n\n".join(parts) + "\n"


def table_document() -> dict[str, Any]:
    """The rows for a program."""
    rows = [
        {
            "name": row.name,
            "signal": signal,
            "tells": [kind.__name__ for kind in row.emits],
            "scope": row.scope,
            "versions": list(row.versions),
            "upstream": row.upstream,
        }
        for signal, found in SIGNALS
        for row in found
    ]
    runs = [{"release": version, "platform": platform, "logs": count} for version, platform, count in TESTED_RUNS]
    head = {"kind": "formats", "schema_version": 1, "kvguard_version": __version__}
    return {**head, "newest_tested": _dotted(NEWEST_TESTED), "formats": rows, "whole_logs": runs}


def version_matrix() -> list[list[str]]:
    """A row for each minor release, the newest first: formats a platform beyond the core's own, and whole logs."""
    ranges = [(platform, _ends(span)) for platform, span in _origins() if span]
    table = []
    for minor in range(NEWEST_TESTED[1], 0, -1):
        here = [platform for platform, (low, high) in ranges if low[:2] <= (0, minor) <= high[:2]]
        runs = sum(count for version, _, count in TESTED_RUNS if _release(version)[:2] == (0, minor))
        counts = [here.count(platform) for platform in (CORE, *CORE_PLATFORMS)]
        table.append([f"0.{minor}", *(str(count) if count else "" for count in counts), str(runs) if runs else ""])
    return table


def plugin_spans() -> list[tuple[str, str, int]]:
    """Each plugin outside vLLM's repository: its releases from the first to the last seen, and its formats."""
    found: dict[str, list[str]] = {}
    for platform, span in _origins():
        if platform != CORE and platform not in CORE_PLATFORMS:
            found.setdefault(platform, []).append(span)
    return [(name, _widest(spans), len(spans)) for name, spans in sorted(found.items())]


_PAGE_HEAD = """# The formats

Every wording that kvguard knows: one row, one line of a log. Written by `kvguard formats --format markdown`; a test
compares this page with the table. How to add a row stands in `CONTRIBUTING.md`.

*Scope* says whom a figure speaks of: a rank (one process of an engine), an engine (a data-parallel replica), or the
process that prints it. Releases are vLLM's; those of another platform or of a plugin carry its name. A row that tells
*nothing* is there because the line looks like capacity and is none."""
_TABLE_HEAD = ["| format | tells | scope | printed by |", "|---|---|---|---|"]
_MATRIX_TEXT = """Formats that a release of vLLM may print, the core's own and those that only a platform adds, and how
many whole logs of real servers of that release stand in the corpus (all of CPU builds). Every format has a sample."""


def _origins() -> Iterator[tuple[str, str]]:
    """Platform and releases of each range in the table: "0.8.0-0.27.1", "cpu 0.20.0-0.33.0", or "neuron" alone."""
    for _, rows in SIGNALS:
        for text in (text for row in rows for text in row.versions):
            platform, _, span = (CORE, "", text) if text[0].isdigit() else text.partition(" ")
            yield platform, span


def _tells(row: LineFormat) -> str:
    return ", ".join(kind.__name__ for kind in row.emits) or "nothing"


def _ends(span: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    low, _, high = span.partition("-")
    return _release(low), _release(high or low)


def _release(text: str) -> tuple[int, ...]:
    found = release(text)
    assert found is not None, f"{text!r} in the table names no release"
    return found


def _widest(spans: Sequence[str]) -> str:
    ends = [(span.partition("-")[0], span.partition("-")[2] or span) for span in spans if span]
    if not ends:
        return ""
    low = min((low for low, _ in ends), key=_release)
    high = max((high for _, high in ends), key=_release)
    return low if low == high else f"{low} to {high}"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
