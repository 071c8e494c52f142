"""A plan for people: the budget as a bar, what a token and a block cost, what fits, and what to change."""

from collections.abc import Callable, Iterable, Sequence

from kvguard.kvcache.budget import Budget
from kvguard.kvcache.fit import Refusal
from kvguard.kvcache.groups import Bucket
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.levers import Answer, Lever, Target
from kvguard.kvcache.options import Assumption
from kvguard.kvcache.plan import End, Plan
from kvguard.kvcache.workload import request_blocks
from kvguard.render.layout import INDENT, NO_BREAK, Cell, Terminal, Tone, columns, wrap
from kvguard.render.plan_headline import plan_headline, plan_remedy
from kvguard.render.text import OUTCOME_TONES
from kvguard.render.text_levers import lever_table, title_of
from kvguard.slo import verdict
from kvguard.slo.verdict import Outcome
from kvguard.slotted import replace
from kvguard.units import Interval, format_bytes, format_quantity

_KINDS = {
    "full_attention": "full attention",
    "sliding_window": "sliding window",
    "chunked_local_attention": "chunked attention",
    "mla_attention": "latent attention (MLA)",
    "cross_attention": "cross-attention",
    "mamba": "recurrent state",
}
_BAR = 40


def plan_text(
    plan: Plan,
    name: str,
    answers: Sequence[Answer],
    outcome: Outcome | None,
    page: Terminal,
) -> str:
    """The page.

    Args:
        plan: what was computed.
        name: the model, as the user named it.
        answers: each target, whether it is met, and what to change.
        outcome: that of the whole; `None` where nothing was asked that has one.
        page: what it is drawn for.
    """
    lines = [*_head(plan, name, answers, outcome, page), ""]
    if plan.pool.budget is not None and plan.pool.budget.total is not None:
        lines += [*_budget(plan.pool.budget, page), ""]
    lines += _layout(plan.layout, page)
    if plan.low is not None and plan.high is not None:
        lines += ["", *_capacity(plan, plan.low, plan.high, page)]
    if plan.workload is not None:
        lines += ["", *_workload(plan)]
    for answer in answers:
        lines += ["", *_target(answer, plan, page)]
    if plan.assumptions:
        lines += ["", "Assumed:", *_assumptions(plan, page)]
    return page.finish(lines)


def _head(plan: Plan, name: str, answers: Sequence[Answer], outcome: Outcome | None, page: Terminal) -> list[str]:
    serving = plan.layout.serving
    counts = [
        f"{format_quantity(count, 'layers')} of {_KINDS.get(kind, kind)}"
        for kind, count in plan.layout.model.counts().items()
    ]
    ranks = [
        f"{flag} {size}" for flag, size in (("TP", serving.tp), ("PP", serving.pp), ("DP", serving.dp)) if size > 1
    ]
    facts = [
        name,
        plan.layout.model.architecture,
        *counts,
        f"vLLM {serving.release} ({serving.engine.upper()})",
        *ranks,
    ]
    told = wrap(" · ".join(fact.replace(" ", NO_BREAK) for fact in facts), page.width, INDENT)
    word, _, tone = OUTCOME_TONES[outcome] if outcome else ("", "", Tone.PLAIN)
    begin = f"{word}  " if word else ""
    hang, remedy = " " * len(begin), plan_remedy(plan, answers)
    lines = wrap(plan_headline(plan, answers), page.width, begin, hang)
    lines += wrap(remedy, page.width, f"{hang}→ ", f"{hang}  ") if remedy else []
    return [
        page.paint(word, tone) + lines[0][len(word) :],
        *lines[1:],
        *(page.paint(line, Tone.QUIET) for line in told),
    ]


