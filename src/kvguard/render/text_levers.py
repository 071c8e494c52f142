"""What would help, on a terminal page: the cheapest ways as a small table, or every way with all there is to know."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kvguard.kvcache.spelling import AND
from kvguard.render.layout import INDENT, NO_BREAK, Terminal, Tone, wrap
from kvguard.render.lever_words import enough_words
from kvguard.render.log_text import shown
from kvguard.slo.verdict import Lever, Verdict

_MARKS: Mapping[bool | None, tuple[str, Tone]] = MappingProxyType(
    {True: ("✔", Tone.GOOD), False: ("✘", Tone.BAD), None: ("?", Tone.DOUBT)}
)
"""Whether a change is enough alone; `?` where the evidence cannot say."""
_NARROWEST = 24
"""Columns that a price needs beside a figure; with less it stands below."""
_LONGEST_FLAG, _LONGEST_FIGURE = 60, 32


def levers_section(verdict: Verdict, terminal: Terminal) -> list[str]:
    """The verdict's own levers, or with all details those of every check."""
    every = tuple(dict.fromkeys((*verdict.levers, *(lever for check in verdict.checks for lever in check.levers))))
    levers = every if terminal.verbose else verdict.levers
    if not levers:
        return []
    more = f"all {len(every)} ways with --verbose" if len(every) > len(levers) else ""
    lines = wrap(title_of(levers, _unit(levers), more), terminal.width)
    rows = _in_full(levers, terminal) if terminal.verbose else lever_table(levers, terminal, _unit(levers))
    return [*(terminal.paint(line, Tone.STRONG) for line in lines), *rows, *_assumed(levers, terminal)]


def title_of(levers: Sequence[Lever], *beside: str) -> str:
    """What stands over a list of levers: whether any is enough, and by what they are ranked.

    Args:
        levers: the changes, ranked.
        beside: what else is to be said, where not empty.
    """
    enough = [lever for lever in levers if lever.enough]
    told = {lever.enough for lever in levers}
    if not enough:
        found = "What would help; nothing that can be computed is surely enough"
    elif all(len(lever.flags) > 1 for lever in enough):
        found = "What would help: no single change is enough, two together are"
    elif told == {True}:
        found = "What would help, the cheapest first"
    else:
        found = f"What would help: {'; '.join(words for outcome, words in _RANKS.items() if outcome in told)}"
    more = "; ".join(text.replace(" ", NO_BREAK) for text in beside if text)
    return f"{found} ({more})" if more else found


_RANKS: Mapping[bool | None, str] = MappingProxyType(
    {True: "✔ enough, the cheapest first", False: "✘ not enough, the nearest first", None: "? not known"}
)


def _unit(levers: Sequence[Lever]) -> str:
    """What the figures count: that of the levers which leave a request as long as it was, if there are any."""
    counted = [lever for lever in levers if lever.unit not in ("", "bytes", "ratio")]
    same_length = [lever for lever in counted if " of " in lever.unit and lever.flag != "--max-model-len"]
    return next((lever.unit for lever in (*same_length, *counted)), "")


def lever_table(levers: Sequence[Lever], terminal: Terminal, unit: str) -> list[str]:
    """A line a lever: the change as it is typed, what it gives, its price.

    Args:
        levers: the changes, ranked.
        terminal: what it is drawn for.
        unit: what the head says that the figures count.
    """
    typed = [shown(lever.spelt.replace(AND, " "), _LONGEST_FLAG) for lever in levers]
    figures = [shown(_figure(lever, unit), _LONGEST_FIGURE) for lever in levers]
    first, second = max(map(len, typed)), max(map(len, figures))
    margin = 2 * len(INDENT) + first + 2 + second + 2
    beside = terminal.width - margin >= _NARROWEST
    lines = []
    for lever, flag, figure in zip(levers, typed, figures, strict=True):
        mark, tone = _MARKS[lever.enough]
        begin = f"{INDENT}{terminal.paint(mark, tone)} {terminal.paint(flag, Tone.ACCENT)}"
        begin += " " * (first - len(flag) + 2) + figure
        price = wrap(shown(lever.price), terminal.width, " " * (margin if beside else 3 * len(INDENT)))
        painted = [terminal.paint(line.strip(), Tone.QUIET) for line in price]
        if beside:
            below = [" " * margin + line for line in painted[1:]]
            lines += [begin + " " * (second - len(figure) + 2) + painted[0], *below]
        else:
            lines += [begin, *(" " * (3 * len(INDENT)) + line for line in painted)]
    return lines


def _figure(lever: Lever, unit: str) -> str:
    """What a lever gives, with the length of its requests where that is another than the title's."""
    if lever.figure is None:
        return lever.gives
    length = lever.unit.removeprefix("requests ").partition(", ")[0]
    return f"{lever.figure} {length}" if lever.unit != unit and length.startswith("of ") else lever.figure


def _in_full(levers: Sequence[Lever], terminal: Terminal) -> Iterable[str]:
    for lever in levers:
        mark, tone = _MARKS[lever.enough]
        yield f"{INDENT}{terminal.paint(mark, tone)} {terminal.paint(shown(lever.spelt, _LONGEST_FLAG), Tone.ACCENT)}"
        alone = "" if lever.gives.startswith("nothing") else enough_words(lever)
        gives = "; ".join(text for text in (lever.gives, alone) if text)
        yield from wrap(f"{shown(gives)}.", terminal.width, INDENT * 3)
        price = "; ".join(text for text in (lever.price, lever.remark) if text)
        for line in wrap(f"Price: {shown(price)}.", terminal.width, INDENT * 3):
            yield terminal.paint(line, Tone.QUIET)


def _assumed(levers: Iterable[Lever], terminal: Terminal) -> list[str]:
    taken = list(dict.fromkeys(what for lever in levers for what in lever.assumes))
    if not taken:
        return []
    text = f"Taken to be 16-bit now, which the log does not say: {' and '.join(taken)}."
    return [terminal.paint(line, Tone.QUIET) for line in wrap(text, terminal.width, INDENT)]
