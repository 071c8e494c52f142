"""A log explained: the lines that told something, by which row, and what of it stands in the report."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from kvguard.lines.secrets import mask_deep
from kvguard.render.layout import Terminal, Tone, wrap
from kvguard.render.log_text import shown
from kvguard.render.start_facts import origin_line
from kvguard.trace import Step, Trace
from kvguard.units import format_quantity
from kvguard.version import __version__

REPEATS = 3
"""Lines of one format in a row that are shown one by one; a server that runs for weeks repeats its statistics."""
NAMELESS = "?"
_UNITS = ("bytes", "tokens", "seconds", "blocks")


def render_explanation(trace: Trace, terminal: Terminal) -> str:
    """The explanation for a person: a line of the log is a line here."""
    reported = _reported(trace)
    number = max((len(str(step.line)) for step in trace.steps), default=1)
    name = max((len(step.format or NAMELESS) for step in trace.steps), default=1)
    lines: list[str] = []
    for _, group in groupby(trace.steps, key=lambda step: step.format):
        steps = list(group)
        alike = len(steps) - REPEATS if steps[0].format is not None and len(steps) > REPEATS + 1 else 0
        for step in steps[: len(steps) - alike]:
            lines += _lines(step, reported, (number, name), terminal)
        if alike:
            more = f"{'':>{number}}  … {alike:,} more of it, to line {steps[-1].line}"
            lines.append(terminal.paint(more, Tone.QUIET))
    return terminal.finish([*lines, *([""] if lines else []), *_summary(trace)])


def explanation_document(trace: Trace) -> dict[str, Any]:
    """The same for a program."""
    reported = _reported(trace)
    steps = [
        {
            "line": step.line,
            "format": step.format,
            "facts": dict(step.facts),
            "reported": list(reported.get(step.line, ())) if step.format else [],
            "text": step.text,
        }
        for step in trace.steps
    ]
    document = {
        "kind": "explanation",
        "schema_version": 1,
        "kvguard_version": __version__,
        "sources": list(trace.report.sources),
        "steps": steps,
        "left_out": trace.left_out,
    }
    return {key: mask_deep(value) for key, value in document.items()}


def _reported(trace: Trace) -> Mapping[int, Sequence[str]]:
    """The facts of the report by the line that they stand in."""
    found: dict[int, list[str]] = {}
    for fact, place in trace.report.start.lines.items() if trace.report.start else ():
        found.setdefault(place.line, []).append(fact)
    return found


def _lines(step: Step, reported: Mapping[int, Sequence[str]], widths: tuple[int, int], terminal: Terminal) -> list[str]:
    number, name = widths
    margin = " " * (number + name + 4)
    if step.format is None:
        doubt = f"looks like capacity, and no format matches it: {shown(step.text or '')}"
        told, kept = wrap(doubt, terminal.width, margin), []
    else:
        facts = ", ".join(_fact(key, value) for key, value in mask_deep(step.facts).items())
        told = wrap(facts, terminal.width, margin) or [margin]
        kept = wrap(f"→ {', '.join(reported[step.line])}", terminal.width, margin) if step.line in reported else []
    tone = Tone.DOUBT if step.format is None else Tone.STRONG
    head = f"{step.line:>{number}}  {terminal.paint(f'{step.format or NAMELESS:<{name}}', tone)}  "
    return [head + told[0][len(margin) :], *told[1:], *(terminal.paint(line, Tone.ACCENT) for line in kept)]


def _fact(key: str, value: object) -> str:
    unit = next((unit for unit in _UNITS if key.endswith(unit)), "")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{key} {shown(_plain(value))}"
    if not unit and isinstance(value, int):
        return f"{key} {value}"  # a rank, a pid, a port: no quantity
    return f"{key} {format_quantity(value, unit).removesuffix(f' {unit}')}"


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={item}" for key, item in value.items()) + "}"
    return str(value)


def _kept(trace: Trace) -> str:
    return "; behind → what of it the report holds" if _reported(trace) else ""


def _summary(trace: Trace) -> list[str]:
    counts = trace.report.counts
    unknown = [step for step in trace.steps if step.format is None]
    lines = [
        f"{counts.matched:,} of {format_quantity(counts.lines, 'lines')} told something{_kept(trace)}.",
        f"{origin_line(trace.report)}.",
    ]
    if trace.left_out:
        lines.append(f"{trace.left_out:,} more are not shown.")
    if unknown:
        count = format_quantity(counts.unrecognized, "lines")
        lines.append(
            f"{count} may tell a capacity in a wording that no format knows (?): add a row with --formats FILE."
        )
    return lines