def _budget(budget: Budget, page: Terminal) -> list[str]:
    parts = [("weights", budget.weights), ("reserve", budget.reserve), ("KV cache", budget.kv_cache)]
    middles = [(part.bytes.low + part.bytes.high) / 2 for _, part in parts if part is not None]
    longest = max((budget.total.bytes.high if budget.total is not None else 0, *middles))
    rows = []
    for label, part in parts:
        if part is None:
            continue
        middle = (part.bytes.low + part.bytes.high) / 2
        bar = "█" * max(0, round(_BAR * middle / longest)) if longest else ""
        tone = Tone.ACCENT if label == "KV cache" else Tone.PLAIN
        rows.append([Cell(label), Cell(_size(part.bytes), right=True), Cell(bar, tone), Cell(part.source, Tone.QUIET)])
    share = (
        f", of which {_size(budget.usable.bytes)} for vLLM (utilization {budget.utilization:g})"
        if budget.usable
        else ""
    )
    title = f"Memory of one card: {_size(budget.total.bytes) if budget.total else ''}{share}"
    return [*wrap(title, page.width), *columns(rows, page, "  ")]


def _layout(layout: Layout, page: Terminal) -> list[str]:
    a_token = "" if layout.bytes_per_token is None else f", {layout.bytes_per_token:,} bytes a token"
    pad = f", {layout.grouping.padding_layers} padding layers" if layout.grouping.padding_layers else ""
    title = f"A block costs {layout.bytes_per_block:,} bytes a rank{a_token}{pad}"
    return [*wrap(title, page.width), *columns([_group(bucket) for bucket in layout.grouping.buckets], page, "  ")]


def _group(bucket: Bucket) -> list[Cell]:
    spec = bucket.spec
    unit = f"state {format_bytes(spec.raw_bytes)}" if spec.is_state else f"block {spec.block_size:,} tokens"
    window = f", window {spec.window:,}" if spec.window is not None else ""
    groups = f"{len(bucket.groups)} group{'s' if len(bucket.groups) > 1 else ''}"
    page = bucket.groups[0].bytes_per_block if bucket.groups[0].mixed else spec.page_bytes
    layers = f"{bucket.layers} layers"
    return [
        Cell(_KINDS.get(spec.kind, spec.kind)),
        Cell(layers, right=True),
        Cell(groups, right=True),
        Cell(f"page {format_bytes(page)}", right=True),
        Cell(f"{unit}{window}"),
    ]


def _capacity(plan: Plan, low: End, high: End, page: Terminal) -> list[str]:
    serving = plan.layout.serving
    null = "of which one is vLLM's null block" if serving.engine == "v1" else ""
    rows = []
    if low.pool.concurrency is not None:
        figure = _span(low, high, lambda end: end.pool.concurrency or 0.0, "{:,.2f}")
        rows.append(("maximum concurrency", figure, f"requests of {serving.max_model_len:,} tokens (max_model_len)"))
    rows.append(("KV cache size", _span(low, high, lambda end: end.pool.tokens), "tokens, as this release prints them"))
    rows.append(("GPU blocks", _span(low, high, lambda end: end.pool.blocks), null))
    if low.largest_max_model_len is not None:
        figure = _span(low, high, lambda end: end.largest_max_model_len or 0)
        rows.append(("longest context", figure, "tokens: the max_model_len with which it would start"))
    refusal = plan.contradiction or low.refusal
    lines = columns([[Cell(a), Cell(b, Tone.STRONG, right=True), Cell(c, Tone.QUIET)] for a, b, c in rows], page, "  ")
    stage = f", stage {low.limiting_stage} being the limit" if serving.pp > 1 else ""
    return [f"One engine holds{stage}:", *lines, *(_refusal(refusal, page) if refusal is not None else ())]


def _refusal(refusal: Refusal, page: Terminal) -> Iterable[str]:
    return wrap(f"vLLM would say: {refusal.printed}", page.width, "  ")


