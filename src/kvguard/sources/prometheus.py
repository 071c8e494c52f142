"""What production holds now, from the gauges that kvguard's sidecars expose to a Prometheus server, as a baseline.

`prometheus:URL?namespace=prod&pod=~vllm-.*&range=1d`: each parameter but `range` and `query` is a label (`=~` for a
pattern). Of each gauge the smallest value over the range and over all series is taken. `query={…}` gives the labels as
PromQL writes them; `query=EXPRESSION` over one of the gauges gives that figure alone.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote

from kvguard.errors import ConfigError
from kvguard.slo.baselines.baseline import Baseline, Figure
from kvguard.slotted import dataclass
from kvguard.sources.prometheus_query import Sample, instant_query, without_credentials
from kvguard.startup.report import TokenFigure
from kvguard.startup.versions import token_figure

Ask = Callable[[str, str], Sequence[Sample]]
"""Asks a server (by URL) a question in PromQL."""

GAUGES: Mapping[str, str] = {
    "kv_cache_tokens": "kvguard_kv_cache_tokens",
    "max_concurrency": "kvguard_max_concurrency",
    "gpu_blocks": "kvguard_gpu_blocks",
    "kv_cache_bytes": "kvguard_kv_cache_bytes",
    "weights_bytes": "kvguard_weights_bytes",
}
"""Figures of a baseline, and the gauge of each."""
_LENGTH = "kvguard_max_model_len_tokens"
_INFO = "kvguard_vllm_info"
_INFO_OPTIONS = ("model", "kv_cache_dtype", "dtype", "quantization")
_SIZE = re.compile(r"[0-9]{1,9}")
_INFO_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")

_RANGE = re.compile(r"(?:\d+(?:ms|[smhdwy]))+")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
DEFAULT_RANGE = "1h"


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of which server."""

    url: str
    selector: str
    """Label matchers in braces, or nothing."""
    range: str
    expression: str | None = None
    """PromQL over one gauge, given whole."""

    @property
    def name(self) -> str:
        """What messages call it: without a password."""
        return "prometheus:" + without_credentials(self.url) + (self.expression or self.selector)


def parse_query(text: str) -> Query:
    """Read `URL?label=value&range=1d`, `URL?query={…}` or `URL?query=EXPRESSION`.

    Raises:
        ConfigError: no URL of a server, a label that is none, or a range that is none.
    """
    url, _mark, rest = text.partition("?")
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"prometheus:{text}: write prometheus:http://HOST:9090?LABEL=VALUE&range=1d")
    labels, range_, written = [], DEFAULT_RANGE, None
    while rest:
        if rest.startswith("query="):  # the last one: PromQL has ampersands of its own
            written, rest = unquote(rest.removeprefix("query=")).strip(), ""
            continue
        part, _ampersand, rest = rest.partition("&")
        name, _equals, value = part.partition("=")
        if name == "range":
            range_ = value
        else:
            labels.append(_matcher(name, unquote(value)))
    if not _RANGE.fullmatch(range_):
        raise ConfigError(f"prometheus:{url}: range={range_} is not a duration of Prometheus: write range=1d")
    if written is not None and not written.startswith("{"):
        return Query(url.rstrip("/"), "", range_, written)
    selector = written or ("{" + ",".join(labels) + "}" if labels else "")
    return Query(url.rstrip("/"), selector, range_)


def _matcher(name: str, value: str) -> str:
    if not _LABEL.fullmatch(name):
        raise ConfigError(f"prometheus: {name!r} is not a label's name: write ?namespace=prod&pod=~vllm-.*")
    operator = "=~" if value.startswith("~") else "="
    escaped = value.removeprefix("~").replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}{operator}"{escaped}"'


def baseline_of_query(text: str, ask: Ask = instant_query) -> Baseline:
    """Ask the server, and make a baseline of its answers.

    Args:
        text: the query, as `parse_query` reads it.
        ask: what carries the questions; the network unless a test says otherwise.

    Raises:
        ConfigError: the query is wrong, matches nothing, or mixes deployments.
        SourceError: the server does not answer, or refuses the query.
    """
    query = parse_query(text)
    weakest = _expression(ask, query) if query.expression else _gauges(ask, query)
    if not weakest:
        raise ConfigError(f"{query.name}: no series matches: is kvguard scraped there, and are the labels right?")
    infos = () if query.expression else _newest(ask, query, _INFO)
    lengths = () if query.expression else _newest(ask, query, _LENGTH)
    versions = {info.labels.get("version", "") for info in infos}
    return Baseline(
        sources=(query.name,),
        starts=max(len(infos), 1),
        vllm_version=next(iter(versions)) if len(versions) == 1 else None,
        token_figure=_token_figure(versions),
        weakest=weakest,
        options=_options(query, infos, [sample.value for sample in lengths]),
    )


def _gauges(ask: Ask, query: Query) -> dict[str, Figure]:
    found = {}
    for figure, gauge in GAUGES.items():
        series = f"{gauge}{query.selector}[{query.range}]"
        lowest = ask(query.url, f"min(min_over_time({series}))")
        highest = ask(query.url, f"max(min_over_time({series}))")
        if lowest and highest:
            found[figure] = Figure(lowest[0].value, highest[0].value)
    return found


def _expression(ask: Ask, query: Query) -> dict[str, Figure]:
    expression = query.expression or ""
    named = [figure for figure, gauge in GAUGES.items() if re.search(rf"\b{gauge}\b", expression)]
    if len(named) != 1:
        raise ConfigError(f"{query.name}: a query must be over one gauge of: {', '.join(GAUGES.values())}")
    values = [sample.value for sample in ask(query.url, expression)]
    return {named[0]: Figure(min(values), max(values))} if values else {}


def _newest(ask: Ask, query: Query, metric: str) -> Sequence[Sample]:
    """The newest sample of each series over the range."""
    return ask(query.url, f"last_over_time({metric}{query.selector}[{query.range}])")


def _options(query: Query, infos: Sequence[Sample], lengths: Sequence[float]) -> dict[str, object]:
    """Options that all series agree on.

    Raises:
        ConfigError: several models, or several context lengths: not one deployment.
    """
    if len(set(lengths)) > 1:
        raise ConfigError(f"{query.name}: series of several max_model_len match: narrow them by labels")
    found: dict[str, object] = {"max_model_len": int(lengths[0])} if lengths else {}
    for name in (*_INFO_OPTIONS, *_INFO_SIZES):
        values = {info.labels.get(name, "") for info in infos} - {""}
        if name == "model" and len(values) > 1:
            raise ConfigError(
                f"{query.name}: series of several models match ({', '.join(sorted(values))}): narrow them"
            )
        if len(values) == 1:
            value = values.pop()
            if name not in _INFO_SIZES:
                found[name] = value
            elif _SIZE.fullmatch(value):  # somebody else's exporter may write anything there
                found[name] = int(value)
    return found


def _token_figure(versions: set[str]) -> TokenFigure | None:
    """What the token gauge means, where all series agree on it."""
    meant = {token_figure(version) for version in versions}
    return meant.pop() if len(meant) == 1 else None
