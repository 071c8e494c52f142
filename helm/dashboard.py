"""The Grafana dashboard as a table of panels: what is asked, how it is read, where it stands."""

from dataclasses import dataclass, field
from typing import Any

WIDTH = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# The guard's own series, and the fleet's (made by rules/recording.yaml).
GUARD = 'job=~"$job", instance=~"$instance"'
MODEL = 'model_name=~"$model"'
REPLICA = "{{pod}} {{instance}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `targets` are pairs of a query and its legend."""

    title: str
    description: str
    targets: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    stacked: bool = False
    decimals: int | None = None
    states: tuple[tuple[float, str, str], ...] = ()
    """Value, text and colour, where the values are states."""
    columns: tuple[tuple[str, str], ...] = field(default=())
    """Columns of a table: the field's name and the heading."""


VERDICTS = ((1, "pass", "green"), (0, "fail", "red"), (-1, "unknown", "#8e8e8e"))

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Fleet",
        (
            Panel(
                "Replicas that meet their SLO",
                "Guards whose verdict of the newest start is pass.",
                ((f"count(kvguard_slo_met{{{GUARD}}} == 1) or vector(0)", "pass"),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                "Below their SLO",
                "Guards whose verdict is fail: KvguardCapacityBelowSLO says which.",
                ((f"count(kvguard_slo_met{{{GUARD}}} == 0) or vector(0)", "fail"),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                "Without a verdict",
                "Guards that know no capacity yet, or cannot read their log.",
                ((f'sum(kvguard_verdict{{{GUARD}, kvguard_verdict="unknown"}})', "unknown"),),
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                "Capacity",
                "Requests that fit without preemption: of the declared workload, else of max_model_len tokens.",
                ((f"model:kvguard_capacity_requests:sum{{{MODEL}}}", "{{model_name}}"),),
                kind="stat",
                width=4,
                height=4,
                decimals=1,
            ),
            Panel(
                "Weakest replica",
                "The same for the replica that holds least, which a balancer that spreads evenly fills first.",
                ((f"model:kvguard_capacity_requests:min{{{MODEL}}}", "{{model_name}}"),),
                kind="stat",
                width=4,
                height=4,
                decimals=1,
            ),
            Panel(
                "Headroom",
                "Capacity less what runs and waits now. Negative: more is asked than fits.",
                ((f"model:kvguard_headroom_requests:sum{{{MODEL}}}", "{{model_name}}"),),
                kind="stat",
                width=4,
                height=4,
                decimals=1,
            ),
        ),
    ),
    (
        "Verdict",
        (
            Panel(
                "Verdict by replica",
                "What the evidence says of the newest start under the SLO.",
                (
                    (
                        f"kvguard_slo_met{{{GUARD}}} or on (job, instance) "
                        f'-kvguard_verdict{{{GUARD}, kvguard_verdict="unknown"}}',
                        REPLICA,
                    ),
                ),
                kind="state-timeline",
                width=12,
                states=VERDICTS,
            ),
            Panel(
                "Gate by replica",
                "Whether /readyz lets traffic in. In observe mode it does whatever the verdict is.",
                ((f"kvguard_gate_open{{{GUARD}}}", REPLICA),),
                kind="state-timeline",
                width=12,
                states=((1, "open", "green"), (0, "closed", "red")),
            ),
            Panel(
                "Objectives: observed against target",
                "A min_ objective is missed below 1, a max_ objective above 1.",
                ((f"kvguard_objective_ratio{{{GUARD}}}", f"{{{{objective}}}} {REPLICA}"),),
                width=12,
                decimals=2,
            ),
            Panel(
                "Against the baseline",
                "Capacity of the newest start divided by the baseline's.",
                ((f"kvguard_baseline_ratio{{{GUARD}}}", REPLICA),),
                unit="percentunit",
                width=12,
            ),
        ),
    ),
    (
        "Capacity",
        (
            Panel(
                "KV cache size by replica",
                "Tokens that the engines of a replica hold together, as vLLM printed them.",
                ((f"sum by (job, namespace, pod, instance) (kvguard_kv_cache_tokens{{{GUARD}}})", REPLICA),),
            ),
            Panel(
                "Maximum concurrency by replica",
                "Requests of max_model_len tokens that fit, as vLLM printed it; all engines of the replica.",
                ((f"sum by (job, namespace, pod, instance) (kvguard_max_concurrency{{{GUARD}}})", REPLICA),),
                decimals=2,
            ),
            Panel(
                "Requests of the declared workload",
                "What a replica holds, in whole blocks, all its engines as the weakest. Needs a workload in the SLO.",
                ((f"kvguard_workload_concurrency{{{GUARD}}}", REPLICA),),
                decimals=1,
            ),
            Panel(
                "Memory budget",
                "Where the GPU's memory went on the rank that decides, by part, as the start-up log tells it.",
                ((f"avg by (part) (kvguard_memory_bytes{{{GUARD}}})", "{{part}}"),),
                unit="bytes",
                stacked=True,
                width=12,
            ),
            Panel(
                "Weights and KV cache by replica",
                "The two parts that every start reports, of the first engine.",
                (
                    (f'kvguard_weights_bytes{{{GUARD}, engine="0"}}', f"weights {REPLICA}"),
                    (f'kvguard_kv_cache_bytes{{{GUARD}, engine="0"}}', f"KV cache {REPLICA}"),
                ),
                unit="bytes",
                stacked=True,
                width=12,
            ),
        ),
    ),
    (
        "Load (vLLM's own metrics)",
        (
            Panel(
                "Capacity against demand",
                "Requests that fit, and requests that run or wait, by model.",
                (
                    (f"model:kvguard_capacity_requests:sum{{{MODEL}}}", "fits {{model_name}}"),
                    (f"model:vllm_requests:sum{{{MODEL}}}", "runs or waits {{model_name}}"),
                ),
            ),
            Panel(
                "Waiting requests",
                "Requests that wait inside a server. Above 10 for five minutes: KvguardRequestsWaiting.",
                ((f"vllm:num_requests_waiting{{{MODEL}}}", REPLICA),),
            ),
            Panel(
                "KV cache usage",
                "Share of the KV cache in use. Above 95 % for five minutes: KvguardCacheNearlyFull.",
                ((f"vllm:kv_cache_usage_perc{{{MODEL}}} or vllm:gpu_cache_usage_perc{{{MODEL}}}", REPLICA),),
                unit="percentunit",
            ),
            Panel(
                "Preemptions",
                "Requests thrown out and started over, by the second.",
                ((f"rate(vllm:num_preemptions_total{{{MODEL}}}[$__rate_interval])", REPLICA),),
                unit="cps",
                width=24,
            ),
        ),
    ),
    (
        "Starts",
        (
            Panel(
                "Phase of the newest start",
                "How far each server has come.",
                ((f"kvguard_startup_phase{{{GUARD}}} == 1", f"{{{{kvguard_startup_phase}}}} {REPLICA}"),),
                kind="state-timeline",
                width=12,
                states=((1, "now", "blue"),),
            ),
            Panel(
                "Starts",
                "Starts that the logs have shown.",
                ((f"kvguard_starts_total{{{GUARD}}}", REPLICA),),
                width=6,
            ),
            Panel(
                "Time to ready, by part",
                "Seconds of the newest start; the startup probe must allow the longest.",
                ((f"max by (phase) (kvguard_startup_seconds{{{GUARD}}})", "{{phase}}"),),
                kind="bargauge",
                unit="s",
                width=6,
            ),
            Panel(
                "Warnings",
                "Replicas that raise each warning.",
                ((f"sum by (code) (kvguard_warning{{{GUARD}}})", "{{code}}"),),
                width=12,
            ),
            Panel(
                "What runs where",
                "Version and configuration, from the start-up lines.",
                ((f"kvguard_vllm_info{{{GUARD}}}", ""),),
                kind="table",
                width=12,
                columns=(
                    ("pod", "pod"),
                    ("instance", "instance"),
                    ("model", "model"),
                    ("version", "vLLM"),
                    ("kv_cache_dtype", "KV cache"),
                    ("quantization", "quantization"),
                ),
            ),
        ),
    ),
    (
        "The guard itself",
        (
            Panel(
                "Time since the last look at the log",
                "Moves with every look, whether or not the log has grown. Over 5 minutes: KvguardReaderStale.",
                ((f"time() - kvguard_log_last_read_timestamp_seconds{{{GUARD}}}", REPLICA),),
                unit="s",
                width=12,
            ),
            Panel(
                "Log read",
                "Bytes of the log read by the second.",
                ((f"rate(kvguard_log_bytes_total{{{GUARD}}}[$__rate_interval])", REPLICA),),
                unit="Bps",
                width=12,
            ),
            Panel(
                "Log still to be read",
                "Over 100 MB for minutes: KvguardReaderBehind.",
                ((f"kvguard_log_unread_bytes{{{GUARD}}}", REPLICA),),
                unit="bytes",
                width=12,
            ),
            Panel(
                "Lines that look like capacity in an unknown wording",
                "Above 0: `kvguard explain` shows them.",
                ((f"kvguard_log_lines_unrecognized_total{{{GUARD}}}", REPLICA),),
                width=12,
            ),
        ),
    ),
)

