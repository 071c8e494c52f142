"""One row of the format table: how a message is found, what it tells, and where upstream prints it.

A row is pure data. The named groups of its pattern are event fields with the printed unit as suffix; the suffix picks
the conversion, so that `weights_gib` fills `weights_bytes`. Patterns are matched whole (`fullmatch`) and written with
possessive quantifiers: a row needs no anchors and cannot backtrack (`row_rules` holds every row to that).
"""

import functools
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from kvguard.events import Event, FailureReported, Origin, Printed, Trust
from kvguard.lines.patterns import compiled, could_become
from kvguard.slotted import dataclass, field, fields, replace

COUNT = r"\d{1,15}+"
"""A count; bounded, because a hostile line may hold more digits than a number can."""
INTEGER = r"\d{1,15}+(?:,\d{3}){0,5}+"
"""A count, with or without thousands separators."""
NUMBER = r"-?+\d{1,15}+(?:\.\d{1,20}+)?+"
"""A figure with an optional fraction; may be negative."""
PAIR = rf"\({NUMBER}, {NUMBER}\)"
"""Memory of a TPU chip: in use, limit."""
SCALED = r"\d{1,15}+(?:\.\d{1,20}+)?+ (?:[KMGT]i)?+B"
"""A size in whichever binary unit fits, as the Gaudi workers print it."""

SIZED = r"\d{1,15}+(?:\.\d{1,9}+)?+ (?:[KMGT]iB|bytes)"
"""The same as PyTorch's allocator prints it, each with its own decimals."""

_RAISED = r"[A-Za-z_][\w.]*+(?<=Error): "


def up_to(word: str) -> str:
    """Any text up to the first such word, the word included: of all that skips text, the one that cannot backtrack."""
    escaped = re.escape(word).replace("\\ ", " ")
    return f"(?>.*?{escaped})"


class Scope(StrEnum):
    """Whom a row's figures speak of."""

    RANK = "rank"
    ENGINE = "engine"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How one wording is recognised and what it tells."""

    name: str
    """Kebab-case: the fact and the wording. The same in the table, its sample file, the docs and `explain`."""
    literal: str
    """A part of every such message, to find it by."""
    pattern: str
    emits: tuple[type[Event], ...]
    """Nothing for a decoy: a line that looks like capacity and is none."""
    scope: Scope
    versions: tuple[str, ...]
    """Ranges of releases that print it, as "0.8.0-0.27.1"; a plugin's own versions carry its name before them."""
    upstream: str
    """The component of vLLM (or of the plugin) that prints it."""
    fixed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Event fields that the wording implies."""
    read: Callable[[Mapping[str, str]], Mapping[str, Any] | None] | None = None
    """Reads composite text (argument lists, nested lists) into event fields; the groups are its input. `None`: the
    message is known, and tells nothing."""
    amends: bool = False
    """Whether the row may change a start that is already serving."""
    of_outsiders: bool = False
    """Whether a shell, a runtime or the kernel says it, and never vLLM: a record that holds it quotes somebody."""
    completion: str = ""
    """What closes a message that a page has cut, and gives its last, perhaps halved word no value; the row then tells
    what is left of it."""


def match(row: LineFormat, message: str, origin: Origin) -> list[Event] | None:
    """The row's events if it describes the whole message, else `None`; a decoy gives an empty list."""
    found = compiled(row.pattern).fullmatch(message)
    if found is None or (row.of_outsiders and origin.trust is Trust.RECORD):
        return None
    groups = {name: text for name, text in found.groupdict().items() if text is not None}
    told = row.read(groups) if row.read is not None else _convert(groups)
    if told is None:
        return []
    values = {**row.fixed, **told}
    return [_build(kind, row, values, origin) for kind in row.emits]


def match_cut(row: LineFormat, message: str, origin: Origin) -> list[Event] | None:
    """What is left of a message of the row that was cut: what its `completion` closes, or its whole clauses.

    Where only the full stop is missing, nothing is, unless a bare figure stands before it: that may be half of one.
    """
    if row.completion:
        return match(row, message + row.completion, origin)
    if (message[-1:].isalpha() or message.endswith(")")) and (whole := match(row, f"{message}.", origin)):
        return whole
    clauses = compiled(row.pattern).match(message)
    return match(row, clauses[0], origin) if clauses is not None and may_continue(row, message) else None


