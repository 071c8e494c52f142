"""A raw line against a table of formats: which rows describe it, and what they tell, as plain data.

The samples of the project's own rows and those of a user's rows are held to the table by this one reading.
"""

from collections.abc import Mapping, Sequence

from kvguard.events import Event, Origin, Printed
from kvguard.lines.head import clean, envelope, strip
from kvguard.lines.line_format import LineFormat, match
from kvguard.slotted import dataclass, fields

_NOWHERE = Origin(line=0)


@dataclass(frozen=True, slots=True)
class Hit:
    """One row that describes a line, and what it tells of it."""

    row: LineFormat
    told: list[dict[str, object]]
    """Each event by its class (`event`) and the fields that the line fills; a `Printed` is `[value, rounding]`, or the
    value alone where nothing is rounded. A field that repeats the whole message is left out."""


def hits(line: str, table: Sequence[LineFormat]) -> list[Hit]:
    """Every row that describes the line, prefix and all; a table is sound where there is never more than one."""
    outer = envelope(clean(line))
    head = strip(outer.message, outer)
    for message in (head.message.strip(), *head.others):
        found = [
            Hit(row, [plain(event, message) for event in events])
            for row in table
            if row.literal in message and (events := match(row, message, _NOWHERE)) is not None
        ]
        if found:
            return found
    return []


def agree(expected: object, told: object) -> bool:
    """Whether what is expected was told; a bare number stands for a rounded figure's value."""
    if isinstance(expected, Mapping) and isinstance(told, Mapping):
        return expected.keys() == told.keys() and all(agree(expected[key], told[key]) for key in expected)
    if isinstance(expected, list) and isinstance(told, list):
        return len(expected) == len(told) and all(map(agree, expected, told))
    if isinstance(told, list) and len(told) == 2 and not isinstance(expected, list):
        return bool(expected == told[0])
    return expected == told


def plain(event: Event, message: str) -> dict[str, object]:
    """An event as plain data: its class and what it fills; what repeats the whole message is left out."""
    found: dict[str, object] = {"event": type(event).__name__}
    if event.origin.engine is not None:
        found["engine"] = event.origin.engine
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name not in ("format", "origin") and value not in (None, field.default, message):
            found[field.name] = _plain_value(value)
    return found


def _plain_value(value: object) -> object:
    if isinstance(value, Printed):
        return [value.value, value.rounding] if value.rounding else value.value
    return dict(value) if isinstance(value, Mapping) else value