VARIABLES = (
    ("job", "Job", "label_values(kvguard_build_info, job)"),
    ("instance", "Guard", 'label_values(kvguard_build_info{job=~"$job"}, instance)'),
    ("model", "Model", "label_values(instance_model:kvguard_vllm:info, model_name)"),
)


def dashboard() -> dict[str, Any]:
    """The dashboard's JSON."""
    return {
        "title": "kvguard: KV-cache capacity of vLLM",
        "uid": "kvguard-capacity",
        "description": "What each vLLM server can hold, against its SLO, its baseline, its peers and its load.",
        "tags": ["kvguard", "vllm"],
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), *(_variable(*one) for one in VARIABLES)]},
        "annotations": {"list": []},
        "panels": list(_panels()),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panels() -> Any:
    number = y = 0
    for title, panels in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, y, WIDTH, 1), "panels": []}
        y += 1
        x = highest = 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, highest = 0, y + highest, 0
            number += 1
            yield {"id": number, **_panel(panel), "gridPos": _place(x, y, panel.width, panel.height)}
            x, highest = x + panel.width, max(highest, panel.height)
        y += highest


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "mappings": _mappings(panel)}
    if panel.decimals is not None:
        defaults["decimals"] = panel.decimals
    if panel.stacked:
        defaults["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 60, "lineWidth": 0}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"textMode": "value_and_name"} if panel.kind == "stat" else {},
        "targets": [_target(panel, number, *target) for number, target in enumerate(panel.targets)],
        "transformations": _transformations(panel),
    }


def _target(panel: Panel, number: int, expression: str, legend: str) -> dict[str, Any]:
    now = panel.kind in {"stat", "table", "bargauge"}
    return {
        "refId": chr(ord("A") + number),
        "datasource": DATASOURCE,
        "expr": expression,
        "legendFormat": legend,
        "instant": now,
        "range": not now,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _mappings(panel: Panel) -> list[dict[str, Any]]:
    if not panel.states:
        return []
    options = {f"{value:g}": {"text": text, "color": colour} for value, text, colour in panel.states}
    return [{"type": "value", "options": options}]


def _transformations(panel: Panel) -> list[dict[str, Any]]:
    if not panel.columns:
        return []
    names = [name for name, _ in panel.columns]
    return [
        {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
        {
            "id": "organize",
            "options": {
                "indexByName": {name: place for place, name in enumerate(names)},
                "renameByName": dict(panel.columns),
            },
        },
    ]
