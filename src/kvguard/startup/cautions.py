"""Warnings of a start: what does not change a figure but its worth. Severities are the SLO's business."""

from collections.abc import Sequence

from kvguard.startup.expected import engines_expected, silent_engines
from kvguard.startup.report import Capacity, Phase, Place, StartSummary, StartWarning, TokenFigure
from kvguard.startup.state import StartState
from kvguard.startup.versions import NEWEST_TESTED, release
from kvguard.units import format_bytes, format_quantity

RESTART_LOOP = 3
"""Starts in a row that failed or never got ready."""
NOTABLE_SPREAD = 0.01
"""Difference between ranks, as a share, from which it is worth a warning."""
NOTABLE_GRAPH_GAP = 2**30
"""Bytes between the CUDA graphs' estimate and what capture took."""
ONE_KIND = 0.02
"""By which share tokens and concurrency may lie apart with one kind of layer: a request's last block is not full."""
_NOT_UP = (Phase.FAILED, Phase.NONE, Phase.LOADING, Phase.PROFILING, Phase.ALLOCATED)


def cautions(
    state: StartState, source: str, engines: Sequence[Capacity], history: Sequence[StartSummary], starts: int
) -> tuple[StartWarning, ...]:
    """All warnings of the start, in the order that a report shows them."""
    found = (
        _context_reduced(state, source),
        _died(state, source),
        _refused_beside(state, source),
        _restart_loop(history),
        *_ranks_differ(state, source),
        _engines_missing(state),
        *_graph_gap(state, source),
        _graphs_uncounted(state, source),
        _blocks_overridden(state, source),
        _profiling_skipped(state, source),
        _newer(state, source),
        _unrecognized(state, source),
        _hybrid_tokens(state, source, engines),
        _restarted(starts),
        _resized(state, source),
    )
    return tuple(warning for warning in found if warning is not None)


def _context_reduced(state: StartState, source: str) -> StartWarning | None:
    if state.reduced is None:
        return None
    asked, served = state.reduced.value
    text = f"max_model_len was cut from {asked:,} to {served:,} to fit: longer requests are refused"
    return StartWarning("context-auto-reduced", text, Place(source, state.reduced.line))


def _died(state: StartState, source: str) -> StartWarning | None:
    if state.died is None:
        return None
    return StartWarning(
        "died-after-ready", f"the server died after it was ready: {state.died.value}", Place(source, state.died.line)
    )


def _refused_beside(state: StartState, source: str) -> StartWarning | None:
    """Code in a server's process could have printed it, so it decides nothing; but a refusal is never kept silent."""
    if state.refused_beside is None:
        return None
    text = "a process that is none of this server's says that it was refused: the server that serves is judged"
    return StartWarning("nodes-differ", text, Place(source, state.refused_beside))


def _restart_loop(history: Sequence[StartSummary]) -> StartWarning | None:
    last = history[-RESTART_LOOP:]
    if len(last) < RESTART_LOOP or any(start.phase not in _NOT_UP for start in last):
        return None
    return StartWarning("restart-loop", f"the last {RESTART_LOOP} starts failed or never got ready")


def unproven(state: StartState, first_place: Place | None) -> StartWarning:
    """The caution of a start that the one before contests: nothing but the log's words says that it is real."""
    if not state.by_outer_stamp:
        lacking = "no runtime's stamps show that it took its time"
    elif state.phase is not Phase.READY:
        lacking = "its ready line would, by the runtime's stamps"
    else:
        lacking = "both were ready too soon for the runtime's stamps to tell a start from a print"
    return StartWarning(
        "restart-unproven",
        "processes with the same pids announce themselves again, as in a container that was killed and started anew; "
        f"nothing proves that the server before has gone: {lacking}",
        first_place,
    )


def _ranks_differ(state: StartState, source: str) -> list[StartWarning]:
    """One warning an engine: its ranks' memory or tokens lie apart, and the smallest decides."""
    found: list[StartWarning] = []
    by_engine: dict[int | None, list[tuple[float, str, int]]] = {}
    for (engine, name), rank in state.ranks.items():
        for sighting in rank.kv_cache:
            by_engine.setdefault(engine, []).append((sighting.value.value, name, sighting.line))
    for values in by_engine.values():
        low, high = min(values), max(values)
        if high[0] > 0 and low[0] < high[0] * (1 - NOTABLE_SPREAD):
            text = (
                f"the ranks' KV cache memory differs: {format_bytes(low[0])} ({low[1]}) to {format_bytes(high[0])} "
                f"({high[1]}); the smallest decides"
            )
            found.append(StartWarning("rank-values-differ", text, Place(source, low[2])))
    for index, told in state.engines.items():
        tokens = sorted((sighting.value, sighting.line) for sighting in told.tokens)
        if tokens and tokens[0][0] < tokens[-1][0] * (1 - NOTABLE_SPREAD):
            text = (
                f"the ranks of engine {index} report {tokens[0][0]:,} to {tokens[-1][0]:,} tokens; the smallest decides"
            )
            found.append(StartWarning("rank-values-differ", text, Place(source, tokens[0][1])))
    return found