def _workload(plan: Plan) -> list[str]:
    load = plan.workload
    if load is None:
        return []
    need = request_blocks(plan.layout, load)
    shared = f" and {need.shared:,} shared once" if need.shared else ""
    request, blocks = format_quantity(load.request_tokens, "tokens"), format_quantity(need.each, "blocks")
    lines = [f"A request of {request} holds {blocks}{shared}"]
    if plan.low is None or plan.high is None or plan.low.service is None or plan.high.service is None:
        return lines
    low, high = plan.low.service, plan.high.service
    engines = plan.layout.serving.dp
    runs = _span(plan.low, plan.high, lambda end: (end.served or 0) * engines)
    fits = _range(low.concurrency, high.concurrency, "{:,.2f}")
    where = f" over {engines} engines" if engines > 1 else ""
    if plan.starts is False:
        return [*lines, f"  {fits} would fit, but the server would not start"]
    return [
        *lines,
        f"  {fits} fit{' an engine' if engines > 1 else ''}, so {runs} run at once{where} without preemption"
        f" ({_LIMITS[low.limited_by]})",
    ]


_LIMITS = {
    "kv_cache": "the cache is the limit",
    "max_num_seqs": "max_num_seqs is the limit",
    "max_model_len": "longer than max_model_len: refused",
    "request_exceeds_pool": "one request is larger than the pool: it would wait for ever",
}


def _target(answer: Answer, plan: Plan, page: Terminal) -> list[str]:
    target, outcome, levers = answer.target, answer.outcome, answer.levers
    load = plan.workload if target.of_workload else None
    tokens = plan.layout.serving.max_model_len if load is None else load.request_tokens
    what = "of the workload" if target.of_workload else "of max_model_len an engine"
    noun = "request" if target.requests == 1 else "requests"
    words = {"pass": "met", "fail": "missed", "unknown": "can't tell"}
    tone = {"pass": Tone.GOOD, "fail": Tone.BAD, "unknown": Tone.DOUBT}[outcome]
    lines = [page.paint(f"Target, {target.requests:g} {noun} {what}: {words[outcome]}", tone)]
    if not levers:
        return lines
    unit = f"requests of {format_quantity(tokens, 'tokens')}"
    told = [_told(lever, _unit(lever, target, unit)) for lever in levers]
    return [*lines, *wrap(title_of(told, unit), page.width), *lever_table(told, page, unit)]


def _unit(lever: Lever, target: Target, unit: str) -> str:
    """Of requests as long as the context, those that a shorter one leaves."""
    if target.of_workload or lever.flag != "--max-model-len" or not lever.value.isdigit():
        return unit
    return f"requests of {format_quantity(int(lever.value), 'tokens')}"


def _told(lever: Lever, unit: str) -> verdict.Lever:
    """The lever as the tables of a verdict draw it: with its figure where there is one, else in words."""
    told = verdict.Lever(lever.flag, lever.value, "not known", lever.price, unit=unit)
    if lever.gives is None:
        return told
    if lever.gives.high == 0:
        return replace(told, gives="none would be served", enough=False)
    return replace(told, low=lever.gives.low, high=lever.gives.high, enough=lever.meets)


def _assumptions(plan: Plan, page: Terminal) -> list[str]:
    rows = [
        [Cell(f"--{a.option.replace('_', '-')}"), Cell(_taken(a), right=True), Cell(a.why, Tone.QUIET)]
        for a in plan.assumptions
    ]
    return columns(rows, page, "  ")


def _taken(assumption: Assumption) -> str:
    """As it is typed, but for a card's memory: nobody reads its bytes."""
    if assumption.option == "gpu_memory" and isinstance(assumption.value, int):
        return format_bytes(assumption.value)
    return str(assumption.value)


def _span(low: End, high: End, figure: Callable[[End], float], spelt: str = "{:,.0f}") -> str:
    return _range(figure(low), figure(high), spelt)


def _range(low: float, high: float, spelt: str) -> str:
    one, other = spelt.format(low), spelt.format(high)
    return one if one == other else f"{one} to {other}"


def _size(interval: Interval) -> str:
    one, other = format_bytes(interval.low), format_bytes(interval.high)
    return one if one == other else f"{one} to {other}"
