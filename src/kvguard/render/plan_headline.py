"""The first line of a plan: whether the server would start, and whether it would hold what is asked for."""

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from kvguard.kvcache.levers import Answer, Target
from kvguard.kvcache.plan import End, Plan
from kvguard.units import format_count, format_quantity

ASKED = MappingProxyType(
    {
        "pass": ", at least the {} asked for",
        "fail": ", below the {} asked for",
        "unknown": "; whether the {} asked for, the estimates leave open",
    }
)
"""What follows a figure, by the outcome of its target."""


def plan_headline(plan: Plan, answers: Sequence[Answer]) -> str:
    """The answer in one sentence, in the words of a check's verdict."""
    if plan.low is None or plan.high is None:
        return "keeps no KV cache" if plan.layout.bytes_per_block == 0 else "no pool given, so the layout only"
    if plan.starts is False:
        return f"would not start: {_refused(plan, plan.low, plan.high)}"
    start = "would start" if plan.starts else f"may not start: {_refused(plan, plan.low, plan.high)}"
    return "; ".join((start, *_figures(plan, plan.low, plan.high, answers)))


def plan_remedy(plan: Plan, answers: Sequence[Answer]) -> str | None:
    """What would make a plan tell more; `None` where it has told what was asked."""
    if plan.low is None:
        return "give the card, --gpu-memory SIZE, or --from-log LOG of a start on it" if answers else None
    if plan.starts is not None and all(answer.outcome != "unknown" for answer in answers):
        return None
    reserve = plan.pool.budget.reserve if plan.pool.budget else None
    if reserve is None or reserve.source != "estimate":
        return None
    return "--from-log LOG of any start on that machine, or --reserve SIZE, narrows what is estimated"


def reached(plan: Plan, end: End, target: Target) -> float:
    """What one end of the plan has of the target: requests of the load over all engines, or of max_model_len in one."""
    if target.of_workload:
        return (end.served or 0) * plan.layout.serving.dp
    return end.pool.concurrency or 0.0


def _refused(plan: Plan, low: End, high: End) -> str:
    if plan.contradiction is not None:
        return plan.contradiction.printed.rstrip(".")
    asked = f"a context of {format_quantity(plan.layout.serving.max_model_len or 0, 'tokens')} is asked for"
    if plan.beyond_the_model:
        return f"{asked}, the model has no more than {format_count(plan.layout.model.context.longest or 0)}"
    least, most = low.largest_max_model_len or 0, high.largest_max_model_len or 0
    return f"{asked}, {_range(least, most)} fit in the KV cache" if most else "nothing is left for the KV cache"


def _figures(plan: Plan, low: End, high: End, answers: Sequence[Answer]) -> Iterable[str]:
    if not answers and low.pool.concurrency is not None and high.pool.concurrency is not None:
        yield _at_length(plan, low.pool.concurrency, high.pool.concurrency)
    for answer in answers:
        target = answer.target
        if plan.starts is None and not target.of_workload and target.requests <= 1:
            continue  # whether one fits is whether it starts
        ends = reached(plan, low, target), reached(plan, high, target)
        told = _of_load(plan, *ends) if target.of_workload else _at_length(plan, *ends)
        yield told + ASKED[answer.outcome].format(format_count(target.requests))


def _at_length(plan: Plan, low: float, high: float) -> str:
    length = format_quantity(plan.layout.serving.max_model_len or 0, "tokens")
    engine = " of an engine" if plan.layout.serving.dp > 1 else ""
    return f"maximum concurrency{engine} at {length} is {_range(low, high)} requests"


def _of_load(plan: Plan, low: float, high: float) -> str:
    tokens = plan.workload.request_tokens if plan.workload else 0
    return f"{_range(low, high)} requests of {format_quantity(tokens, 'tokens')} run at once"


def _range(low: float, high: float) -> str:
    one, other = format_count(low), format_count(high)
    return one if one == other else f"{one} to {other}"
