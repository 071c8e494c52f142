"""Single values of a stored document, each of its type: a person may have edited it, and any JSON may stand there."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from kvguard.slo.baselines.baseline import Figure
from kvguard.startup.report import SERVING_OPTIONS
from kvguard.units import format_count

Document = Mapping[str, Any]

_TEXTS = frozenset({"model", "kv_cache_dtype", "dtype", "quantization"})
_SWITCHES = frozenset({"enable_prefix_caching", "enforce_eager"})
_MOST = 1e30
"""More than any figure of a server; JSON may hold numbers that no float does."""
_LONGEST_SHOWN = 60


def mapping(document: Document, key: str) -> Document:
    """The mapping under that key, an empty one where there is none.

    Raises:
        TypeError: something else stands there; as of all that follow, the message names the key.
    """
    found = document.get(key, {})
    if not isinstance(found, dict):
        raise TypeError(f"{key} is no mapping")
    return found


def texts(document: Document, key: str, otherwise: str) -> tuple[str, ...]:
    """The texts listed under that key."""
    found = document.get(key, [otherwise])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError(f"{key} is no list of texts")
    return tuple(found)


def text(document: Document, key: str) -> str | None:
    """The text under that key; `None` where there is none."""
    found = document.get(key)
    if not isinstance(found, str | None):
        raise TypeError(f"{key} is no text")
    return found


def number(value: object, name: str) -> float:
    """A number that can be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MOST or not isfinite(value):
        raise TypeError(f"{name} is {str(value)[:_LONGEST_SHOWN]}, which is no number of a server")
    return value


def count(document: Document, key: str) -> int | None:
    """The whole number from 1 on under that key; `None` where there is none."""
    found = document.get(key)
    if found is None:
        return None
    if number(found, key) < 1 or not isinstance(found, int):
        raise ValueError(f"{key} is {found}, which is no number of them")
    return found


def figures(written: Document, rounding: Document) -> Mapping[str, Figure]:
    """Figures by name, each one number or the smallest and the largest."""
    found = {}
    for name, value in written.items():
        if value is not None:
            ends = value if isinstance(value, list) and len(value) == 2 else [value, value]
            low, high = (number(end, name) for end in ends)
            if high < low:
                raise ValueError(f"{name} is written as [{low}, {high}], the smallest comes first")
            found[name] = Figure(low, high, abs(number(rounding.get(name, 0.0), f"rounding of {name}")))
    return found


def capacity(written: Document, rounding: Document) -> Mapping[str, Figure]:
    """Figures of an engine that has served: an empty pool would pass every later start."""
    found = figures(written, rounding)
    for name, figure in found.items():
        if figure.low <= 0:
            raise ValueError(f"{name} is {format_count(figure.low)}, which no server holds")
    return found


def options(written: Document) -> Mapping[str, object]:
    """Options by name without those that are not known; vLLM's own are of their type, an argument may be anything."""
    found = {name: value for name, value in written.items() if value is not None}
    for name in SERVING_OPTIONS:
        if name not in found:
            continue
        if name in _TEXTS:
            text(found, name)
        elif name in _SWITCHES:
            if not isinstance(found[name], bool):
                raise TypeError(f"{name} is neither true nor false")
        else:
            number(found[name], name)
    return found
