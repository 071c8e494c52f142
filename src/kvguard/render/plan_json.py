"""A plan as a JSON document: base units, every figure of the pool with its two ends; fields are only ever added."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kvguard.kvcache.budget import Budget, Part
from kvguard.kvcache.fit import Refusal
from kvguard.kvcache.groups import Bucket
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.levers import Answer, Lever, worst
from kvguard.kvcache.plan import INVALID_CONFIG, End, Plan
from kvguard.kvcache.pool import blocks_per_request
from kvguard.kvcache.requests import startup_blocks
from kvguard.kvcache.workload import request_blocks
from kvguard.version import __version__

SCHEMA_VERSION = 1

Json = dict[str, Any]


def plan_document(plan: Plan, options: Mapping[str, object], answers: Sequence[Answer]) -> Json:
    """The document of one plan.

    Args:
        plan: what was computed.
        options: every option in force, by its name.
        answers: each target, whether it is met, and what to change.
    """
    return {
        "kind": "plan",
        "schema_version": SCHEMA_VERSION,
        "kvguard_version": __version__,
        "options": dict(options),
        "assumptions": [{"option": a.option, "value": a.value, "why": a.why} for a in plan.assumptions],
        "model": {"architecture": plan.layout.model.architecture, "layers": plan.layout.model.counts()},
        "layout": _layout(plan.layout),
        "budget": None if plan.pool.budget is None else _budget(plan.pool.budget),
        "capacity": _capacity(plan),
        "starts": plan.starts,
        "refusal": _refusal(plan),
        "workload": _workload(plan),
        "target": _target(answers),
    }


def _target(answers: Sequence[Answer]) -> Json | None:
    """The target that decides, with what to change; of several each one beside it."""
    decides = worst(answers)
    if decides is None:
        return None
    of = {True: "workload", False: "max_model_len"}
    asked = [{"requests": one.target.requests, "of": of[one.target.of_workload], **_answered(one)} for one in answers]
    return {**_answered(decides), "asked": asked}


def _answered(answer: Answer) -> Json:
    return {"outcome": answer.outcome, "levers": [_lever(lever) for lever in answer.levers]}


def _layout(layout: Layout) -> Json:
    return {
        "block_size": layout.block_size,
        "bytes_per_block": layout.bytes_per_block,
        "bytes_per_token": layout.bytes_per_token,
        "padding_layers": layout.grouping.padding_layers,
        "groups": [_group(bucket, layout) for bucket in layout.grouping.buckets],
        "stages": [
            {"index": stage.index, "layers": stage.layers, "bytes_per_block": stage.bytes_per_block}
            for stage in layout.stages
        ],
    }


def _group(bucket: Bucket, layout: Layout) -> Json:
    spec, length = bucket.spec, layout.serving.max_model_len
    first = bucket.groups[0]
    return {
        "kind": spec.kind,
        "groups": len(bucket.groups),
        "layers": bucket.layers,
        "padding_layers": bucket.padding,
        "block_size": None if spec.is_state else spec.block_size,
        "page_bytes": first.bytes_per_block if first.mixed else spec.page_bytes,
        "state_bytes": spec.raw_bytes if spec.is_state else None,
        "window": spec.window,
        "blocks_per_request": startup_blocks(spec, length, layout.serving),
    }


def _budget(budget: Budget) -> Json:
    return {
        "total_bytes": _part(budget.total),
        "usable_bytes": _part(budget.usable),
        "weights_bytes": _part(budget.weights),
        "reserve_bytes": _part(budget.reserve),
        "kv_cache_bytes": _part(budget.kv_cache),
    }


def _part(part: Part | None) -> Json | None:
    if part is None:
        return None
    return {"low": int(part.bytes.low), "high": int(part.bytes.high), "source": part.source}


def _ends(plan: Plan, figure: Callable[[End], object]) -> Json:
    low, high = plan.low, plan.high
    return {"low": None if low is None else figure(low), "high": None if high is None else figure(high)}


def _capacity(plan: Plan) -> Json | None:
    if plan.low is None or plan.high is None:
        return None
    length, engines = plan.layout.serving.max_model_len, plan.layout.serving.dp
    refused_for_memory = plan.high.refusal is not None and plan.high.refusal.kind != INVALID_CONFIG
    silent = refused_for_memory and plan.layout.serving.engine == "v1"
    return {
        "gpu_blocks": _ends(plan, lambda end: end.pool.blocks),
        "usable_blocks": _ends(plan, lambda end: max(0, end.pool.blocks - 1)),
        "max_concurrency": _ends(plan, lambda end: end.pool.concurrency),
        "kv_cache_tokens": _ends(plan, lambda end: end.pool.tokens),
        "blocks_per_request": blocks_per_request(plan.layout, length),
        "limiting_stage": plan.low.limiting_stage,
        "printed": None if silent else _ends(plan, lambda end: list(end.pool.printed)),
        "total_kv_cache_tokens": _ends(plan, lambda end: end.pool.tokens * engines),
        "total_max_concurrency": _ends(plan, lambda end: _times(end.pool.concurrency, engines)),
        "largest_max_model_len": _ends(plan, lambda end: end.largest_max_model_len),
    }


def _times(value: float | None, engines: int) -> float | None:
    return None if value is None else value * engines


def _refusal(plan: Plan) -> Json | None:
    """The refusal at both ends; where one end starts, the other's."""
    ends = [end.refusal for end in (plan.low, plan.high) if end is not None and end.refusal is not None]
    ends = ends if plan.contradiction is None else [plan.contradiction]
    if not ends:
        return None
    fields = ("needed_bytes", "available_bytes", "kv_cache_tokens", "estimated_max_model_len")
    return {"kind": ends[0].kind} | {name: _span(ends, name) for name in fields} | {"printed": ends[0].printed}


def _span(refusals: Sequence[Refusal], name: str) -> object:
    """One figure where both ends agree, else both."""
    values = [getattr(refusal, name) for refusal in refusals]
    return values[0] if len(set(values)) == 1 else {"low": values[0], "high": values[-1]}


def _workload(plan: Plan) -> Json | None:
    if plan.workload is None:
        return None
    need = request_blocks(plan.layout, plan.workload)
    engines, service = plan.layout.serving.dp, None if plan.low is None else plan.low.service
    return {
        "request_tokens": plan.workload.request_tokens,
        "blocks_per_request": need.each,
        "shared_blocks": need.shared,
        "request_share": _ends(plan, lambda end: None if end.service is None else end.service.share),
        "concurrency": _ends(plan, lambda end: None if end.service is None else end.service.concurrency),
        "service_concurrency": _ends(plan, lambda end: _times(end.served, engines)),
        "limited_by": None if service is None else service.limited_by,
    }


def _lever(lever: Lever) -> Json:
    gives = None if lever.gives is None else {"low": lever.gives.low, "high": lever.gives.high}
    return {
        "flag": lever.flag,
        "value": lever.value,
        "gives": gives,
        "price": lever.price,
        "remark": lever.remark or None,
        "meets": lever.meets,
    }
