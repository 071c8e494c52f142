"""A baseline as a small JSON document for review and storage, and back; a stored JSON report is read as well."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from kvguard.errors import ConfigError
from kvguard.slo.baselines.baseline import ARGUMENTS, CAPACITY_FIGURES, MEMORY_PARTS, Baseline, Figure
from kvguard.slo.baselines.written import Document, count, figures, mapping, number, options, text, texts
from kvguard.slo.baselines.written import capacity as capacity_of
from kvguard.startup.report import SERVING_OPTIONS, Failure, FailureKind, Place, TokenFigure
from kvguard.version import __version__

KIND = "baseline"
SCHEMA_VERSION = 1


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
    rounding = mapping(document, "rounding")
    engines = mapping(document, "engines")
    return Baseline(
        sources=texts(document, "sources", name),
        starts=count(document, "starts") or 1,
        vllm_version=text(document, "vllm_version"),
        generation=text(document, "engine"),
        token_figure=_token_figure(document),
        layers=text(document, "layers"),
        basis=text(document, "basis"),
        engines_expected=count(document, "engines_expected"),
        weakest=capacity_of(mapping(document, "weakest"), rounding),
        engines={str(label): capacity_of(mapping(engines, label), rounding) for label in engines},
        memory=figures(mapping(document, "memory"), rounding),
        options=options(mapping(document, "options")),
        arguments_told=bool(document.get("arguments_told", False)),
    )


def _of_report(document: Document, name: str) -> Baseline:
    """What a report of `--format json` keeps; its names are the report's own."""
    if document["start"] is None:
        raise ConfigError(f"{name}: no start of a vLLM server in this report")
    start = mapping(document, "start")
    capacity, arguments = mapping(start, "capacity"), mapping(start, "arguments")
    told = {key: start.get(key) for key in SERVING_OPTIONS} | {key: arguments.get(key) or None for key in ARGUMENTS}
    told["max_model_len"] = capacity.get("max_model_len") or start.get("max_model_len")
    return Baseline(
        sources=texts(document, "sources", name),
        vllm_version=text(start, "vllm_version"),
        generation=text(start, "generation"),
        token_figure=_token_figure(capacity),
        layers=text(start, "layers"),
        basis=text(start, "kv_cache_basis"),
        engines_expected=count(capacity, "engines_expected"),
        weakest=_of_engine(capacity),
        engines={str(engine.get("engine") or "0"): _of_engine(engine) for engine in start.get("engines", ())},
        memory=figures({key: mapping(start, "memory").get(key) for key in MEMORY_PARTS}, {}),
        options=options(told),
        arguments_told=bool(arguments),
        failure=_failure(start.get("failure"), name),
    )


def _of_engine(engine: Document) -> Mapping[str, Figure]:
    derived = mapping(engine, "derived")
    values = {key: engine.get(key, None) for key in CAPACITY_FIGURES}
    for key, value in values.items():
        if value is None and key in derived:
            values[key] = mapping(derived, key)["value"]
    return figures(values, mapping(engine, "rounding"))


def _failure(failure: Document | None, name: str) -> Failure | None:
    if failure is None:
        return None
    numbers = {key: number(failure[key], key) for key in _OF_FAILURE if failure.get(key) is not None}
    place = Place(text(failure, "source") or name, count(failure, "line") or 0)
    kind, message = FailureKind(failure["kind"]), text(failure, "message") or ""
    return Failure(kind, message, place, transient=failure.get("transient") is True, **cast(Any, numbers))


_OF_FAILURE = (
    "needed_bytes",
    "available_bytes",
    "requested_max_model_len",
    "kv_cache_tokens",
    "estimated_max_model_len",
    "requested_max_num_seqs",
    "mamba_blocks",
)


def _shown(figures: Mapping[str, Figure]) -> dict[str, object]:
    return {
        name: figure.low if figure.low == figure.high else [figure.low, figure.high] for name, figure in figures.items()
    }


def _token_figure(document: Document) -> TokenFigure | None:
    value = document.get("token_figure")
    return None if value is None else TokenFigure(value)


_READERS: Mapping[str, Callable[[Document, str], Baseline]] = {KIND: _of_baseline, "report": _of_report}