def _engines_missing(state: StartState) -> StartWarning | None:
    silent = silent_engines(state)
    if not silent or state.ready_line is None or not state.reported:
        return None
    names = ", ".join(str(index) for index in silent)
    text = f"{len(silent)} of {engines_expected(state)} engines printed no capacity ({names}): judged by the others"
    return StartWarning("engines-missing", text)


def _graph_gap(state: StartState, source: str) -> list[StartWarning]:
    for rank in state.ranks.values():
        estimate, actual = rank.parts.get("cuda_graphs_estimated"), rank.parts.get("cuda_graphs")
        if estimate is None or actual is None:
            continue
        gap = estimate.value.value - actual.value.value
        if abs(gap) >= NOTABLE_GRAPH_GAP:
            told = "too much: it is missing from the KV cache" if gap > 0 else "too little: it comes on top"
            text = f"CUDA graphs were estimated {format_bytes(abs(gap))} {told}"
            return [StartWarning("graph-estimate-gap", text, Place(source, actual.line))]
    return []


def _graphs_uncounted(state: StartState, source: str) -> StartWarning | None:
    """What a release that counts the CUDA graphs will cost: vLLM tells it as a utilisation."""
    told = state.facts.get("graphs_uncounted")
    if told is None:
        return None
    text = (
        "the CUDA graphs' memory is not taken off the KV cache here, from 0.20.0 on it is by default: "
        f"--gpu-memory-utilization {told.value:g} keeps its size then"
    )
    return StartWarning("graphs-not-counted", text, Place(source, told.line))


def _blocks_overridden(state: StartState, source: str) -> StartWarning | None:
    for engine in state.engines.values():
        if engine.override is not None:
            profiled, forced = engine.override.value
            text = f"num_gpu_blocks_override sets {forced:,} blocks, {profiled:,} were profiled: declared, not measured"
            return StartWarning("blocks-overridden", text, Place(source, engine.override.line))
    return None


def _profiling_skipped(state: StartState, source: str) -> StartWarning | None:
    if state.declared is None:
        return None
    return StartWarning(
        "profiling-skipped",
        "the KV cache memory is declared by an option: nothing was measured",
        Place(source, state.declared.line),
    )


def _newer(state: StartState, source: str) -> StartWarning | None:
    known = release(state.text("vllm_version"))
    if known is None or known[:2] <= NEWEST_TESTED[:2]:
        return None
    newest = ".".join(map(str, NEWEST_TESTED))
    text = f"vLLM {state.text('vllm_version')} is newer than the newest tested release, {newest}"
    return StartWarning("newer-than-tested", text, Place(source, state.facts["vllm_version"].line))


def _unrecognized(state: StartState, source: str) -> StartWarning | None:
    if not state.unrecognized_count:
        return None
    lines = format_quantity(state.unrecognized_count, "lines")
    text = f"{lines} with capacity in a wording that no format matches: see kvguard explain LOG"
    return StartWarning("unrecognized-capacity-line", text, Place(source, state.unrecognized[0].line))


def _hybrid_tokens(state: StartState, source: str, engines: Sequence[Capacity]) -> StartWarning | None:
    if not any(engine.kv_cache_tokens for engine in engines):
        return None
    if state.layers is None and not any(map(_contradicts_itself, engines)):
        return None
    figure = engines[0].token_figure
    meaning = (
        "concurrency times max_model_len" if figure is TokenFigure.CONCURRENCY_TIMES_LEN else "a share of the pool"
    )
    text = f"several kinds of layers: the token figure is {meaning}, not to be divided by a request's length"
    told = state.facts.get("layers")
    tokens = next(tokens[0] for engine in state.engines.values() if (tokens := engine.own_tokens or engine.tokens))
    return StartWarning("hybrid-token-figure", text, Place(source, (told or tokens).line))


def _contradicts_itself(engine: Capacity) -> bool:
    """Whether the pool holds another number of requests than is printed: so it does with several kinds of layers."""
    if engine.token_figure is not TokenFigure.POOL or not engine.kv_cache_tokens:
        return False
    if engine.max_concurrency is None or not engine.max_model_len:
        return False
    rounding = engine.rounding.get("max_concurrency", 0.0) + engine.max_concurrency * ONE_KIND
    return abs(engine.kv_cache_tokens / engine.max_model_len - engine.max_concurrency) > rounding


def _restarted(starts: int) -> StartWarning | None:
    return StartWarning("restarted", f"the log holds {starts} starts; the newest is judged") if starts > 1 else None


def _resized(state: StartState, source: str) -> StartWarning | None:
    if state.resized is None:
        return None
    return StartWarning("resized-at-run-time", state.resized.value, Place(source, state.resized.line))
