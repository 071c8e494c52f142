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
    whence: str = ""
    """Who told it, where vLLM did not print it as such."""
    how: str = ""
    """The arithmetic of one that follows from others."""
    missing: str = ""
    """What is to be said of one that is not known."""


def key_figure(start: Start, fact: str) -> KeyFigure:
    """A fact of the weakest engine: as printed, else as the refusal tells it, else as it follows from others."""
    weakest = start.capacity.weakest
    value = getattr(weakest, fact)
    if value is None and fact == "max_model_len":
        value = start.max_model_len
    if value is not None:
        return KeyFigure(value, start.lines.get(fact))
    refused = None if start.failure is None else _of_refusal(start.failure, fact)
    if refused is not None:
        return refused
    derived = weakest.derived.get(fact)
    if derived is not None:
        return KeyFigure(derived.value, how=derived.how)
    return KeyFigure(None, missing=_missing(start))


def _of_refusal(failure: Failure, fact: str) -> KeyFigure | None:
    """What a failure's own message tells, where the start never came to report it."""
    told = {
        "kv_cache_tokens": (failure.kv_cache_tokens, "by the refusal"),
        "kv_cache_bytes": (cache_there(failure), "available, by the refusal"),
        "max_model_len": (failure.requested_max_model_len, "asked for"),
    }
    value, whence = told.get(fact, (None, ""))
    return None if value is None else KeyFigure(value, failure.place, whence)


def _missing(start: Start) -> str:
    if start.failure is not None:
        return "never reported"
    return "not told yet" if start.phase in _EARLY else "not in the log"
