"""What is asked of a start: objectives, a workload, a regression bound, and what the gate does with the answer."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvguard.kvcache.load import Request
from kvguard.slotted import dataclass, field, replace

if TYPE_CHECKING:
    from kvguard.slo.baselines.baseline import Baseline


class Bound(StrEnum):
    """How an observed figure is held against its target."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    EQUAL = "equal"


class Stage(StrEnum):
    """What an objective speaks of: only start-up objectives gate, load never does."""

    STARTUP = "startup"
    WORKLOAD = "workload"
    RUNTIME = "runtime"
    REGRESSION = "regression"


class Severity(StrEnum):
    """What a warning does to the verdict."""

    FAIL = "fail"
    WARN = "warn"
    NOTE = "note"
    IGNORE = "ignore"


class GateMode(StrEnum):
    """Whether `/readyz` answers by the verdict."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class OnUnknown(StrEnum):
    """What the gate does while the verdict is unknown."""

    BLOCK = "block"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class ObjectiveKind:
    """One kind of objective; its key is both the SLO file's and, with dashes, the flag's."""

    key: str
    bound: Bound
    unit: str
    """`requests`, `tokens`, `bytes`, `engines`, `ratio`, or empty for a name."""
    stage: Stage
    help: str


OBJECTIVES: tuple[ObjectiveKind, ...] = (
    ObjectiveKind(
        "min_concurrency",
        Bound.AT_LEAST,
        "requests",
        Stage.STARTUP,
        "maximum concurrency at max_model_len, of the weakest engine",
    ),
    ObjectiveKind(
        "min_total_concurrency",
        Bound.AT_LEAST,
        "requests",
        Stage.STARTUP,
        "maximum concurrency at max_model_len, all engines together",
    ),
    ObjectiveKind(
        "min_kv_cache_tokens", Bound.AT_LEAST, "tokens", Stage.STARTUP, "KV cache size of the weakest engine"
    ),
    ObjectiveKind(
        "min_kv_cache", Bound.AT_LEAST, "bytes", Stage.STARTUP, "KV cache memory of the tightest rank, as 3.4GiB"
    ),
    ObjectiveKind("max_weights", Bound.AT_MOST, "bytes", Stage.STARTUP, "weights of the largest rank, as 15.5GiB"),
    ObjectiveKind("expect_max_model_len", Bound.EQUAL, "tokens", Stage.STARTUP, "max_model_len in force"),
    ObjectiveKind(
        "expect_kv_cache_dtype", Bound.EQUAL, "", Stage.STARTUP, "KV cache dtype, as vLLM spells it (fp8, auto, …)"
    ),
    ObjectiveKind(
        "expect_engines", Bound.EQUAL, "engines", Stage.STARTUP, "engines that must report (data-parallel replicas)"
    ),
    ObjectiveKind(
        "concurrent_requests",
        Bound.AT_LEAST,
        "requests",
        Stage.WORKLOAD,
        "requests of the workload that must fit without preemption",
    ),
    ObjectiveKind(
        "max_request_share",
        Bound.AT_MOST,
        "ratio",
        Stage.WORKLOAD,
        "share of the pool that the longest request let through may take, as 50%%",
    ),
    ObjectiveKind(
        "max_waiting_requests", Bound.AT_MOST, "requests", Stage.RUNTIME, "peak of waiting requests in the stats lines"
    ),
    ObjectiveKind(
        "max_kv_cache_usage", Bound.AT_MOST, "ratio", Stage.RUNTIME, "peak KV cache usage in the stats lines, as 95%%"
    ),
    ObjectiveKind("max_preemptions", Bound.AT_MOST, "requests", Stage.RUNTIME, "preemptions in the log"),
    ObjectiveKind(
        "max_drop", Bound.AT_MOST, "ratio", Stage.REGRESSION, "loss of capacity against the baseline, as 5%%"
    ),
)
"""Every objective there is, in the order of reports."""


KINDS: Mapping[str, ObjectiveKind] = MappingProxyType({kind.key: kind for kind in OBJECTIVES})
"""The same by key."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An indicator and its bound: `target` in the kind's unit (a ratio for percentages, bytes for sizes)."""

    kind: ObjectiveKind
    target: float | str
    severity: Severity = Severity.FAIL
    """What a miss does to the verdict; anything but `fail` leaves it open to neither a miss nor an unknown."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests that the deployment must hold, in tokens each."""

    prompt_tokens: int = 0
    """Tokens of the whole prompt, its shared prefix included; 0 where no request is declared."""
    output_tokens: int = 0
    shared_prefix_tokens: int = 0
    """The first tokens of every prompt that all requests have in common."""
    max_prompt_tokens: int | None = None
    """The longest prompt that is let through, where something in front of vLLM bounds it."""
    uniform_layers: bool = False
    """Declared by the user: the model has one kind of layer, so tokens may be divided."""
    model_config: Mapping[str, object] | None = None
    """The model's config.json, where it was given."""
    model_config_name: str | None = None

    @property
    def request_tokens(self) -> int:
        """Tokens of one request at its end, prompt and output; 0 where no request is declared."""
        return self.prompt_tokens + self.output_tokens if self.prompt_tokens else 0

    @property
    def request(self) -> Request:
        """One request, as the arithmetic takes it."""
        return Request(self.prompt_tokens, self.output_tokens, self.shared_prefix_tokens)

    @property
    def longest_request_tokens(self) -> int | None:
        """Tokens of the longest request that is let through; `None` where only max_model_len bounds it."""
        return None if self.max_prompt_tokens is None else self.max_prompt_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Gate:
    """How `/readyz` follows the verdict."""

    mode: GateMode = GateMode.ENFORCE
    on_unknown: OnUnknown = OnUnknown.BLOCK
    recheck: bool = False
    """Whether an edited SLO may take a start out of service that has once passed."""


