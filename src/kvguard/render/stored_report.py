"""A stored JSON report back to a `CapacityReport`, so that a start of last week can be held against today's."""

import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NoReturn

from kvguard.errors import ConfigError
from kvguard.render.json_report import KIND, SCHEMA_VERSION
from kvguard.slotted import fields
from kvguard.startup.report import (
    Capacity,
    CapacityReport,
    DeploymentCapacity,
    Derived,
    Failure,
    LogCounts,
    Memory,
    Place,
    Runtime,
    Start,
    StartSummary,
    StartWarning,
    Timings,
    Unrecognized,
)


def report_from(document: object, name: str) -> CapacityReport:
    """The report that a JSON document of kind `report` holds; what the document leaves out is `None`.

    Raises:
        ConfigError: another kind of document, a schema of another kvguard, or a value of the wrong type.
    """
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        _refuse(name, 'not a kvguard report: it has no "kind": "report"; write one with --format json')
    if document.get("schema_version") != SCHEMA_VERSION:
        _refuse(name, f"schema_version {document.get('schema_version')!r} is not {SCHEMA_VERSION}: write it anew")
    start, lines = document.get("start"), _mapping(document, "lines", name)
    return CapacityReport(
        sources=tuple(map(str, _list(document, "sources", name))),
        starts=len(_list(document, "history", name)) if document.get("starts") is None else document["starts"],
        start=None if start is None else _start(start, lines, name),
        history=tuple(_flat(StartSummary, item, name) for item in _list(document, "history", name)),
        unrecognized=tuple(
            Unrecognized(place=_required_place(item, name), text=str(item.get("text", "")))
            for item in _list(document, "unrecognized", name)
        ),
        counts=_flat(LogCounts, _mapping(document, "log", name), name),
    )


def _start(document: Any, lines: Mapping[str, Any], name: str) -> Start:
    if not isinstance(document, Mapping):
        _refuse(name, f"start is {document!r:.40}, which is of the wrong type")
    capacity, failure = _mapping(document, "capacity", name), document.get("failure")
    runtime = _mapping(document, "runtime", name)
    return _flat(
        Start,
        document,
        name,
        capacity=_flat(DeploymentCapacity, capacity, name, weakest=_capacity(capacity, name)),
        engines=tuple(_capacity(engine, name) for engine in _list(document, "engines", name)),
        memory=_flat(Memory, _mapping(document, "memory", name), name),
        timings=_flat(Timings, _mapping(document, "timings", name), name),
        runtime=_flat(Runtime, runtime, name, place=_place(runtime, name)),
        failure=None if failure is None else _flat(Failure, failure, name, place=_required_place(failure, name)),
        warnings=tuple(
            _flat(StartWarning, warning, name, place=_place(warning, name))
            for warning in _list(document, "warnings", name)
        ),
        missing=tuple(map(str, _list(document, "missing", name))),
        arguments=_mapping(document, "arguments", name),
        first_place=_place(_mapping(document, "first_line", name), name),
        last_place=_place(_mapping(document, "last_line", name), name),
        lines={fact: _required_place(place, name) for fact, place in lines.items()},
        quotes=_quotes(lines, name),
    )


def _quotes(lines: Mapping[str, Any], name: str) -> dict[Place, str]:
    told = [place for place in lines.values() if isinstance(place.get("text"), str)]
    return {_required_place(place, name): place["text"] for place in told}


def _capacity(document: Any, name: str) -> Capacity:
    derived = _mapping(document, "derived", name)
    return _flat(
        Capacity,
        document,
        name,
        rounding=_mapping(document, "rounding", name),
        derived={fact: _flat(Derived, figure, name) for fact, figure in derived.items()},
    )


def _place(document: Any, name: str) -> Place | None:
    return None if document.get("line") is None else _flat(Place, document, name)


def _required_place(document: Any, name: str) -> Place:
    return _flat(Place, document, name)


T = typing.TypeVar("T")


def _flat(kind: type[T], document: Any, name: str, **given: Any) -> T:
    """An instance of the dataclass from the keys of its fields' names; `given` fields are built already."""
    if not isinstance(document, Mapping):
        _refuse(name, f"expected an object for {kind.__name__}, found {document!r:.40}")
    hints = typing.get_type_hints(kind)
    values = dict(given)
    for field in fields(kind):  # type: ignore[arg-type]  # only dataclasses of startup.report come here
        if field.name not in values and field.name in document:
            values[field.name] = _value(document[field.name], hints[field.name], field.name, name)
    try:
        return kind(**values)
    except TypeError as error:
        _refuse(name, f"{kind.__name__} is not complete: {error}")


def _value(value: Any, hint: Any, key: str, name: str) -> Any:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, StrEnum) and value in list(kind):
            return kind(value)
    accepted = tuple(kind for kind in kinds if isinstance(kind, type) and not issubclass(kind, StrEnum))
    widened = (*accepted, int) if float in accepted else accepted
    if not isinstance(value, widened) or (isinstance(value, bool) and bool not in accepted):
        _refuse(name, f"{key} is {value!r:.40}, which is of the wrong type")
    return value


def _mapping(document: Any, key: str, name: str) -> Mapping[str, Any]:
    found = document.get(key) if isinstance(document, Mapping) else None
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        _refuse(name, f"{key} is no object")
    return found


def _list(document: Any, key: str, name: str) -> list[Any]:
    found = document.get(key) if isinstance(document, Mapping) else None
    if found is None:
        return []
    if not isinstance(found, list):
        _refuse(name, f"{key} is no list")
    return found


def _refuse(name: str, what: str) -> NoReturn:
    raise ConfigError(f"{name}: {what}")
