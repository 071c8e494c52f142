"""Passing over lines changes nothing: the same report as reading each of them, line numbers included."""

import dataclasses
import os

import pytest
import stringzilla
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvguard.lines import skimming
from kvguard.lines.parser import StartupLogParser
from kvguard.startup.report import CapacityReport, Phase
from tests.lines.serving import (
    ACCESS,
    FORMS,
    JSON,
    PID,
    PLAIN,
    RESTART,
    RUNS,
    STATS,
    as_json,
    other_lines,
    report,
    stats_lines,
)

EXAMPLES = int(os.environ.get("SKIMMING_EXAMPLES", "6"))
"""Logs a form; a change of the skimmer is worth a thousand."""


def lines_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the lines that are read one by one from here on."""
    seen: list[int] = []
    read = StartupLogParser._line
    monkeypatch.setattr(
        StartupLogParser, "_line", lambda parser, number, raw: (seen.append(number), read(parser, number, raw))[1]
    )
    return seen


def plainly(monkeypatch: pytest.MonkeyPatch, data: bytes) -> CapacityReport:
    with monkeypatch.context() as patched:
        patched.setattr(StartupLogParser, "_may_skim", lambda parser: False)
        return report(data)


def without_the_extra(monkeypatch: pytest.MonkeyPatch, data: bytes, chunk: int | None) -> CapacityReport:
    with monkeypatch.context() as patched:
        patched.setattr(skimming, "count", bytes.count)
        patched.setattr(skimming, "find", bytes.find)
        patched.setattr(skimming, "COUNTS_BY_TABLE", False)
        return report(data, chunk)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(stats_lines | other_lines, max_size=60), chunk=st.sampled_from([None, 1000, 4096]))
def test_the_report_is_the_same_as_without(
    form: str, lines: list[str], chunk: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, written = FORMS[form]
    data = start + "".join(f"{written(line)}\n" for line in lines).encode()

    read = plainly(monkeypatch, data)

    assert read == report(data, chunk)
    assert read == without_the_extra(monkeypatch, data, chunk)


def test_the_fast_extra_is_there_to_be_compared() -> None:
    assert (skimming.count, skimming.find) == (stringzilla.count, stringzilla.find)


@pytest.mark.parametrize("data", [b"", b"]", b"a\nb P c\n\nd]", b"\n" * 100, b"x" * 65 + b"\n" + b"] P " * 40])
@pytest.mark.parametrize("sought", [b"\n", b"]", b" P ", b"missing"])
def test_the_fast_extra_counts_and_finds_as_bytes_do(data: bytes, sought: bytes) -> None:
    for start in range(0, len(data) + 1, 7):
        for end in range(start, len(data) + 1, 11):
            assert stringzilla.count(data, sought, start, end) == data.count(sought, start, end)
            assert stringzilla.find(data, sought, start, end) == data.find(sought, start, end)


@pytest.mark.parametrize("form", FORMS)
def test_a_restart_begins_with_peaks_of_its_own(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, written = FORMS[form]
    again = start.replace(b"pid=", b"pid=9").replace(b'"process": ', b'"process": 9')
    before, behind = (
        (f"{written(STATS.format(pid=pid, minute=1, engine=0, running=n, waiting=0, usage=f'{n}.5', part=''))}\n" * 4)
        for pid, n in ((PID, 9), (f"9{PID}", 5))
    )
    ended = f"(APIServer pid={PID}) INFO 11-29 20:00:00 [launcher.py:254] [shutdown] API server: shutdown triggered"
    data = start + f"{before}{written(ended)}\n".encode() + again + behind.encode()

    found = report(data)

    assert found == plainly(monkeypatch, data)
    assert found.start is not None
    assert (found.start.runtime.peak_running, found.start.runtime.peak_kv_cache_usage) == (5, 0.055)


@pytest.mark.parametrize("form", FORMS)
def test_a_restart_in_the_middle_is_found_in_every_form(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, written = FORMS[form]
    access = f"{written(ACCESS)}\n".encode() * 200
    data = start + access + start.replace(b"pid=", b"pid=9") + access

    assert plainly(monkeypatch, data) == report(data, 4096)


@pytest.mark.parametrize("form", FORMS)
def test_what_a_process_has_told_before_it_announces_itself_begins_its_start_alike(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, written = FORMS[form]
    sized = (
        "(EngineCore pid=424243) INFO 11-29 19:01:00 [kv_cache_utils.py:2327] CPU KV cache size: 1,024 tokens, "
        "Maximum concurrency for 99 tokens per request: 10.34x"
    )
    banner = (
        "(EngineCore pid=424243) INFO 11-29 19:00:30 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='other', max_seq_len=99, seed=0"
    )
    lines = [ACCESS] * 12 + [sized, ACCESS, banner]
    data = start + "".join(f"{written(line)}\n" for line in lines).encode()

    assert plainly(monkeypatch, data) == report(data)


def test_json_access_lines_are_never_read_but_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = lines_read(monkeypatch)
    access = as_json(ACCESS, with_pid=False).encode() + b"\n"

    report(JSON + access * 5000, 4096)

    # a line that a chunk cuts is read, and two of them show how they end
    assert len(seen) <= JSON.count(b"\n") + 2 + len(access) * 5000 // 4096 + 1


def test_json_lines_are_skimmed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    access = b'{"message": "10.0.0.7:51234 - \\"GET /health HTTP/1.1\\" 200", "vllm_process_name": "APIServer"}\n'
    stats = (
        b'{"message": "Engine 000: Avg prompt throughput: 4.0 tokens/s, Avg generation throughput: 1.5 tokens/s, '
        b"Running: 7 reqs, Waiting: 2 reqs, CPU KV cache usage: 41.5%, Prefix cache hit rate: 0.0%"
        b'", "vllm_process_name": "APIServer"}\n'
    )
    data = JSON + access * 50 + (stats + access) * 20

    skimmed = report(data)

    assert plainly(monkeypatch, data) == skimmed
    assert skimmed.start is not None
    assert (skimmed.start.runtime.samples, skimmed.start.runtime.peak_running) == (20, 7)


@pytest.mark.parametrize("name", sorted(folder.name for folder in RUNS.iterdir()))
def test_every_run_is_skimmed_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (RUNS / name / "server.log").read_bytes()

    assert plainly(monkeypatch, data) == report(data)


def test_a_restart_behind_a_long_serving_is_found() -> None:
    access = b'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' * 20_000
    data = PLAIN + access + RESTART

    found = report(data)

    assert found.start is not None
    assert (found.starts, found.start.phase) == (3, Phase.STOPPED)
    assert found.counts.lines == len(data.splitlines())


def test_most_lines_are_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = lines_read(monkeypatch)
    stats = STATS.format(pid=PID, minute=1, engine=0, running=1, waiting=0, usage="1.0", part="").encode() + b"\n"
    access = b'INFO:     10.0.0.7:51234 - "GET /health HTTP/1.1" 200 OK\n'

    found = report(PLAIN + (access * 9 + stats) * 500)

    assert found.start is not None
    assert found.start.runtime.samples == 500
    assert len(seen) <= PLAIN.count(b"\n") + 1


def test_counts_add_up() -> None:
    stats = STATS.format(pid=PID, minute=1, engine=0, running=1, waiting=0, usage="1.0", part="").encode() + b"\n"

    assert dataclasses.asdict(report(PLAIN + stats * 10).counts)["lines"] == PLAIN.count(b"\n") + 10


def test_stats_lines_behind_a_restart_of_new_pids_are_not_read_either(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = lines_read(monkeypatch)
    stats = "".join(
        STATS.format(pid=pid, minute=minute % 60, engine=engine, running=engine, waiting=0, usage="1.0", part="") + "\n"
        for pid in (f"9{PID}",)
        for minute in range(200)
        for engine in range(2)
    ).encode()
    data = PLAIN + PLAIN.replace(b"pid=", b"pid=9") + stats

    found = report(data)

    assert len(seen) <= 2 * PLAIN.count(b"\n") + 4
    assert found == plainly(monkeypatch, data)
    assert found.start is not None
    assert (found.starts, found.start.runtime.samples, found.start.runtime.peak_running) == (2, 400, 1)


def test_what_an_earlier_line_tells_late_is_not_learnt_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = STATS.format(pid=PID, minute=1, engine=0, running=1, waiting=0, usage="1.0", part="")
    cut = f"(APIServer pid={PID}) INFO 11-29 18:00:00 [loggers.py:335] Engine 000: Avg prompt"
    data = PLAIN + f"{stats}\n{cut}\n{stats}\n{stats}\n".encode()

    assert report(data, 1) == report(data) == plainly(monkeypatch, data)
