"""Every key there is to ask something of a start, by section: the SLO file's and, with dashes, the flags'."""

from kvguard.slo.objectives import OBJECTIVES, ObjectiveKind, Stage
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the SLO file. A flag is its name with dashes, and overrides it."""

    section: str
    name: str
    unit: str
    """Which values it takes: a row of `quantities`."""
    help: str
    example: str
    """As it is written in a file."""
    objective: ObjectiveKind | None = None

    @property
    def flag(self) -> str:
        """The flag of the same meaning."""
        return "--" + self.name.replace("_", "-")


_SECTIONS = {
    Stage.STARTUP: "objectives",
    Stage.WORKLOAD: "workload",
    Stage.RUNTIME: "runtime",
    Stage.REGRESSION: "regression",
}
_EXAMPLES = {
    "min_concurrency": "2.5",
    "min_total_concurrency": "10",
    "min_kv_cache_tokens": "40960",
    "min_kv_cache": "3.4GiB",
    "max_weights": "15.5GiB",
    "expect_max_model_len": "16384",
    "expect_kv_cache_dtype": "fp8",
    "expect_engines": "2",
    "concurrent_requests": "4",
    "max_request_share": "50%",
    "max_waiting_requests": "10",
    "max_kv_cache_usage": "95%",
    "max_preemptions": "0",
    "max_drop": "5%",
}


def _of(stage: Stage) -> tuple[Key, ...]:
    return tuple(
        Key(_SECTIONS[stage], kind.key, kind.unit, kind.help.replace("%%", "%"), _EXAMPLES[kind.key], kind)
        for kind in OBJECTIVES
        if kind.stage is stage
    )


KEYS: tuple[Key, ...] = (
    *_of(Stage.STARTUP),
    Key("objectives", "require_ready", "switch", "the server must be ready, not only sized", "true"),
    Key("objectives", "ready_within", "seconds", "time from the first line to ready, as 10m", "10m"),
    Key("workload", "prompt_tokens", "tokens", "tokens of one prompt, its shared prefix included", "7500"),
    Key("workload", "output_tokens", "tokens", "tokens that one request generates", "1000"),
    Key(
        "workload",
        "shared_prefix_tokens",
        "tokens",
        "first tokens that all prompts have in common (prefix caching on)",
        "1500",
    ),
    Key(
        "workload",
        "max_prompt_tokens",
        "tokens",
        "longest prompt that is let through to vLLM (default: what max_model_len allows)",
        "15000",
    ),
    *_of(Stage.WORKLOAD),
    Key("workload", "layers", "layers", "uniform: the model has one kind of attention layer", "uniform"),
    Key(
        "workload",
        "model_config",
        "text",
        "the model's config.json, its folder, or a known model's name",
        "config.json",
    ),
    *_of(Stage.RUNTIME),
    Key(
        "regression",
        "baseline",
        "text",
        "what to hold the start against: a baseline, a report, a log, or prometheus:URL?query",
        "baseline.json",
    ),
    *_of(Stage.REGRESSION),
    Key("gate", "mode", "mode", "enforce: /readyz follows the verdict; observe: it only reports", "enforce"),
    Key("gate", "on_unknown", "on_unknown", "block or allow traffic while the verdict is unknown", "block"),
    Key("gate", "recheck", "switch", "an edited SLO may take a start out of service that has passed", "false"),
)
"""In the order of the documentation; `version`, `warnings` and `severity` stand beside the sections."""

SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(key.section for key in KEYS))
BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}
"""Names are unique over the sections: that is what makes one flag of one key."""
