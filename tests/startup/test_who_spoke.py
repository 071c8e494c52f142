"""Ranks and engines that only their tags show: a figure is no minimum over those that have kept theirs to themselves."""

from pathlib import Path

import pytest

from kvguard.startup.report import Start
from tests.startup.lines import start_of

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
GIB = 2**30
SPOKE = "(Worker_TP{rank} pid=31{rank}) INFO 12-08 10:15:02 [cuda.py:315] Using FlashAttention backend.\n"
TOLD = "(Worker_TP{rank} pid=31{rank}) INFO 12-08 10:15:20 [gpu_worker.py:298] Available KV cache memory: {gib} GiB\n"
SIZED = (
    "(EngineCore_DP0 pid=130) INFO 12-08 10:15:21 [kv_cache_utils.py:864] GPU KV cache size: 65,536 tokens\n"
    "(EngineCore_DP0 pid=130) INFO 12-08 10:15:21 [kv_cache_utils.py:868] Maximum concurrency for 8,192 tokens per "
    "request: 8.00x\n"
)


def cache_of(start: Start) -> int | None:
    return start.capacity.weakest.kv_cache_bytes


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("v0102-tp2-ep", "the second of two ranks tells alone"),
        ("l40s-tp4-free-memory", "the fourth of four does"),
        ("ascend-tp8-0112", "five of eight do"),
        ("v065-pp-workers-profile", "one of two in V0's words, in which each tells its own"),
    ],
)
def test_the_tightest_rank_is_unknown_where_some_are_known_to_be_missing(log: str, why: str) -> None:
    assert cache_of(start_of((LOGS / "public" / f"{log}.log").read_text(encoding="utf-8"))) is None, why


@pytest.mark.parametrize("log", ["ca-tp2-graphs-in-the-budget", "compose-tp2", "book-tp2-untimed"])
def test_the_first_rank_speaks_for_all_as_newer_releases_print_it(log: str) -> None:
    assert cache_of(start_of((LOGS / "public" / f"{log}.log").read_text(encoding="utf-8"))) is not None


def test_a_rank_whose_lines_tell_nothing_is_counted() -> None:
    spoken = "".join(SPOKE.format(rank=rank) for rank in range(3))
    told = "".join(TOLD.format(rank=rank, gib=50 + rank) for rank in range(3))

    assert cache_of(start_of(spoken + told + SIZED)) == 50 * GIB
    assert cache_of(start_of(spoken + SPOKE.format(rank=3) + told + SIZED)) is None


def test_a_known_release_tells_who_prints() -> None:
    version = "(APIServer pid=7) INFO 12-08 10:14:02 [api_server.py:1977] vLLM API server version {}\n"
    lines = SPOKE.format(rank=0) + SPOKE.format(rank=1) + TOLD.format(rank=0, gib=50) + SIZED

    assert cache_of(start_of(version.format("0.11.0") + lines)) is None
    assert cache_of(start_of(version.format("0.12.0") + lines)) == 50 * GIB


def test_ranks_of_two_nodes_whose_first_speak_for_them_are_told() -> None:
    ray = "(RayWorkerWrapper pid=31{pid}, ip=10.0.0.{node}) INFO 12-08 10:15:20 [gpu_worker.py:298] "
    told = "".join(f"{ray.format(pid=1, node=node)}Available KV cache memory: 5{node}.00 GiB\n" for node in (1, 2))
    silent = "".join(f"{ray.format(pid=2, node=node)}Using FlashAttention backend.\n" for node in (1, 2))

    assert cache_of(start_of(silent + told + SIZED)) == 51 * GIB


def test_an_engine_whose_lines_tell_nothing_is_expected() -> None:
    spoke = "(EngineCore_DP1 pid=131) INFO 12-08 10:15:02 [cuda.py:315] Using FlashAttention backend.\n"
    start = start_of(spoke + SIZED)

    assert (start.capacity.engines_expected, start.missing) == (2, ("engine 1",))