DEFAULT_SEVERITIES: Mapping[str, Severity] = MappingProxyType(
    {
        "context-auto-reduced": Severity.FAIL,
        "request-exceeds-pool": Severity.FAIL,
        "request-exceeds-context": Severity.FAIL,
        "context-exceeds-pool": Severity.FAIL,
        "no-kv-cache-memory": Severity.FAIL,
        "start-not-finished": Severity.WARN,
        "died-after-ready": Severity.WARN,
        "restart-loop": Severity.WARN,
        "restart-unproven": Severity.WARN,
        "rank-values-differ": Severity.WARN,
        "engines-missing": Severity.WARN,
        "nodes-differ": Severity.WARN,
        "log-without-start": Severity.WARN,
        "thin-margin": Severity.WARN,
        "graph-estimate-gap": Severity.WARN,
        "blocks-overridden": Severity.WARN,
        "profiling-skipped": Severity.WARN,
        "newer-than-tested": Severity.WARN,
        "unrecognized-capacity-line": Severity.WARN,
        "log-and-metrics-disagree": Severity.WARN,
        "model-config-not-used": Severity.WARN,
        "layers-not-uniform": Severity.WARN,
        "load-differs-from-plan": Severity.WARN,
        "implausible-gain": Severity.WARN,
        "arguments-differ": Severity.WARN,
        "load-matches-plan": Severity.NOTE,
        "concurrency-is-no-cap": Severity.NOTE,
        "capacity-from-metrics": Severity.NOTE,
        "graphs-not-counted": Severity.NOTE,
        "hybrid-token-figure": Severity.NOTE,
        "restarted": Severity.NOTE,
        "resized-at-run-time": Severity.NOTE,
    }
)
"""Every warning code and what it does unless the SLO says otherwise."""


@dataclass(frozen=True, slots=True)
class Slo:
    """A set of objectives, and how they are judged. Without any, the start alone is judged."""

    objectives: tuple[Objective, ...] = ()
    """In the order of reports."""
    require_ready: bool = False
    ready_within: float | None = None
    """Seconds from the first line to ready; until then unknown, after that a miss."""
    workload: Workload | None = None
    gate: Gate = Gate()
    severities: Mapping[str, Severity] = field(default_factory=lambda: MappingProxyType({}))
    """What the SLO says of warnings, over `DEFAULT_SEVERITIES`."""
    strict: bool = False
    """Whether a warning of severity `warn` fails as well."""
    baseline: "Baseline | None" = None
    """What to hold the start against."""

    def severity(self, code: str) -> Severity:
        """What the warning of that code does to the verdict."""
        severity = self.severities.get(code, DEFAULT_SEVERITIES.get(code, Severity.WARN))
        return Severity.FAIL if self.strict and severity is Severity.WARN else severity

    def target(self, key: str) -> float | str | None:
        """What is asked under that key, in the kind's unit; `None` where nothing is."""
        return next((objective.target for objective in self.objectives if objective.kind.key == key), None)

    def at_startup(self) -> "Slo":
        """The same without the run-time objectives: load must not take a server out of service."""
        return replace(self, objectives=tuple(o for o in self.objectives if o.kind.stage is not Stage.RUNTIME))
