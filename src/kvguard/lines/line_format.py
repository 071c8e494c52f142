"""One row of the format table: how a message is found, what it tells, and where upstream prints it.

A row is pure data. The named groups of its pattern are event fields with the printed unit as suffix; the suffix picks
the conversion, so that `weights_gib` fills `weights_bytes`. Patterns are matched whole (`fullmatch`) and written with
possessive quantifiers: a row needs no anchors and cannot backtrack.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import regex

from kvguard.events import Event, Origin, Printed

INTEGER = r"\d[\d,]*+"
"""A count, with or without thousands separators."""
NUMBER = r"-?\d++(?:\.\d++)?"
"""A figure with an optional fraction; may be negative."""
SCALED = r"[\d.]++ [KMGT]?i?B"
"""A size in whichever binary unit fits, as the Gaudi workers print it."""


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
    read: Callable[[Mapping[str, str]], Mapping[str, Any]] | None = None
    """Reads composite text (argument lists, nested lists) into event fields; the groups are its input."""
    amends: bool = False
    """Whether the row may change a start that is already serving."""


@functools.cache
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern, regex.VERSION1)


def match(row: LineFormat, message: str, origin: Origin) -> list[Event] | None:
    """The row's events if it describes the whole message, else `None`; a decoy gives an empty list."""
    found = _compiled(row.pattern).fullmatch(message)
    if found is None:
        return None
    groups = {name: text for name, text in found.groupdict().items() if text is not None}
    values = dict(row.fixed)
    values.update(row.read(groups) if row.read is not None else _convert(groups))
    return [_build(kind, row, values, origin) for kind in row.emits]


def may_continue(row: LineFormat, message: str) -> bool:
    """Whether the message is a proper beginning of one that the row describes: the rest stands on the next line."""
    found = _compiled(row.pattern).fullmatch(message, partial=True)
    return found is not None and bool(found.partial)


def _build(kind: type[Event], row: LineFormat, values: Mapping[str, Any], origin: Origin) -> Event:
    known = {item.name for item in dataclasses.fields(kind)}
    if "engine" in values and values["engine"] is not None and "engine" not in known:
        origin = dataclasses.replace(origin, engine=values["engine"])
    return kind(format=row.name, origin=origin, **{name: value for name, value in values.items() if name in known})


def _printed(text: str, scale: float, least_decimals: int = 0) -> Printed:
    """The figure and half of its last place; vLLM drops trailing zeros of two decimals, hence `least_decimals`."""
    digits = text.replace(",", "")
    decimals = max(len(digits.partition(".")[2]), least_decimals)
    return Printed(round(float(digits) * scale) if scale > 1 else float(digits), 0.5 * 10**-decimals * scale)


def _scaled(text: str) -> Printed:
    """A size of four significant digits in the unit that fits it."""
    number, unit = text.split()
    factor = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}[unit]
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
    ("_exact_bytes", "_bytes", lambda text: Printed(_integer(text))),
    ("_bytes", "_bytes", _integer),
    ("_tokens", "_tokens", _integer),
    ("_blocks", "_blocks", _integer),
    ("_seconds", "_seconds", float),
    ("_percent", "", lambda text: float(text) / 100),
    ("utilization", "utilization", lambda text: _printed(text, 1)),
    ("max_concurrency", "max_concurrency", lambda text: _printed(text, 1)),
    ("_name", "", str),
    ("message", "message", str),
    ("vllm_version", "vllm_version", str),
    ("generation", "generation", str),
    ("model", "model", str),
    ("text", "text", str),
)
"""Suffix of a group's name, the suffix of the event field it fills, and the conversion; all else is a count."""


def _convert(groups: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in groups.items():
        for suffix, target, convert in CONVERSIONS:
            if name.endswith(suffix):
                values[name.removesuffix(suffix) + target] = convert(text)
                break
        else:
            values[name] = _integer(text)
    return values
