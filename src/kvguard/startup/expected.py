"""Who must report before a start's capacity is complete: its engines, and to vLLM 0.11.0 every rank of each."""

from collections.abc import Iterable, Iterator

from kvguard.lines.patterns import compiled
from kvguard.startup.state import MAX_ENGINES, EngineState, RankState, StartState
from kvguard.startup.versions import ONE_TOKEN_LINE_AN_ENGINE, at_least

_NOT_FIRST = r"(?:(?:PP\d{1,6}+_)?TP|rank=|)[1-9]\d{0,5}+(?:_.*+)?"
MOST_NAMED = 32
"""Of what is missing; the rest is counted."""


def engines_expected(state: StartState) -> int:
    """How many engines this log must show.

    The arguments of this log say it (the local size; one with an explicit rank; else the whole size); without them the
    banner may raise it, never lower it: newer versions print 1 there. Elastic scaling overrides all.
    """
    scaled = state.facts.get("data_parallel_size")
    if state.resized is not None and scaled is not None and isinstance(scaled.value, int):
        return scaled.value
    declared = _declared(state)
    seen = len(state.engines)
    highest = max((state.highest_engine, *state.engines)) + 1
    if declared is not None:
        return max(declared, seen)
    return max(state.count("banner_data_parallel_size") or 1, highest, seen, 1)


def _declared(state: StartState) -> int | None:
    local = state.arguments.get("data_parallel_size_local")
    if isinstance(local, int) and local > 0:
        return local
    if isinstance(state.arguments.get("data_parallel_rank"), int):
        return 1
    size = state.arguments.get("data_parallel_size")
    return size if isinstance(size, int) and size > 0 else None


def ranks_expected(state: StartState) -> int:
    """How many token lines one engine prints: one from 0.11.1, before that one a rank; blocks are printed once."""
    if at_least(state.text("vllm_version"), ONE_TOKEN_LINE_AN_ENGINE) is not False:
        return 1
    if state.text("generation") == "V0":
        return 1
    return (state.count("tensor_parallel_size") or 1) * (state.count("pipeline_parallel_size") or 1)


def missing_reports(state: StartState) -> tuple[str, ...]:
    """What has not reported yet, in words; empty when the capacity is complete."""
    missing = tuple(_missing(state))
    more = len(missing) - MOST_NAMED
    return missing if more <= 0 else (*missing[:MOST_NAMED], f"{more:,} more")


def is_complete(state: StartState) -> bool:
    """Whether everything that must report has."""
    return next(_missing(state), None) is None


def _missing(state: StartState) -> Iterator[str]:
    if state.overfull or engines_expected(state) > MAX_ENGINES:
        yield f"more engines (at most {MAX_ENGINES:,}) or figures of one start than can be told apart"
    spoken_for, ranks, swallowed = _spoken_for(state), ranks_expected(state), _swallowed(state)
    for index in expected_indices(state):
        engine = state.engines.get(index)
        if engine is None or not engine.reported:
            if not (spoken_for or _is_counted(state)):
                yield f"engine {index}"
        elif state.ready_line is None and _awaits_concurrency(state, engine):
            yield f"the concurrency of the last KV cache size{_of_which(state, index)}"
        elif engine.tokens and engine.token_lines * swallowed < ranks:
            yield f"{ranks - engine.token_lines} of {ranks} ranks' token lines{_of_which(state, index)}"


def is_cache_told(state: StartState) -> bool:
    """Whether the smallest KV cache memory is among what was told: of every rank, or of each node's first.

    To 0.11.0 every rank prints its own, later the first of a node alone. Where no line tells the release, the ranks do.
    """
    tellers = state.cache_tellers
    if not tellers or _swallowed(state) > 1:
        return True
    later = at_least(state.text("vllm_version"), ONE_TOKEN_LINE_AN_ENGINE)
    each_tells = _each_tells(state) if later is None else not later
    return not each_tells or not (state.workers - tellers.keys() or _is_behind_others(tellers.values()))


def _each_tells(state: StartState) -> bool:
    """Whether a line shows that every rank prints its own: two of a node do, not the first, or one in V0's words."""
    tellers = state.cache_tellers
    of_v0 = any(_in_one_line(rank) for rank in state.ranks.values())
    by_token_lines = any(engine.token_lines > 1 for engine in state.engines.values())
    several = len(tellers) > len({node for node, _ in tellers})
    return of_v0 or by_token_lines or several or _is_behind_others(tellers.values())


def _in_one_line(rank: RankState) -> bool:
    """Whether the rank told its KV cache with all other parts of its memory."""
    part = rank.parts.get("kv_cache")
    return part is not None and any(part.line == told.line for told in rank.kv_cache)


def _is_behind_others(ranks: Iterable[str | None]) -> bool:
    """Whether none of the ranks is the first of a tensor-parallel group, as far as their names tell."""
    return all(rank is not None and compiled(_NOT_FIRST).fullmatch(rank) is not None for rank in ranks)


def _of_which(state: StartState, index: int) -> str:
    return "" if len(state.engines) == 1 else f" of engine {index}"


def _awaits_concurrency(state: StartState, engine: EngineState) -> bool:
    """Whether a token line stands there without the concurrency that is printed right behind each."""
    if not engine.tokens or not any(engine.concurrency for engine in state.engines.values()):
        return False
    last = engine.tokens[-1]
    if any(told.value == last.value for told in engine.tokens[:-1]) and engine.concurrency:
        return False  # of another rank, and the same: its concurrency is known
    return not engine.concurrency or last.line > engine.concurrency[-1][2]


def _is_counted(state: StartState) -> bool:
    """Whether the front end has told the blocks of its one engine, which told nothing itself."""
    return state.counted_blocks is not None and engines_expected(state) == 1


def expected_indices(state: StartState) -> tuple[int, ...]:
    """The engines' indices: those seen, and the lowest free ones up to the expected number."""
    count = min(engines_expected(state), MAX_ENGINES)
    seen = sorted(state.engines)
    start = state.arguments.get("data_parallel_start_rank")
    first = start if isinstance(start, int) else 0
    rank = state.arguments.get("data_parallel_rank")
    if isinstance(rank, int) and not seen:
        return (rank,)
    free = (index for index in range(first, first + count + len(seen)) if index not in state.engines)
    return tuple(sorted((*seen, *(index for _, index in zip(range(count - len(seen)), free, strict=False)))))


def silent_engines(state: StartState) -> tuple[int, ...]:
    """Engines that never told their capacity although the start is ready."""
    return tuple(
        index for index in expected_indices(state) if index not in state.engines or not state.engines[index].reported
    )


def _spoken_for(state: StartState) -> bool:
    """From 0.11.1 with TP = 1 only the first engine prints its lines; once ready, those that spoke stand for all."""
    return (
        state.ready_line is not None
        and state.reported
        and at_least(state.text("vllm_version"), ONE_TOKEN_LINE_AN_ENGINE) is True
        and (state.count("tensor_parallel_size") or 1) == 1
    )


def _swallowed(state: StartState) -> int:
    """How many lines Ray's de-duplication lets one stand for."""
    return max((rank.repeated for key, rank in state.ranks.items() if key[0] is None), default=1)
