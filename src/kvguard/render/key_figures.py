"""The figures of the weakest engine that every readable face shows, with what stands in for one that is not printed."""

from kvguard.slo.refusal import cache_there
from kvguard.slotted import dataclass
from kvguard.startup.report import Failure, Phase, Place, Start

_EARLY = (Phase.NONE, Phase.LOADING, Phase.PROFILING)


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """One figure, in the base unit of its fact."""

    value: float | None
    place: Place | None = None
    note: str = ""
    """Whence it comes, where vLLM did not print it as such; of one that is not known, why."""
    how: str = ""
    """The arithmetic of one that follows from others."""


def key_figure(start: Start, fact: str) -> KeyFigure:
    """A fact of the weakest engine: as printed, else as the refusal tells it, else as it follows from others."""
    weakest = start.capacity.weakest
    value = getattr(weakest, fact)
    if value is None and fact == "max_model_len":
        value = start.max_model_len
    if value is not None:
        return KeyFigure(value, start.lines.get(fact))
    if start.failure is not None:
        return _of_refusal(start.failure, fact)
    derived = weakest.derived.get(fact)
    if derived is not None:
        return KeyFigure(derived.value, note="follows", how=derived.how)
    return KeyFigure(None, note="not told yet" if start.phase in _EARLY else "not in the log")


def _of_refusal(failure: Failure, fact: str) -> KeyFigure:
    """What a failure's own message tells, where the start never came to report it."""
    told = {
        "kv_cache_tokens": (failure.kv_cache_tokens, "by the refusal"),
        "kv_cache_bytes": (cache_there(failure), "available, by the refusal"),
        "max_model_len": (failure.requested_max_model_len, "asked for"),
    }
    value, note = told.get(fact, (None, ""))
    return KeyFigure(None, note="never reported") if value is None else KeyFigure(value, failure.place, note)
