"""A stranger's text in the log of a server that serves changes nothing; a real restart behind it is recognised."""

import pytest

from kvguard import Guard
from kvguard.slo.verdict import Outcome
from kvguard.slotted import replace
from kvguard.startup.report import Phase, Start
from tests.attacks.strangers import (
    BY_RAW_LINES,
    CARRIERS,
    LINES_OF_FORMATS,
    LINES_OF_PREFIXES,
    MESSAGES,
    STRANGER,
    log_of,
    pid_of,
    until_ready,
)

RUN = "vllm-0.32.0-cpu-base"
NEXT = log_of("vllm-0.32.0-cpu-fp8kv")
TEXTS = (*MESSAGES, *LINES_OF_FORMATS, *LINES_OF_PREFIXES)
STAMP = "11-29 23:59:59"


def told(guard: Guard) -> tuple[int, Start | None, object, Outcome]:
    """Everything that a report says of the newest start, but that somebody was refused beside it, and the verdict."""
    report = guard.report
    assert report.start is not None
    warnings = tuple(warning for warning in report.start.warnings if warning.code != "nodes-differ")
    return report.starts, replace(report.start, warnings=warnings), report.unrecognized, guard.verdict.outcome


def touched(guard: Guard) -> tuple[object, ...]:
    """Whether any event has been believed: told at a glance, for thousands of texts."""
    fold = guard._folds[None]
    assert fold._state is not None
    return len(guard._folds), fold._starts, id(fold._state), fold._state.last_line, fold._state.phase


def serving(run: str) -> tuple[Guard, int]:
    """A guard that has read a real log until the server was ready, and the pid of that server."""
    log = until_ready(run)
    guard = Guard()
    guard.feed(log)
    return guard, pid_of(log)


def say(guard: Guard, *lines: str) -> None:
    guard.feed("".join(f"{line}\n" for line in lines).encode())


def alive(pid: int) -> str:
    """A record of the server that serves."""
    return f"(APIServer pid={pid}) INFO {STAMP} [launcher.py:1] alive"


@pytest.mark.parametrize("carrier", sorted(set(CARRIERS) - BY_RAW_LINES))
def test_no_wording_that_a_request_carries_in_is_believed(carrier: str) -> None:
    guard, pid = serving(RUN)
    before, untouched = told(guard), touched(guard)

    for text in TEXTS:
        say(guard, CARRIERS[carrier](pid, text))
        assert touched(guard) == untouched, text
    assert told(guard) == before


@pytest.mark.parametrize("carrier", sorted(BY_RAW_LINES))
def test_a_whole_record_of_an_unknown_process_is_believed_until_the_server_speaks(carrier: str) -> None:
    """Only somebody who prints raw lines gets this far: not even he is believed for long."""
    guard, pid = serving(RUN)
    before, untouched = told(guard), touched(guard)

    for text in TEXTS:
        say(guard, CARRIERS[carrier](pid, text))
        if touched(guard) != untouched:
            assert guard.report.start is not None
            assert guard.report.start.phase is not Phase.READY, text
            say(guard, alive(pid))
            assert touched(guard) == untouched, text
    assert told(guard) == before


@pytest.mark.parametrize("run", ["vllm-0.10.2.post2-cpu-base-load", "vllm-0.13.0-cpu-base-load", "vllm-0.27.1-cpu-dp2"])
def test_other_releases_are_no_easier_to_deceive(run: str) -> None:
    guard, pid = serving(run)
    before, untouched = told(guard), touched(guard)

    for carrier in sorted(set(CARRIERS) - BY_RAW_LINES):
        for text in TEXTS[::9]:
            say(guard, CARRIERS[carrier](pid, text))
            assert touched(guard) == untouched, (carrier, text)
    assert told(guard) == before


def test_a_release_that_names_no_process_believes_no_request_either() -> None:
    guard, pid = serving("vllm-0.8.5.post2-cpu-base-load")
    before, untouched = told(guard), touched(guard)

    for carrier in ("prompt of an old release", "answer of an old release", "address in an access line"):
        for text in TEXTS:
            say(guard, CARRIERS[carrier](pid, text))
            assert touched(guard) == untouched, (carrier, text)
    assert told(guard) == before


@pytest.mark.parametrize("carrier", sorted(CARRIERS))
def test_a_real_restart_behind_it_is_recognised(carrier: str) -> None:
    guard, pid = serving(RUN)
    say(guard, *(CARRIERS[carrier](pid, text) for text in TEXTS[::7]), alive(pid))
    alone = Guard()
    alone.feed(NEXT)
    alone.end()

    guard.feed(NEXT)
    guard.end()

    assert guard.report.starts == 2
    assert guard.report.start is not None
    assert alone.report.start is not None
    assert guard.report.start.phase == alone.report.start.phase
    assert guard.report.start.capacity.weakest == alone.report.start.capacity.weakest
    assert guard.report.start.max_model_len == alone.report.start.max_model_len
    assert guard.report.start.kv_cache_dtype == alone.report.start.kv_cache_dtype


OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 2 has a total capacity of "
    "79.18 GiB of which 512.00 MiB is free."
)
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 2 has a total capacity of "
    "79.18 GiB of which 512.00 MiB is free."
)
FORGED_START = (
    f"(EngineCore pid={STRANGER}) INFO {STAMP} [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    "model='other', max_seq_len=64, seed=0",
    f"(EngineCore pid={STRANGER}) INFO {STAMP} [kv_cache_utils.py:2327] CPU KV cache size: 999,999,999 tokens, "
    "Maximum concurrency for 64 tokens per request: 9999.00x",
)


def test_two_forged_starts_in_a_row_are_withdrawn_like_one() -> None:
    guard, pid = serving(RUN)
    before = told(guard)

    say(guard, *FORGED_START, *(line.replace(str(STRANGER), "4343434") for line in FORGED_START), alive(pid))

    assert told(guard) == before


def test_a_tagged_line_without_a_prefix_does_not_adopt_the_old_server() -> None:
    guard, pid = serving(RUN)
    before = told(guard)

    say(guard, *FORGED_START, f"(APIServer pid={pid}) INFO:     Application startup complete.", alive(pid))

    assert told(guard) == before


def test_an_announcement_under_a_known_pid_is_dropped_when_the_server_goes_on() -> None:
    guard, pid = serving(RUN)
    arguments = f"(APIServer pid={pid}) INFO {STAMP} [api_utils.py:286] non-default args: {{'data_parallel_size': 8}}"
    stats = (
        f"(APIServer pid={pid}) INFO {STAMP} [loggers.py:335] Engine 000: Avg prompt throughput: 4.0 tokens/s, "
        "Avg generation throughput: 1.5 tokens/s, Running: 1 reqs, Waiting: 0 reqs, CPU KV cache usage: 1.0%, "
        "Prefix cache hit rate: 0.0%"
    )

    say(guard, arguments, stats)
    guard.feed(NEXT)

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.data_parallel_size) == (2, 1)


def test_no_announcement_under_a_known_pid_reaches_a_start_that_announces_itself() -> None:
    guard, pid = serving(RUN)

    say(guard, f"(APIServer pid={pid}) INFO {STAMP} [api_utils.py:286] non-default args: {{'data_parallel_size': 8}}")
    guard.feed(NEXT)

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.data_parallel_size) == (3, 1)


def test_a_report_is_given_between_an_announcement_in_doubt_and_a_line_that_may_go_on() -> None:
    """Copying the read-only arguments of an announcement once ended the program."""
    guard, pid = serving(RUN)

    say(
        guard,
        f"(APIServer pid={pid}) INFO {STAMP} [api_utils.py:286] non-default args: {{'model': 'other'}}",
        f"(APIServer pid={pid}) INFO {STAMP} [launcher.py:254] [shutdown] API server: shutdown triggered",
        "GPU KV cache size: 5 tokens",
    )

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.phase, guard.report.start.model) == (2, Phase.ALLOCATED, "other")
    assert guard.verdict.outcome is Outcome.PASS


def test_a_name_inside_a_record_makes_no_container() -> None:
    guard, _ = serving(RUN)
    before = told(guard)

    say(guard, *(f"(EngineCore pid={STRANGER}) web-{n}  | INFO {STAMP} [x.py:1] x" for n in range(200)))

    assert told(guard) == before
    assert len(guard._folds) == 1


def test_a_death_in_a_records_traceback_is_told() -> None:
    guard, _ = serving(RUN)
    prefix = f"(EngineCore pid={engine_of(RUN)}) ERROR {STAMP} [core.py:1103] "
    lines = (
        "It broke",
        "Traceback (most recent call last):",
        '  File "x"',
        OUT_OF_MEMORY,
    )

    say(guard, *(prefix + line for line in lines))

    assert "died-after-ready" in [warning.code for warning in guard.verdict.warnings]


def test_what_stands_behind_the_exception_of_a_traceback_is_not() -> None:
    guard, _ = serving(RUN)
    before = told(guard)
    prefix = f"(EngineCore pid={engine_of(RUN)}) ERROR {STAMP} [core.py:1103] "
    lines = ("It broke", "Traceback (most recent call last):", '  File "x"', "ValueError: what a client wrote")

    say(guard, *(prefix + line for line in (*lines, *lines[1:3], OUT_OF_MEMORY)))

    assert told(guard) == before


def engine_of(run: str) -> int:
    return int(log_of(run).partition(b"(EngineCore pid=")[2].partition(b")")[0])
