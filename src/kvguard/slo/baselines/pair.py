"""Two starts side by side: the older and the newer, and the questions that every comparison asks of both."""

from collections.abc import Iterator
from typing import NamedTuple

from kvguard.kvcache.releases import Release, default_utilization
from kvguard.slo.baselines.baseline import ARGUMENTS, Baseline, Figure
from kvguard.slo.told_release import told_release
from kvguard.slotted import dataclass
from kvguard.startup.report import SERVING_OPTIONS

DEFAULT = "default"
_ONLY_ARGUMENTS = frozenset({"gpu_memory_utilization", "max_num_seqs", *ARGUMENTS})
"""Options that no other line tells: what a list of arguments leaves out has its default."""
_DEFAULTS = {"max_loras": 1, "max_lora_rank": 16}
"""vLLM's defaults of options that some releases print and others leave out (config/lora.py)."""


class OptionChange(NamedTuple):
    """An option that is not the same in both, as each side tells it."""

    name: str
    old: object
    new: object
    by_default: bool = False
    """Whether it is the release's own value on each side: what changed is the default."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The older start (or baseline) and the newer one."""

    old: Baseline
    new: Baseline

    def capacity(self, name: str) -> tuple[Figure, Figure] | None:
        """That figure of the weakest engine, where both tell it."""
        old, new = self.old.weakest.get(name), self.new.weakest.get(name)
        return None if old is None or new is None else (old, new)

    def ratio(self, name: str) -> float | None:
        """How many times the old figure the new one is; by the low ends."""
        figures = self.capacity(name)
        return None if figures is None or not figures[0].low else figures[1].low / figures[0].low

    def unchanged(self, name: str) -> bool | None:
        """Whether the figure is the same as far as its digits tell; `None` where a side does not tell it."""
        figures = self.capacity(name)
        if figures is None:
            return None
        old, new = figures
        return new.low - new.rounding <= old.high + old.rounding and old.low - old.rounding <= new.high + new.rounding

    @property
    def engines(self) -> tuple[int, int] | None:
        """How many engines there must be on each side; `None` where a side does not tell."""
        old, new = self.old.engines_expected, self.new.engines_expected
        return (old, new) if old and new else None

    def options(self, name: str) -> tuple[object, object]:
        """That option on both sides; `None` where it is not known."""
        return self.old.options.get(name), self.new.options.get(name)

    def same(self, name: str) -> bool:
        """Whether nothing tells that the option differs."""
        return not any(change.name == name for change in self.changed_options())

    def changed_options(self) -> Iterator[OptionChange]:
        """Options that differ; an argument that a side leaves out has its default there, if that side lists them."""
        for name in (*SERVING_OPTIONS, *ARGUMENTS):
            old, new = self.options(name)
            if name == "model" and old is not None and new is not None and _last_part(old) == _last_part(new):
                continue
            if name == "gpu_memory_utilization":
                old, new = _utilization(self.old), _utilization(self.new)
            left_out = name in _ONLY_ARGUMENTS
            if name in _DEFAULTS and (old, new) in ((None, _DEFAULTS[name]), (_DEFAULTS[name], None)):
                continue  # one side prints its default, the other leaves it out
            if (
                old != new
                and (old is not None or (left_out and self.old.arguments_told))
                and (new is not None or (left_out and self.new.arguments_told))
            ):
                by_default = name == "gpu_memory_utilization" and self._is_default_share(old, new)
                yield OptionChange(name, DEFAULT if old is None else old, DEFAULT if new is None else new, by_default)

    def _is_default_share(self, old: object, new: object) -> bool:
        return old == _default_share(self.old) and new == _default_share(self.new)

    @property
    def one_kind_of_layer(self) -> bool:
        """Whether either log proves it: kinds of layers are the model's, and so the same in both."""
        kinds = {self.old.layers, self.new.layers}
        return "uniform" in kinds and "hybrid" not in kinds and self.same("model")

    def crossed(self, release: Release) -> bool:
        """Whether the older start is of a version before that release, and the newer one is not."""
        old, new = told_release(self.old.vllm_version), told_release(self.new.vllm_version)
        return old is not None and new is not None and old < release <= new


def _utilization(baseline: Baseline) -> object:
    """The share in force: told, or the release's default where the arguments do not name it."""
    told = baseline.options.get("gpu_memory_utilization")
    return told if told is not None or not baseline.arguments_told else _default_share(baseline)


def _default_share(baseline: Baseline) -> float | None:
    release = told_release(baseline.vllm_version)
    return None if release is None else default_utilization(release)


def _last_part(model: object) -> str:
    """A model's own name: the same checkpoint is served from a hub's name and from a folder."""
    return str(model).rstrip("/").rsplit("/", 1)[-1].lower()
