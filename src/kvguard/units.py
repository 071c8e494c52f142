"""Quantities as people and logs print them, to base units and back.

Base units are bytes, tokens, blocks, seconds and plain ratios. GiB is binary (2**30), GB decimal (10**9): a log
line that prints "GB" for GiB says so in its row of the format table, never here.
"""

import re
from collections.abc import Callable, Mapping
from math import ceil, floor

from kvguard.slotted import dataclass

GIB = 2**30
MIB = 2**20

_BYTES_PER_UNIT = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE = r"\s*+([+-]?\d{1,20}(?:_\d{3}){0,6}(?:\.\d{1,20})?)\s*+([A-Za-z]{0,9}+)\s*+"
_SECONDS_PER_UNIT = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = r"\s*(\d{1,12}(?:\.\d{1,20})?)\s*(ms|s|min|m|h|d|)"


class QuantityError(ValueError):
    """A quantity that cannot be read; the message is one line and names what was expected."""


def parse_bytes(text: str) -> int:
    """Read a size, as "3.4 GiB", "24GB" or "1073741824", as whole bytes (rounded to the nearest).

    Units as spelt: GiB, Gi and G are binary, GB decimal; a bare number is bytes.

    Raises:
        QuantityError: no number, or a unit that is none.
    """
    match = re.fullmatch(_SIZE, text)
    if match is None or match[2].lower() not in _BYTES_PER_UNIT:
        raise QuantityError(f"{text!r} is not a size: write a number and a unit, as 3.4GiB or 24GB")
    return round(float(match[1]) * _BYTES_PER_UNIT[match[2].lower()])


def parse_seconds(text: str) -> float:
    """Read a duration, as "10m", "1h30m", "90s" or "90", as seconds.

    Raises:
        QuantityError: anything else.
    """
    total, position = 0.0, 0
    while position < len(text.rstrip()):
        match = re.match(_DURATION_PART, text[position:])
        if match is None:
            raise QuantityError(f"{text!r} is not a duration: write a number and a unit, as 90s, 10m or 1h30m")
        total += float(match[1]) * _SECONDS_PER_UNIT[match[2]]
        position += match.end()
    if position == 0:
        raise QuantityError("an empty text is not a duration: write a number and a unit, as 90s or 10m")
    return total


def parse_ratio(text: str) -> float:
    """Read a share, as "5%" or "0.05", as a ratio.

    Raises:
        QuantityError: no number.
    """
    stripped = text.strip()
    try:
        return float(stripped[:-1]) / 100 if stripped.endswith("%") else float(stripped)
    except ValueError:
        raise QuantityError(f"{text!r} is not a share: write 5% or 0.05") from None


def format_bytes(count: float, decimals: int = 2) -> str:
    """Bytes as GiB, with two decimals unless told; below 0.01 GiB as MiB or plain bytes: nothing prints as zero."""
    if count == 0 or abs(count) >= 0.01 * GIB:
        return f"{count / GIB:.{decimals}f} GiB"
    if abs(count) >= MIB:
        return f"{count / MIB:.1f} MiB"
    return f"{count:,.0f} bytes"


def format_seconds(seconds: float) -> str:
    """Seconds as a person says them: "0.6 s", "45 s", "6 min 52 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def format_ratio(ratio: float, decimals: int = 2) -> str:
    """A share as a percentage, without trailing zeros: "5 %", "98.1 %"."""
    digits = f"{ratio * 100:,.{decimals}f}"
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + " %"


def format_count(count: float, decimals: int = 2) -> str:
    """A count with thousands separators; a broken one (a concurrency) with decimals: "40,960", "2.50"."""
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.{decimals}f}"


_SINGULARS = {"requests": "request", "tokens": "token", "blocks": "block", "engines": "engine", "lines": "line"}
_WRITERS: Mapping[str, Callable[[float, int], str]] = {
    "bytes": format_bytes,
    "ratio": format_ratio,
    "seconds": lambda seconds, _decimals: format_seconds(seconds),
}


def format_quantity(value: float | str, unit: str, decimals: int = 2) -> str:
    """A figure with its unit as a person reads it: "1.80 requests", "3.47 GiB", "95 %"; a name stays as it is."""
    if isinstance(value, str):
        return value
    if unit in _WRITERS:
        return _WRITERS[unit](value, decimals)
    return f"{format_count(value, decimals)} {_SINGULARS.get(unit, unit) if value == 1 else unit}".rstrip()


def format_apart(one: float | str, other: float | str, unit: str) -> tuple[str, str]:
    """Two figures with enough digits that they read alike only when they are: a miss must not print as equal."""
    for decimals in (2, 3, 4, 6):
        texts = format_quantity(one, unit, decimals), format_quantity(other, unit, decimals)
        if one == other or _digits(texts[0]) != _digits(texts[1]):
            return texts
    return f"{one:,} {unit}".strip(), f"{other:,} {unit}".strip()


def _digits(text: str) -> str:
    """A figure without the zeros behind its point: "512.00" reads as "512" does."""
    number, space, unit = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}{space}{unit}"


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure known between two ends, both included; `low == high` when it is exact. The unit is its holder's."""

    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Interval":
        """The interval of a figure without rounding."""
        return cls(value, value)

    @property
    def is_exact(self) -> bool:
        """Whether both ends meet."""
        return self.low == self.high


def parse_bytes_interval(text: str) -> Interval:
    """Read a size with its two ends, in bytes: "3GiB" is exact, "~11.12GiB" as printed (± half of its last place),
    "3GiB..4GiB" an interval.

    Raises:
        QuantityError: no size, or an interval whose ends are exchanged.
    """
    low, separator, high = text.partition("..")
    if separator:
        ends = Interval(parse_bytes_interval(low).low, parse_bytes_interval(high).high)
        if ends.low > ends.high:
            raise QuantityError(f"{text!r} is not an interval: write the smaller size first, as 3GiB..4GiB")
        return ends
    if not text.strip().startswith("~"):
        return Interval.exact(parse_bytes(text))
    match = re.fullmatch(_SIZE, text.strip().removeprefix("~"))
    if match is None or match[2].lower() not in _BYTES_PER_UNIT:
        raise QuantityError(f"{text!r} is not a printed size: write it as the log does, as ~11.12GiB")
    from decimal import Decimal

    value, unit = Decimal(match[1]), _BYTES_PER_UNIT[match[2].lower()]
    half = Decimal(1).scaleb(int(value.as_tuple().exponent)) / 2
    return Interval(ceil((value - half) * unit), floor((value + half) * unit))
