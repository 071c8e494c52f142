"""The SLO file: YAML or JSON to `Settings` through strict models, every mistake told in one line with its place.

The models are made from the table of keys, so that a key of the file, its flag and its line in the schema are one.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model
from pydantic_core import ErrorDetails

from kvguard.errors import ConfigError
from kvguard.slo.keys import BY_NAME, KEYS, SECTIONS, Key
from kvguard.slo.marked_yaml import KeyPath, MarkedDocument, read_marked
from kvguard.slo.objectives import DEFAULT_SEVERITIES, KINDS, Severity
from kvguard.slo.quantities import read_value, shown
from kvguard.slo.settings import EMPTY, Settings, problems

_LONGEST_KEY = 60
"""Characters of a key that a message repeats."""
_NUMBER = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}
_SHARE = {
    "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": r"^\s*[\d.]+\s*%?\s*$"}]
}
_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "requests": _NUMBER,
    "tokens": {"type": "integer", "minimum": 0},
    "engines": {"type": "integer", "minimum": 0},
    "bytes": _NUMBER,
    "ratio": _SHARE,
    "seconds": _NUMBER,
    "": {"type": "string", "minLength": 1},
    "text": {"type": "string", "minLength": 1},
    "switch": {"type": "boolean"},
    "layers": {"enum": ["uniform"]},
    "mode": {"enum": ["enforce", "observe"]},
    "on_unknown": {"enum": ["block", "allow"]},
    "severity": {"enum": [severity.value for severity in Severity]},
    "version": {"const": 1},
}
_ENDS: Mapping[float, str] = {0: "minimum", 1: "maximum"}


def _value(unit: str, name: str = "") -> Any:
    schema = _without(_ENDS[EMPTY[name]], _SCHEMAS[unit]) if name in EMPTY else _SCHEMAS[unit]
    return Annotated[object, BeforeValidator(partial(read_value, unit)), WithJsonSchema(schema)]


def _without(end: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key of which that end asks for nothing."""
    if "anyOf" in schema:
        return {"anyOf": [_without(end, one) for one in schema["anyOf"]]}
    return {f"exclusive{name.title()}" if name == end else name: value for name, value in schema.items()}


def _section(title: str, units: Mapping[str, str], help_of: Mapping[str, str]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        name: (_value(unit, name), Field(default=None, alias=name, description=help_of.get(name)))
        for name, unit in units.items()
    }
    # a prefix, because pydantic keeps `model_config` for itself; the alias is the only name that outsiders see
    attributes = {"key_" + name.replace("-", "_"): definition for name, definition in fields.items()}
    return create_model(title, __config__=ConfigDict(extra="forbid", frozen=True, title=title), **attributes)


def _of_keys(section: str) -> type[BaseModel]:
    keys = [key for key in KEYS if key.section == section]
    return _section(section, {key.name: key.unit for key in keys}, {key.name: _described(key) for key in keys})


def _described(key: Key) -> str:
    return f"{key.help} (for example {key.example})"


_MODELS: Mapping[str, type[BaseModel]] = {
    **{section: _of_keys(section) for section in SECTIONS},
    "warnings": _section(
        "warnings",
        dict.fromkeys(DEFAULT_SEVERITIES, "severity"),
        {code: f"default: {severity.value}" for code, severity in DEFAULT_SEVERITIES.items()},
    ),
    "severity": _section("severity", dict.fromkeys(KINDS, "severity"), {}),
}

SloFile: type[BaseModel] = create_model(
    "SloFile",
    __config__=ConfigDict(extra="forbid", frozen=True, title="kvguard SLO file"),
    version=(_value("version"), Field(default=1, description="version of this format: 1")),
    **cast(Any, {name: (model, Field(default_factory=model)) for name, model in _MODELS.items()}),
)
"""The whole file as a model; `kvguard slo schema` prints its JSON schema."""


def read_settings(text: str, name: str, flags: Settings | None = None) -> Settings:
    """The settings of an SLO file; `name` is what messages call it, `flags` what will stand over it.

    Raises:
        ConfigError: the first mistake, in one line: file, line, key, and the nearest right key.
    """
    settings, mistakes = _read(text, name, flags or Settings())
    if mistakes:
        more = f" (and {len(mistakes) - 1} more: kvguard slo check {name})" if len(mistakes) > 1 else ""
        raise ConfigError(mistakes[0] + more)
    return settings