def match_quoted(row: LineFormat, message: str, origin: Origin) -> list[Event] | None:
    """What an exception tells that somebody has quoted: his own text stands behind its last full stop, or its mark."""
    found = compiled(row.pattern).match(message) if FailureReported in row.emits else None
    if found is None or compiled(_RAISED).match(message) is None:
        return None
    rest = message[found.end() :]
    ends = rest.startswith("`") or (found[0].endswith(".") and rest.startswith(" "))
    return match(row, found[0], origin) if ends else None


def has_figure(event: Event) -> bool:
    """Whether it holds a number of its own: words alone are quoted where nothing was printed."""
    values = [getattr(event, item.name) for item in fields(event)]
    return any(isinstance(value, Printed | int) and not isinstance(value, bool) for value in values)


def describes(row: LineFormat, message: str) -> bool:
    """Whether the row describes the whole message."""
    return compiled(row.pattern).fullmatch(message) is not None


def may_continue(row: LineFormat, message: str) -> bool:
    """Whether the message is a proper beginning of one that the row describes: the rest stands on the next line."""
    return could_become(row.pattern, message)


def _build(kind: type[Event], row: LineFormat, values: Mapping[str, Any], origin: Origin) -> Event:
    known = {item.name for item in fields(kind)}
    if "engine" in values and values["engine"] is not None and "engine" not in known:
        origin = replace(origin, engine=values["engine"])
    return kind(format=row.name, origin=origin, **{name: value for name, value in values.items() if name in known})


def _printed(text: str, scale: float, least_decimals: int = 0) -> Printed:
    """The figure and half of its last place; vLLM drops trailing zeros of two decimals, hence `least_decimals`."""
    digits = text.replace(",", "")
    decimals = max(len(digits.partition(".")[2]), least_decimals)
    return Printed(round(float(digits) * scale) if scale > 1 else float(digits), 0.5 * 10**-decimals * scale)


_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def _sized(text: str) -> Printed:
    """A size in the unit that it names."""
    number, unit = text.split()
    return _printed(number, _UNITS[unit]) if unit != "bytes" else Printed(_integer(number))


def _scaled(text: str) -> Printed:
    """A size of four significant digits in the unit that fits it."""
    number, unit = text.split()
    factor = _UNITS[unit]
    whole = len(number.partition(".")[0])
    return Printed(round(float(number) * factor), 0.5 * 10 ** -max(4 - whole, 0) * factor)


def _integer(text: str) -> int:
    return int(text.replace(",", ""))


CONVERSIONS: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("_gib", "_bytes", lambda text: _printed(text, 2**30, 2)),
    ("_mib", "_bytes", lambda text: _printed(text, 2**20)),
    ("_decimal_gb", "_bytes", lambda text: _printed(text, 10**9)),
    ("_decimal_mb", "_bytes", lambda text: _printed(text, 10**6)),
    ("_scaled", "_bytes", _scaled),
    ("_sized", "_bytes", _sized),
    ("_exact_bytes", "_bytes", lambda text: Printed(_integer(text))),
    ("_bytes", "_bytes", _integer),
    ("_tokens", "_tokens", _integer),
    ("_blocks", "_blocks", _integer),
    ("_seconds", "_seconds", float),
    ("_percent", "", lambda text: round(float(text) / 100, 6)),
    ("_rounded", "", lambda text: _printed(text, 1)),
    ("utilization", "utilization", lambda text: Printed(float(text))),
    ("max_concurrency", "max_concurrency", lambda text: _printed(text, 1)),
    ("_name", "", str),
    ("message", "message", str),
    ("vllm_version", "vllm_version", str),
    ("generation", "generation", str),
    ("model", "model", str),
    ("text", "text", str),
)
"""Suffix of a group's name, the suffix of the event field it fills, and the conversion; all else is a count."""


def field_of(group: str) -> str:
    """The event field that a named group fills."""
    return _conversion(group)[0]


def is_figure(group: str) -> bool:
    """Whether a named group is converted to a number."""
    return _conversion(group)[1] is not str


def _convert(groups: Mapping[str, str]) -> dict[str, Any]:
    conversions = {name: _conversion(name) for name in groups}
    return {conversions[name][0]: conversions[name][1](text) for name, text in groups.items()}


@functools.cache
def _conversion(group: str) -> tuple[str, Callable[[str], Any]]:
    for suffix, target, convert in CONVERSIONS:
        if group.endswith(suffix):
            return group.removesuffix(suffix) + target, convert
    return group, _integer
