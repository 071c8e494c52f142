"""A baseline as a small JSON document for review and storage, and back; a stored JSON report is read as well."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, cast

from kvguard.errors import ConfigError
from kvguard.slo.baselines.baseline import ARGUMENTS, CAPACITY_FIGURES, MEMORY_PARTS, Baseline, Figure
from kvguard.startup.report import SERVING_OPTIONS, Failure, FailureKind, Place, TokenFigure
from kvguard.units import format_count
from kvguard.version import __version__

KIND = "baseline"
SCHEMA_VERSION = 1

Document = Mapping[str, Any]


def document_of(baseline: Baseline) -> dict[str, Any]:
    """The document: figures in base units, `[smallest, largest]` where the starts differ; the unknown is left out."""
    rounding = {
        name: figure.rounding
        for name, figure in (*baseline.weakest.items(), *baseline.memory.items())
        if figure.rounding
    }
    document = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "kvguard_version": __version__,
        "sources": list(baseline.sources),
        "starts": baseline.starts,
        "vllm_version": baseline.vllm_version,
        "engine": baseline.generation,
        "token_figure": None if baseline.token_figure is None else baseline.token_figure.value,
        "layers": baseline.layers,
        "basis": baseline.basis,
        "engines_expected": baseline.engines_expected,
        "weakest": _shown(baseline.weakest),
        "engines": {label: _shown(figures) for label, figures in baseline.engines.items()},
        "memory": _shown(baseline.memory),
        "rounding": rounding,
        "options": dict(baseline.options),
        "arguments_told": baseline.arguments_told,
    }
    return {name: value for name, value in document.items() if value is not None}


def baseline_from(document: Document, name: str) -> Baseline:
    """The baseline of a document of either kind.

    Raises:
        ConfigError: another kind of document, another schema, or a value of the wrong type; one line.
    """
    reader = _READERS.get(str(document.get("kind")))
    if reader is None:
        raise ConfigError(
            f"{name}: neither a baseline nor a report of kvguard: make one with kvguard baseline LOG -o FILE"
        )
    if document.get("schema_version") != SCHEMA_VERSION:
        written = document.get("schema_version")
        raise ConfigError(f"{name}: schema_version {written!r} is not {SCHEMA_VERSION}: make it anew")
    try:
        return reader(document, name)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{name}: a damaged {document['kind']}: {error}") from None


def _of_baseline(document: Document, name: str) -> Baseline:
    rounding = _mapping(document, "rounding")
    engines = _mapping(document, "engines")
    return Baseline(
        sources=tuple(document.get("sources", (name,))),
        starts=int(document.get("starts", 1)),
        vllm_version=_text(document, "vllm_version"),
        generation=_text(document, "engine"),
        token_figure=_token_figure(document),
        layers=_text(document, "layers"),
        basis=_text(document, "basis"),
        engines_expected=document.get("engines_expected"),
        weakest=_capacity(_mapping(document, "weakest"), rounding),
        engines={str(label): _capacity(_mapping(engines, label), rounding) for label in engines},
        memory=_read(_mapping(document, "memory"), rounding),
        options=dict(_mapping(document, "options")),
        arguments_told=bool(document.get("arguments_told", False)),
    )


def _of_report(document: Document, name: str) -> Baseline:
    """What a report of `--format json` keeps; its names are the report's own."""
    start = document["start"]
    if start is None:
        raise ConfigError(f"{name}: no start of a vLLM server in this report")
    capacity, arguments = start["capacity"], start.get("arguments", {})
    options = {key: start.get(key) for key in SERVING_OPTIONS} | {key: arguments.get(key) or None for key in ARGUMENTS}
    options["max_model_len"] = capacity.get("max_model_len") or start.get("max_model_len")
    return Baseline(
        sources=tuple(document.get("sources", (name,))),
        vllm_version=_text(start, "vllm_version"),
        generation=_text(start, "generation"),
        token_figure=_token_figure(capacity),
        layers=_text(start, "layers"),
        basis=_text(start, "kv_cache_basis"),
        engines_expected=capacity.get("engines_expected"),
        weakest=_of_engine(capacity),
        engines={str(engine.get("engine") or "0"): _of_engine(engine) for engine in start.get("engines", ())},
        memory=_read({key: start.get("memory", {}).get(key) for key in MEMORY_PARTS}, {}),
        options={key: value for key, value in options.items() if value is not None},
        arguments_told=bool(arguments),
        failure=_failure(start.get("failure"), name),
    )


def _of_engine(engine: Document) -> Mapping[str, Figure]:
    derived = engine.get("derived", {})
    values = {key: engine.get(key, None) for key in CAPACITY_FIGURES}
    for key, value in values.items():
        if value is None and key in derived:
            values[key] = derived[key]["value"]
    return _read(values, engine.get("rounding", {}))


def _failure(failure: Document | None, name: str) -> Failure | None:
    if failure is None:
        return None
    figures = {
        key: failure.get(key)
        for key in (
            "needed_bytes",
            "available_bytes",
            "requested_max_model_len",
            "kv_cache_tokens",
            "estimated_max_model_len",
            "requested_max_num_seqs",
            "mamba_blocks",
            "transient",
        )
    }
    place = Place(str(failure.get("source") or name), int(failure.get("line") or 0))
    return Failure(FailureKind(failure["kind"]), str(failure.get("message", "")), place, **cast(Any, figures))


def _shown(figures: Mapping[str, Figure]) -> dict[str, object]:
    return {
        name: figure.low if figure.low == figure.high else [figure.low, figure.high] for name, figure in figures.items()
    }


def _read(written: Mapping[str, Any], rounding: Mapping[str, float]) -> Mapping[str, Figure]:
    found = {}
    for name, value in written.items():
        if value is not None:
            low, high = value if isinstance(value, list) else (value, value)
            if _number(high) < _number(low):
                raise ValueError(f"{name} is written as [{low}, {high}], the smallest comes first")
            found[name] = Figure(_number(low), _number(high), float(rounding.get(name, 0.0)))
    return found


def _capacity(written: Mapping[str, Any], rounding: Mapping[str, float]) -> Mapping[str, Figure]:
    """Figures of an engine that has served: an empty pool would pass every later start."""
    found = _read(written, rounding)
    for name, figure in found.items():
        if figure.low <= 0:
            raise ValueError(f"{name} is {format_count(figure.low)}, which no server holds")
    return found


def _mapping(document: Document, key: str) -> Mapping[str, Any]:
    found = document.get(key, {})
    if not isinstance(found, dict):
        raise TypeError(f"{key} is no mapping")
    return found


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return value


def _text(document: Document, key: str) -> str | None:
    value = document.get(key)
    return None if value is None else str(value)


def _token_figure(document: Document) -> TokenFigure | None:
    value = document.get("token_figure")
    return None if value is None else TokenFigure(value)


_READERS: Mapping[str, Callable[[Document, str], Baseline]] = {KIND: _of_baseline, "report": _of_report}
