"""What a person asked for, from a file and from flags, as one flat mapping of read values; and the `Slo` it makes."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvguard.errors import ConfigError
from kvguard.slo.keys import BY_NAME, KEYS
from kvguard.slo.objectives import KINDS, Gate, GateMode, Objective, OnUnknown, Severity, Slo, Workload
from kvguard.slotted import dataclass, field
from kvguard.units import format_quantity

if TYPE_CHECKING:
    from kvguard.slo.baselines.baseline import Baseline

DEFAULT_MAX_DROP = 0.05
"""A baseline alone asks for this: what rounding and a profile run's spread do not explain."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Values by key name, already in base units, and severities by warning code or objective."""

    values: Mapping[str, float | int | str | bool] = field(default_factory=lambda: MappingProxyType({}))
    warnings: Mapping[str, Severity] = field(default_factory=lambda: MappingProxyType({}))
    severity: Mapping[str, Severity] = field(default_factory=lambda: MappingProxyType({}))
    strict: bool = False

    def over(self, base: "Settings") -> "Settings":
        """These settings where they say something, those of `base` elsewhere."""
        return Settings(
            {**base.values, **self.values},
            {**base.warnings, **self.warnings},
            {**base.severity, **self.severity},
            self.strict or base.strict,
        )

    def text(self, name: str) -> str | None:
        """The value of a key that is a text; `None` where it is not set."""
        value = self.values.get(name)
        return None if value is None else str(value)


def slo_of(
    settings: Settings,
    model_config: Mapping[str, object] | None = None,
    baseline: "Baseline | None" = None,
) -> Slo:
    """The SLO that those settings make; what `model_config` and `baseline` name has been read by the caller.

    Raises:
        ConfigError: keys that only make sense together are not.
    """
    for problem in problems(settings):
        raise ConfigError(problem)
    values = dict(settings.values)
    if baseline is not None:
        values.setdefault("max_drop", DEFAULT_MAX_DROP)
    return Slo(
        objectives=_objectives(values, settings.severity),
        require_ready=bool(values.get("require_ready", False)),
        ready_within=_optional_float(values.get("ready_within")),
        workload=_workload(values, model_config, settings.text("model_config")),
        gate=_gate(values),
        severities=settings.warnings,
        strict=settings.strict,
        baseline=baseline,
    )


def problems(settings: Settings) -> tuple[str, ...]:
    """What does not fit together, a line each: the key by its section, and what it lacks."""
    values, found = settings.values, []
    for name, needed in _NEEDS:
        if name in values and not any(other in values for other in needed):
            key, other = BY_NAME[name], BY_NAME[needed[0]]
            found.append(f"{key.section}.{name} needs {other.section}.{other.name} ({other.flag})")
    shared, prompt = values.get("shared_prefix_tokens", 0), values.get("prompt_tokens")
    if prompt is not None and float(shared) > float(prompt):
        found.append(
            f"workload.shared_prefix_tokens ({shared}) is more than workload.prompt_tokens ({prompt}), whose part it is"
        )
    found.extend(_met_by_all_or_none(values))
    return tuple(found)


def _met_by_all_or_none(values: Mapping[str, float | int | str | bool]) -> Iterator[str]:
    """Targets that templates fill in and nobody means: they would pass every server, or none."""
    for name, value in values.items():
        if name in EMPTY and float(value) == EMPTY[name]:
            key = BY_NAME[name]
            shown = format_quantity(float(value), key.unit)
            yield f"{key.section}.{name} of {shown} asks for nothing: leave it out, or write what is needed"
    together = values.get("concurrent_requests", 0)
    if not float(together).is_integer():
        yield f"workload.concurrent_requests ({together:g}) is not a whole number of requests"


EMPTY: Mapping[str, float] = MappingProxyType(
    {
        "min_concurrency": 0,
        "min_total_concurrency": 0,
        "min_kv_cache_tokens": 0,
        "min_kv_cache": 0,
        "expect_max_model_len": 0,
        "expect_engines": 0,
        "prompt_tokens": 0,
        "max_prompt_tokens": 0,
        "concurrent_requests": 0,
        "max_kv_cache_usage": 1,
        "max_drop": 1,
    }
)
"""Values of keys, in base units, that ask for nothing a server could fail to have, or could have at all."""

_NEEDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("concurrent_requests", ("prompt_tokens",)),
    ("output_tokens", ("prompt_tokens", "max_prompt_tokens")),
    ("shared_prefix_tokens", ("prompt_tokens",)),
    ("max_prompt_tokens", ("max_request_share",)),
    ("max_drop", ("baseline",)),
)
"""Keys that say nothing without another, or without one of several."""


def _objectives(values: Mapping[str, object], severity: Mapping[str, Severity]) -> tuple[Objective, ...]:
    return tuple(
        Objective(kind, target, severity.get(key, Severity.FAIL))
        for key, kind in KINDS.items()
        if isinstance(target := values.get(key), int | float | str)
    )


def _workload(
    values: Mapping[str, float | int | str | bool], model_config: Mapping[str, object] | None, name: str | None
) -> Workload | None:
    if not any(key.section == "workload" and key.name in values for key in KEYS):
        return None
    longest = values.get("max_prompt_tokens")
    return Workload(
        prompt_tokens=int(values.get("prompt_tokens", 0)),
        output_tokens=int(values.get("output_tokens", 0)),
        shared_prefix_tokens=int(values.get("shared_prefix_tokens", 0)),
        max_prompt_tokens=None if longest is None else int(longest),
        uniform_layers=values.get("layers") == "uniform",
        model_config=model_config,
        model_config_name=name,
    )


def _gate(values: Mapping[str, object]) -> Gate:
    return Gate(
        mode=GateMode(str(values.get("mode", GateMode.ENFORCE))),
        on_unknown=OnUnknown(str(values.get("on_unknown", OnUnknown.BLOCK))),
        recheck=bool(values.get("recheck", False)),
    )


def _optional_float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
