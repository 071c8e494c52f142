"""A user's own rows for the table of formats, from a file, under the checks that the project's own rows are under.

A fork or a plugin prints lines that nobody else knows. Each row brings its samples and a near-miss; a row that is not
sound, or a sample that is not told by exactly that row, is refused when the file is read, not when a log is judged.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kvguard import events
from kvguard.errors import ConfigError
from kvguard.events import Event
from kvguard.lines.line_format import LineFormat, Scope
from kvguard.lines.row_rules import faults
from kvguard.lines.samples import Hit, agree, hits
from kvguard.slo.marked_yaml import load_yaml
from kvguard.sources.documents import read_text

_INTERNAL = (events.ProcessSpoke, events.LineUnrecognized, events.ExceptionRaised)
EVENTS: dict[str, type[Event]] = {
    name: kind
    for name, kind in vars(events).items()
    # of the subclasses themselves some would be what `dataclass` made them of
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event and kind not in _INTERNAL
}
"""What a row may tell, by name."""

Text = Annotated[str, Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Sample(_Model):
    line: Text
    tells: list[dict[str, Any]]


class _Row(_Model):
    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)+$")]
    literal: Text
    pattern: Text
    emits: list[str]
    scope: Scope
    versions: Annotated[list[Text], Field(min_length=1)]
    upstream: Text
    sets: dict[str, str | int | float | bool] = {}
    amends: bool = False
    samples: Annotated[list[_Sample], Field(min_length=1)]
    near_misses: Annotated[list[Text], Field(min_length=1)]


class _File(_Model):
    version: Annotated[int, Field(ge=1, le=1)]
    formats: Annotated[list[_Row], Field(min_length=1)]


def read_formats(path: Path, table: Sequence[LineFormat]) -> tuple[LineFormat, ...]:
    """The table with the rows of a file behind its own.

    Raises:
        SourceError: the file cannot be read.
        ConfigError: it is no such file, or one of its rows is not sound; one line, with the row.
    """
    given = _parsed(path)
    rows = [_row(row, path) for row in given.formats]
    whole = (*table, *rows)
    for row, described in zip(rows, given.formats, strict=True):
        if [each.name for each in whole].count(row.name) > 1:
            _refuse(path, row.name, "there is a row of that name already")
        for fault in faults(row):
            _refuse(path, row.name, fault)
        _check_samples(row, described, whole, path)
    return whole


def _parsed(path: Path) -> _File:
    try:
        return _File.model_validate(load_yaml(read_text(path)))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: neither YAML nor JSON: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{path}: {where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{path}: neither YAML nor JSON: a number too long, or nested too deeply") from None


def _row(row: _Row, path: Path) -> LineFormat:
    for name in row.emits:
        if name not in EVENTS:
            _refuse(path, row.name, f"emits {name!r}, which is no event; there are: {', '.join(EVENTS)}")
    return LineFormat(
        name=row.name,
        literal=row.literal,
        pattern=row.pattern,
        emits=tuple(EVENTS[name] for name in row.emits),
        scope=row.scope,
        versions=tuple(row.versions),
        upstream=row.upstream,
        fixed=dict(row.sets),
        amends=row.amends,
    )


def _check_samples(row: LineFormat, described: _Row, table: Sequence[LineFormat], path: Path) -> None:
    for sample in described.samples:
        found = hits(sample.line, table)
        if [hit.row.name for hit in found] != [row.name]:
            _refuse(
                path, row.name, f"its sample {sample.line!r} is described by {_names(found)}, not by this row alone"
            )
        if not agree(sample.tells, found[0].told):
            _refuse(path, row.name, f"its sample {sample.line!r} tells {found[0].told}, not {sample.tells}")
    for line in described.near_misses:
        if found := hits(line, table):
            _refuse(path, row.name, f"its near-miss {line!r} is described by {_names(found)}")


def _names(found: Sequence[Hit]) -> str:
    return " and ".join(hit.row.name for hit in found) or "no row"


def _refuse(path: Path, row: str, what: str) -> NoReturn:
    raise ConfigError(f"{path}: {row}: {what}")
