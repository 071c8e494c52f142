"""Reads one value that a person wrote, in a file or behind a flag, by the unit of its key; one line on a wrong one."""

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.units import MIB, QuantityError, parse_bytes, parse_ratio, parse_seconds

_LONGEST_SHOWN = 10**30
"""Python writes no number of more than 4,300 digits, and YAML may hold any, as 0xfff…"""
_GROUPED = r"\d{1,3}([,_]\d{3})+|\d+"


def read_value(unit: str, written: object) -> float | int | str | bool:
    """The value in the unit's base: bytes, seconds, a ratio, a count, a name or a switch.

    Raises:
        QuantityError: it is not of that unit; the message says what was written and what to write.
    """
    return _READERS[unit](written)


def _number(written: object, wanted: str, unit: str = "") -> float:
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        raise QuantityError(f"{shown(written)} is not {wanted}")
    try:
        value = float(written.removesuffix(unit) if isinstance(written, str) else written)
    except (ValueError, OverflowError):
        raise QuantityError(f"{shown(written)} is not {wanted}") from None
    if not math.isfinite(value) or value < 0:
        raise QuantityError(f"{shown(written)} is not {wanted}")
    return value


def _requests(written: object) -> float:
    """A number of requests; "2.5x", as vLLM prints a concurrency, is one."""
    return _number(written, "a number from 0 on, as 2.5", unit="x")


def _count(written: object) -> int:
    if isinstance(written, str) and re.fullmatch(_GROUPED, written):
        written = written.replace(",", "").replace("_", "")
    value = _number(written, "a whole number from 0 on, as 16384")
    if not value.is_integer():
        raise QuantityError(f"{shown(written)} is not a whole number, as 16384")
    return int(value)


def _bytes(written: object) -> int:
    value = parse_bytes(written) if isinstance(written, str) else _count_of_bytes(written)
    if 0 < value < MIB:  # 3.4 without its unit would be met by every server there is
        raise QuantityError(
            f"{shown(written)} is {value:,} {'byte' if value == 1 else 'bytes'}: write the unit, as 3.4GiB"
        )
    if value < 0:
        raise QuantityError(f"{shown(written)} is not a size, as 3.4GiB")
    return value


def _count_of_bytes(written: object) -> int:
    return round(_number(written, "a size, as 3.4GiB"))


def _ratio(written: object) -> float:
    value = parse_ratio(written) if isinstance(written, str) else _number(written, "a share, as 5% or 0.05")
    if not 0 <= value <= 1:
        raise QuantityError(f"{shown(written)} is not a share between 0 and 1: write 5% or 0.05")
    return value


def _seconds(written: object) -> float:
    return parse_seconds(written) if isinstance(written, str) else _number(written, "a duration, as 10m")


def _text(written: object) -> str:
    if not isinstance(written, str) or not written.strip():
        raise QuantityError(f"{shown(written)} is not a name")
    return written


def _dtype(written: object) -> str:
    """vLLM knows its dtypes in lower case, and refuses any other."""
    return _text(written).strip().lower()


def _switch(written: object) -> bool:
    if not isinstance(written, bool):
        raise QuantityError(f"{shown(written)} is neither true nor false")
    return written


def _choice(*names: str) -> Callable[[object], str]:
    def read(written: object) -> str:
        if written not in names:
            raise QuantityError(f"{shown(written)} is none of {', '.join(names)}")
        return str(written)

    return read


def shown(written: object) -> str:
    """What was written, in one short line; a list or a mapping only by its kind: YAML's aliases make them endless."""
    if isinstance(written, dict | list | set):
        return {dict: "a mapping", list: "a list", set: "a set"}[type(written)]
    if isinstance(written, int) and abs(written) >= _LONGEST_SHOWN:
        return "a number of so many digits"
    text = repr(written[:60]) if isinstance(written, str) else "nothing" if written is None else str(written)
    return " ".join(text.split())[:60]


_READERS: Mapping[str, Callable[[object], float | int | str | bool]] = MappingProxyType(
    {
        "requests": _requests,
        "tokens": _count,
        "engines": _count,
        "bytes": _bytes,
        "ratio": _ratio,
        "seconds": _seconds,
        "": _dtype,
        "text": _text,
        "switch": _switch,
        "layers": _choice("uniform"),
        "mode": _choice("enforce", "observe"),
        "on_unknown": _choice("block", "allow"),
        "severity": _choice("fail", "warn", "note", "ignore"),
        "version": lambda written: 1 if written == 1 and not isinstance(written, bool) else _wrong_version(written),
    }
)


def _wrong_version(written: object) -> int:
    raise QuantityError(f"{shown(written)} is not a version of SLO files that this kvguard reads: write 1")
