"""`kvguard fleet`: all guards that one Prometheus scrapes, the odd ones first."""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from kvguard.cli import exit_status
from kvguard.cli.output import add_output_flags, destinations, write_reports
from kvguard.cli.standard_streams import say
from kvguard.slo.verdict import Outcome
from kvguard.slotted import replace

if TYPE_CHECKING:
    from kvguard.render.fleet_table import Replica
    from kvguard.sources.prometheus_query import Sample

_OUTCOMES: Mapping[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
FORMS = ("text", "json")
UNEVEN = 0.9
"""Below this share of its peers' median a replica is odd, as in the alert KvguardFleetUneven."""
LOST = 0.95
"""Below this share of its baseline a replica is odd."""
ASKED = "kvguard_(vllm_info|verdict|kv_cache_tokens|max_concurrency|baseline_ratio)"
TOLD_WARNINGS: Mapping[str, str] = {
    "context-auto-reduced": "context cut by vLLM",
    "restart-loop": "restart loop",
    "died-after-ready": "died after ready",
    "engines-missing": "engines missing",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the server, what to choose of it, and the output."""
    parser.add_argument("--prometheus", required=True, metavar="URL", help="base URL of the Prometheus server")
    parser.add_argument(
        "--selector", default="", metavar="MATCHERS", help='label matchers, as namespace="llm", pod=~"decode-.*"'
    )
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="bearer token for the server")
    add_output_flags(parser, FORMS)


def run(arguments: argparse.Namespace) -> int:
    """Draw the table; 1 if a replica fails, else 3 if one is unknown or none is there."""
    from kvguard.render.fleet_table import fleet_document, render_fleet
    from kvguard.render.json_report import render_json
    from kvguard.sources.documents import read_text
    from kvguard.sources.prometheus_query import instant_query

    places = destinations(arguments, FORMS)
    token = read_text(arguments.token_file).strip() if arguments.token_file else None
    matchers = f", {arguments.selector}" if arguments.selector else ""
    query = f'{{__name__=~"{ASKED}"{matchers}}} or {{__name__="kvguard_warning"{matchers}}} == 1'
    replicas = replicas_of(instant_query(arguments.prometheus, query, token))
    if not replicas:
        say("kvguard: no guard is scraped there: is the monitor on, and does the selector fit?")
        return exit_status.UNKNOWN
    document = fleet_document(replicas)
    write_reports(
        places,
        lambda form, terminal: render_json(document) if form == "json" else render_fleet(replicas, terminal),
    )
    outcomes = {replica.outcome for replica in replicas}
    if Outcome.FAIL in outcomes:
        return exit_status.MISSED
    return exit_status.UNKNOWN if Outcome.UNKNOWN in outcomes else exit_status.MET


def replicas_of(samples: "Iterable[Sample]") -> "list[Replica]":
    """One replica a scraped guard, the odd ones first."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(_name(sample.labels), []).append(sample)
    replicas = [_replica(name, found) for name, found in by_name.items()]
    return sorted(_compared(replicas), key=lambda one: one.order)


def _name(labels: Mapping[str, str]) -> str:
    """The pod that is read where it is another one, else the guard's own pod, else the scraped address."""
    pod = labels.get("kvguard_reads") or labels.get("pod")
    if pod is None:
        return labels.get("instance", "?")
    return f"{labels['namespace']}/{pod}" if "namespace" in labels else pod


def _replica(name: str, samples: "Iterable[Sample]") -> "Replica":
    from kvguard.render.fleet_table import Replica

    values: dict[str, list[float]] = {}
    info: Mapping[str, str] = {}
    outcome, warnings = Outcome.UNKNOWN, []
    for sample in samples:
        metric = sample.labels.get("__name__", "").removeprefix("kvguard_")
        if metric == "vllm_info":
            info = sample.labels
        elif metric == "verdict" and sample.value == 1:
            outcome = _OUTCOMES.get(sample.labels.get("kvguard_verdict", ""), Outcome.UNKNOWN)
        elif metric == "warning" and sample.labels.get("code") in TOLD_WARNINGS:
            warnings.append(TOLD_WARNINGS[sample.labels["code"]])
        else:
            values.setdefault(metric, []).append(sample.value)
    return Replica(
        name=name,
        outcome=outcome,
        model=info.get("served_model_name") or info.get("model") or None,
        vllm_version=info.get("version") or None,
        kv_cache_tokens=_total(values.get("kv_cache_tokens")),
        max_concurrency=_total(values.get("max_concurrency")),
        baseline_ratio=min(values["baseline_ratio"]) if "baseline_ratio" in values else None,
        oddities=tuple(sorted(warnings)),
    )


def _total(values: list[float] | None) -> float | None:
    return sum(values) if values else None


def _compared(replicas: "Iterable[Replica]") -> "Iterable[Replica]":
    """The replicas with what sets each apart from those of its model, and from its baseline."""
    peers: dict[str | None, list[Replica]] = {}
    for one in replicas:
        peers.setdefault(one.model, []).append(one)
    for group in peers.values():
        versions = Counter(one.vllm_version for one in group if one.vllm_version)
        usual = versions.most_common(1)[0][0] if versions else None
        sizes = [one.kv_cache_tokens for one in group if one.kv_cache_tokens is not None]
        middle = median(sizes) if sizes else None
        for one in group:
            ratio = one.kv_cache_tokens / middle if one.kv_cache_tokens is not None and middle else None
            yield replace(one, peer_ratio=ratio, oddities=(*_odd(one, ratio, usual), *one.oddities))


def _odd(one: "Replica", ratio: float | None, usual: str | None) -> Iterable[str]:
    if ratio is not None and ratio < UNEVEN:
        yield f"{ratio:.0%} of its peers"
    if one.baseline_ratio is not None and one.baseline_ratio < LOST:
        yield "below its baseline"
    if one.vllm_version and one.vllm_version != usual:
        yield f"not {usual} as the others"
