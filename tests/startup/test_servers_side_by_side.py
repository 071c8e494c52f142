"""Two servers that write into one log: the weakest is judged, the other is named, and nothing of the two is mixed."""

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard.startup.report import CapacityReport, FailureKind, Phase
from tests.startup.lines import BOOT, READY, REFUSED, SIZED, STATS, log, read

RUNS = Path(__file__).parents[2] / "fixtures" / "logs" / "runs"
GOOD, LONGER, REFUSED_RUN = "vllm-0.32.0-cpu-base", "vllm-0.32.0-cpu-gemma3-hybrid", "vllm-0.32.0-cpu-toolong"
FIGURES = ("kv_cache_tokens", "gpu_blocks", "max_model_len", "max_concurrency")


def lines_of(name: str) -> list[str]:
    return (RUNS / name / "server.log").read_text(encoding="utf-8").splitlines()


def starting(name: str) -> list[str]:
    """Its lines up to where it serves, if it does."""
    lines = lines_of(name)
    ready = (index for index, line in enumerate(lines) if "Application startup complete" in line)
    return lines[: next(ready, len(lines))]


def interleaved(first: list[str], second: list[str], seed: int) -> str:
    """Each keeps its order; who writes next is drawn."""
    draw = random.Random(seed)
    turns = [first] * len(first) + [second] * len(second)
    draw.shuffle(turns)
    queues = {id(first): iter(first), id(second): iter(second)}
    return "".join(f"{next(queues[id(turn)])}\n" for turn in turns)


def outline(report: CapacityReport) -> tuple[object, ...]:
    assert report.start is not None
    start, weakest = report.start, report.start.capacity.weakest
    return report.starts, start.phase, start.model, *(getattr(weakest, name) for name in FIGURES)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("other", [LONGER, REFUSED_RUN])
@pytest.mark.parametrize("containers", [("", ""), ("llm-1    | ", "embed-1  | ")], ids=["pids alone", "containers"])
def test_the_weakest_of_two_servers_is_judged(containers: tuple[str, str], other: str, seed: int) -> None:
    first = [containers[0] + line for line in starting(GOOD)]
    second = [containers[1] + line for line in starting(other)]

    report = read(interleaved(first, second, seed))

    assert outline(report) == outline(read("\n".join(starting(other))))
    assert report.start is not None
    assert report.start.warnings[0].code == "nodes-differ"


def unnamed(lines: list[str]) -> list[str]:
    return [re.sub(r"\(\w+ pid=\d+\) ", "", line) for line in lines]


@pytest.mark.parametrize("seed", [0, 1, 2, 15, 16, 23])
@pytest.mark.parametrize("whole", [lines_of, starting], ids=["to its end", "until it serves"])
@pytest.mark.parametrize("release", ["vllm-0.8.5.post2-cpu-{}", "vllm-0.20.2-cpu-{}"], ids=["0.8.5", "pids left out"])
def test_a_refusal_is_not_hidden_by_a_server_that_nothing_tells_apart(release: str, whole, seed: int) -> None:
    first, second = whole(release.format("base-load")), whole(release.format("toolong"))

    report = read(interleaved(unnamed(first), unnamed(second), seed))

    assert report.start is not None
    assert report.start.failure is not None
    assert report.start.failure.kind is FailureKind.KV_CACHE_TOO_SMALL


def orders(first: list[str], second: list[str]) -> Iterator[str]:
    """All orders of the two that leave each its own."""
    for taken in itertools.combinations(range(len(first) + len(second)), len(first)):
        queues = iter(first), iter(second)
        yield "".join(next(queues[index not in taken]) for index in range(len(first) + len(second)))


@pytest.mark.parametrize("hour", [10, 11], ids=["same second", "an hour later"])
@pytest.mark.parametrize("samples", range(3))
@pytest.mark.parametrize("pids", [True, False], ids=["pids", "no pids"])
def test_in_no_order_of_its_lines_is_a_refused_server_passed_over(pids: bool, samples: int, hour: int) -> None:
    server, engine = BOOT[: BOOT.index("(EngineCore")], BOOT[BOOT.index("(EngineCore") :]
    good = [log(part) for part in (BOOT, SIZED, READY, *[STATS] * samples)]
    refused = [log(part, api=200, core=230, hour=hour) for part in (server, engine, REFUSED)]
    if not pids:
        good, refused = unnamed(good), unnamed(refused)
    behind = "".join(refused + good)

    for text in orders(good, refused):
        start = read(text).start

        assert start is not None
        told = start.phase is Phase.FAILED or "nodes-differ" in [warning.code for warning in start.warnings]
        assert told is (text != behind), text


def test_a_server_whose_ready_line_names_nobody_does_not_make_another_one_ready() -> None:
    good, refused = lines_of(GOOD), lines_of(REFUSED_RUN)
    ready = next(index for index, line in enumerate(good) if line == "INFO:     Application startup complete.")

    report = read("\n".join([*good[:5], *refused[:9], *good[5:ready], *refused[9:], *good[ready:]]))

    assert report.start is not None
    assert report.start.phase is Phase.FAILED


def test_a_server_that_is_replaced_while_it_starts_is_not_beside_its_successor() -> None:
    first, second = lines_of(GOOD), lines_of(LONGER)

    report = read("\n".join([*first[:20], *second]))

    assert report.starts == 2
    assert report.start is not None
    assert report.start.phase is Phase.STOPPED
    assert [warning.code for warning in report.start.warnings if warning.code == "nodes-differ"] == []


@pytest.mark.parametrize("shape", ["pp2-unequal-stages", "tp4-one-rank-missing", "v0-tp2-driver-and-worker"])
def test_a_container_that_is_started_again_is_one_server(shape: str) -> None:
    """It gives its processes the same pids again, and to 0.10.1 the server has none at all."""
    log = (RUNS.parent / "shapes" / f"{shape}.log").read_text(encoding="utf-8")
    later = re.sub(r"(?<=-\d\d )(\d\d)(?=:\d\d:\d\d)", lambda hour: f"{int(hour[1]) + 1:02}", log)

    report = read(log + later)

    assert report.starts == 2
    assert report.start is not None
    assert report.start.capacity == read(log).start.capacity  # type: ignore[union-attr]
    assert report.start.missing == read(log).start.missing  # type: ignore[union-attr]