def mistakes_of(text: str, name: str) -> tuple[str, ...]:
    """Every mistake of an SLO file, a line each; none where it is fine."""
    try:
        return _read(text, name, Settings())[1]
    except ConfigError as error:
        return (str(error),)


def json_schema() -> dict[str, Any]:
    """The JSON schema of an SLO file, for editors and other validators."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SloFile.model_json_schema(by_alias=True)}


def _read(text: str, name: str, flags: Settings) -> tuple[Settings, tuple[str, ...]]:
    document = read_marked(text, name)
    sections = document.value
    if not isinstance(sections, dict) or not sections:
        known = ", ".join(_names(""))
        raise ConfigError(f"{name}: an SLO file is a mapping with some of: {known}")
    # an empty section (`runtime:` and nothing under it) asks for nothing
    given = {_part(section): {} if value is None else value for section, value in sections.items()}
    found = [(path, f"{_dotted(path)}: {mistake}") for path, mistake in document.mistakes]
    try:
        SloFile.model_validate(given)
    except ValidationError as error:
        found.extend(_told(detail) for detail in error.errors(include_url=False))
    if found:
        return Settings(), _placed(document, found)
    settings = _settings(given)
    return settings, _placed(document, [(_path_of(problem), problem) for problem in problems(flags.over(settings))])


def _settings(given: Mapping[str, Mapping[str, object]]) -> Settings:
    """The read values; the file has been validated."""
    values = {
        key.name: read_value(key.unit, given[key.section][key.name])
        for key in KEYS
        if key.name in given.get(key.section, {})
    }
    return Settings(values, _severities(given.get("warnings", {})), _severities(given.get("severity", {})))


def _severities(given: Mapping[str, object]) -> dict[str, Severity]:
    return {code: Severity(str(severity)) for code, severity in given.items()}


def _placed(document: MarkedDocument, found: list[tuple[KeyPath, str]]) -> tuple[str, ...]:
    ordered = sorted(found, key=lambda mistake: document.lines.get(mistake[0], 0))
    return tuple(f"{document.at(path)}: {text}" for path, text in ordered)


def _path_of(problem: str) -> KeyPath:
    return tuple(problem.split(" ", 1)[0].split("."))


def _told(detail: ErrorDetails) -> tuple[KeyPath, str]:
    path = tuple(map(_part, detail["loc"]))
    if detail["type"] in ("extra_forbidden", "invalid_key"):
        return path, f"{_dotted(path)}: no such key{_nearest(path)}"
    if detail["type"] == "model_type":
        return path, f"{_dotted(path)}: a mapping of keys belongs here"
    cause = detail.get("ctx", {}).get("error")
    return path, f"{_dotted(path)}: {cause or detail['msg']}"


def _nearest(path: KeyPath) -> str:
    """The right key that was most likely meant: of the same section first, then of any."""
    *around, wrong = path
    section = around[0] if around else ""
    for wanted, prefix in _candidates(section):
        close = get_close_matches(wrong.replace("-", "_"), wanted, n=1, cutoff=0.6)
        if close:
            return f"; did you mean {prefix(wanted[close[0]])}?"
    return f"; there are: {', '.join(name for name in _names(section))}"


def _candidates(section: str) -> Iterator[tuple[dict[str, str], Any]]:
    yield {name.replace("-", "_"): name for name in _names(section)}, lambda name: name
    yield {name: name for name in BY_NAME}, lambda name: f"{BY_NAME[name].section}.{name}"


def _names(section: str) -> tuple[str, ...]:
    if section in _MODELS:
        return tuple(field.alias or name for name, field in _MODELS[section].model_fields.items())
    return ("version", *_MODELS)


def _part(key: object) -> str:
    """A key as a text, whatever it is in YAML."""
    return key if isinstance(key, str) else shown(key)


def _dotted(path: KeyPath) -> str:
    """The keys down to one, in a short line whatever line ends a key holds."""
    return ".".join(" ".join(key.split())[:_LONGEST_KEY] for key in path)
