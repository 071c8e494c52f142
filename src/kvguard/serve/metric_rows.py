"""Every metric there is: the one table that the collector walks and `docs/metrics.md` is held to.

Base units; a fact that is not known gives no sample, never zero. Labels hold an engine's index, names of kvguard's own
tables, and in the two info metrics what the operator has configured: nothing that a client of the server can write.
"""

from collections.abc import Callable, Iterable

from kvguard.render.log_text import shown
from kvguard.serve.memory_samples import memory_samples
from kvguard.serve.metric_row import Kind, MetricRow, Sample, Value, one, state_set
from kvguard.serve.own_metric_rows import OWN_METRIC_ROWS
from kvguard.serve.snapshot import Snapshot
from kvguard.slo.objectives import DEFAULT_SEVERITIES, Severity
from kvguard.slo.verdict import CheckResult, Outcome
from kvguard.startup.report import Capacity, Phase, Start

LONGEST_LABEL = 200


def _start(snapshot: Snapshot) -> Start | None:
    return snapshot.verdict.report.start


def _of_start(pick: Callable[[Start], Value]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda snapshot: [] if (start := _start(snapshot)) is None else one(pick(start))


def _by_engine(pick: Callable[[Capacity], Value]) -> Callable[[Snapshot], Iterable[Sample]]:
    def samples(snapshot: Snapshot) -> Iterable[Sample]:
        start = _start(snapshot)
        for engine in start.engines if start else ():
            value = pick(engine)
            if value is not None and engine.engine is not None:
                yield (engine.engine,), float(value)

    return samples


def _by_objective(pick: Callable[[CheckResult], Value]) -> Callable[[Snapshot], Iterable[Sample]]:
    def samples(snapshot: Snapshot) -> Iterable[Sample]:
        for check in snapshot.verdict.checks:
            value = pick(check)
            if value is not None:
                yield (check.objective,), float(value)

    return samples


def _met(check: CheckResult) -> Value:
    return None if check.outcome is Outcome.UNKNOWN else check.outcome is Outcome.PASS


def _target(check: CheckResult) -> Value:
    return check.target if isinstance(check.target, int | float) else None


def _ratio(check: CheckResult) -> Value:
    target = _target(check)
    return check.observed / target if isinstance(check.observed, int | float) and target else None


def _workload(snapshot: Snapshot) -> Iterable[Sample]:
    """The low end, which decides; of all engines, as it is judged."""
    for check in snapshot.verdict.checks:
        if check.objective == "concurrent_requests" and check.low is not None:
            yield (), float(check.low)


def _baseline(snapshot: Snapshot) -> Iterable[Sample]:
    for check in snapshot.verdict.checks:
        if check.objective == "max_drop" and isinstance(check.observed, int | float):
            yield (), 1.0 - check.observed


def _warnings(snapshot: Snapshot) -> Iterable[Sample]:
    raised = {one.code for one in snapshot.verdict.warnings if one.severity is not Severity.IGNORE}
    return [((code,), float(code in raised)) for code in sorted({*DEFAULT_SEVERITIES, *raised})]


def _slo_met(snapshot: Snapshot) -> Iterable[Sample]:
    outcome = snapshot.verdict.outcome
    return one(None if outcome is Outcome.UNKNOWN else outcome is Outcome.PASS)


def _phase(snapshot: Snapshot) -> Iterable[Sample]:
    start = _start(snapshot)
    return state_set(Phase, start.phase if start else Phase.NONE)


def _timings(snapshot: Snapshot) -> Iterable[Sample]:
    start = _start(snapshot)
    if start is not None:
        for part in ("load", "compile", "profile", "graphs", "init", "ready"):
            seconds = getattr(start.timings, part)
            if seconds is not None:
                yield (part,), float(seconds)


_INFO = (
    ("version", "vllm_version"),
    ("model", "model"),
    ("served_model_name", "served_model_name"),
    ("kv_cache_dtype", "kv_cache_dtype"),
    ("dtype", "dtype"),
    ("quantization", "quantization"),
    ("tensor_parallel_size", "tensor_parallel_size"),
    ("pipeline_parallel_size", "pipeline_parallel_size"),
    ("data_parallel_size", "data_parallel_size"),
)


def _vllm(snapshot: Snapshot) -> Iterable[Sample]:
    start = _start(snapshot)
    if start is None:
        return []
    values = {label: getattr(start, fact) for label, fact in _INFO}
    return [((), {label: "" if value is None else shown(str(value), LONGEST_LABEL) for label, value in values.items()})]


_ENGINE = ("engine",)
_OBJECTIVE = ("objective",)

METRIC_ROWS: tuple[MetricRow, ...] = (
    # --- capacity of the newest start, as vLLM printed it ------------------------------------------------------------
    MetricRow(
        "kv_cache_tokens",
        Kind.GAUGE,
        "Tokens that the engine's KV cache holds, as vLLM printed it at start-up.",
        _by_engine(lambda engine: engine.kv_cache_tokens),
        _ENGINE,
    ),
    MetricRow(
        "kv_cache_bytes",
        Kind.GAUGE,
        "Memory for the KV cache on the tightest rank of the engine, in bytes.",
        _by_engine(lambda engine: engine.kv_cache_bytes),
        _ENGINE,
    ),
    MetricRow(
        "gpu_blocks",
        Kind.GAUGE,
        "Blocks in the engine's KV cache pool (vLLM's num_gpu_blocks).",
        _by_engine(lambda engine: engine.gpu_blocks),
        _ENGINE,
    ),
    MetricRow(
        "max_concurrency",
        Kind.GAUGE,
        "Requests of max_model_len tokens that fit into the engine's KV cache at once, as vLLM printed it.",
        _by_engine(lambda engine: engine.max_concurrency),
        _ENGINE,
    ),
    MetricRow(
        "weights_bytes",
        Kind.GAUGE,
        "Memory of the model's weights on the largest rank of the engine, in bytes.",
        _by_engine(lambda engine: engine.weights_bytes),
        _ENGINE,
    ),
    MetricRow("memory_bytes", Kind.GAUGE, "Memory of the tightest rank by part, in bytes.", memory_samples, ("part",)),
    MetricRow(
        "workload_concurrency",
        Kind.GAUGE,
        "Requests of the declared workload that the server holds at once, in whole blocks: as many on each engine as "
        "on the weakest; the low end where the log leaves it open.",
        _workload,
    ),
    MetricRow(
        "max_model_len_tokens",
        Kind.GAUGE,
        "Longest request that the server takes, prompt and output, in tokens.",
        _of_start(lambda start: start.capacity.weakest.max_model_len or start.max_model_len),
    ),
    MetricRow(
        "engines_reported",
        Kind.GAUGE,
        "Engines (data-parallel replicas) of the newest start that have told their capacity.",
        _of_start(lambda start: start.capacity.engines),
    ),
    MetricRow(
        "engines_expected",
        Kind.GAUGE,
        "Engines that must tell their capacity before the newest start can be judged.",
        _of_start(lambda start: start.capacity.engines_expected),
    ),
    # --- verdict and gate --------------------------------------------------------------------------------------------
    MetricRow(
        "verdict",
        Kind.STATE_SET,
        "What the evidence says of the newest start under the SLO: exactly one of the three is 1.",
        lambda snapshot: state_set(Outcome, snapshot.verdict.outcome),
    ),
    MetricRow(
        "slo_met",
        Kind.GAUGE,
        "1 if the verdict is pass, 0 if it is fail; absent while it is unknown.",
        _slo_met,
    ),
    MetricRow(
        "gate_open",
        Kind.GAUGE,
        "1 if /readyz answers 200, 0 if it answers 503.",
        lambda snapshot: one(snapshot.gate.open),
    ),
    MetricRow(
        "objective_met",
        Kind.GAUGE,
        "1 if the objective is met, 0 if it is missed; absent while it is unknown.",
        _by_objective(_met),
        _OBJECTIVE,
    ),
    MetricRow(
        "objective_target",
        Kind.GAUGE,
        "What the objective asks for, in its own base unit; absent where it is a name.",
        _by_objective(_target),
        _OBJECTIVE,
    ),
    MetricRow(
        "objective_ratio",
        Kind.GAUGE,
        "Observed figure divided by the target: below 1 a min_ objective is missed, above 1 a max_ objective is.",
        _by_objective(_ratio),
        _OBJECTIVE,
    ),
    MetricRow(
        "baseline_ratio",
        Kind.GAUGE,
        "Capacity of the newest start divided by the baseline's: 0.9 is a loss of 10 %.",
        _baseline,
    ),
    MetricRow(
        "warning",
        Kind.GAUGE,
        "1 if the newest start raises the warning and the SLO does not ignore it, else 0.",
        _warnings,
        ("code",),
    ),
    # --- the course of the start -------------------------------------------------------------------------------------
    MetricRow(
        "startup_phase",
        Kind.STATE_SET,
        "How far the newest start has come: exactly one phase is 1; none before a line of a start was seen.",
        _phase,
    ),
    MetricRow(
        "starts",
        Kind.COUNTER,
        "Starts of the server that the log has shown.",
        lambda snapshot: one(snapshot.verdict.report.starts),
    ),
    MetricRow(
        "startup_seconds",
        Kind.GAUGE,
        "Seconds that a part of the newest start took; ready counts from the start's first line.",
        _timings,
        ("phase",),
    ),
    MetricRow(
        "vllm",
        Kind.INFO,
        "Version and configuration of the server, from its start-up lines; empty where they do not say.",
        _vllm,
    ),
    *OWN_METRIC_ROWS,
)
