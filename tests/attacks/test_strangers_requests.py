"""What a client of a real vLLM 0.32 got into its log by asking for adapters that do not exist; nothing of it counts."""

from collections.abc import Callable

import pytest

from kvguard import Guard
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import Phase
from tests.attacks.strangers import LINES_OF_FORMATS, MESSAGES, STRANGER, log_of, until_ready

RUN = "vllm-0.32.0-cpu-base"
NEXT = log_of("vllm-0.32.0-cpu-fp8kv")
STAMP = "11-30 03:36:59"
TEXTS = (*MESSAGES[::8], *LINES_OF_FORMATS[::17])


def pids() -> tuple[int, int, int]:
    """Of the API server, the engine and the worker of the run."""
    log = log_of(RUN).decode()
    found = [int(log.partition(f"({tag} pid=")[2].partition(")")[0]) for tag in ("APIServer", "EngineCore", "Worker")]
    return found[0], found[1], found[2]


def record(tag: str, pid: int, level: str, place: str, *lines: str) -> str:
    """As vLLM's formatter writes it: the prefix before each line, a carriage return at each end but the last."""
    prefix = f"({tag} pid={pid}) {level} {STAMP} [{place}] "
    return "\r\n".join(f"{prefix}{part}" for line in lines for part in line.split("\n")) + "\n"


def refused_adapter(text: str) -> str:
    """`POST /v1/load_lora_adapter` with the text for a name and a path; answered 404, and the server serves on."""
    api, engine, worker = pids()
    traceback = ("Traceback (most recent call last):", '  File "/vllm/lora/utils.py", line 375, in f', "    g()")
    missing = f"Loading lora {text} failed: No adapter found for {text}"
    return (
        record(
            "Worker",
            worker,
            "ERROR",
            "lora/utils.py:379",
            "Error downloading the HuggingFace model",
            *traceback,
            f"huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name': '{text}'.",
        )
        + record(
            "Worker",
            worker,
            "ERROR",
            "v1/executor/multiproc_executor.py:1063",
            "WorkerProc hit an exception.",
            *traceback,
            f"FileNotFoundError: [Errno 2] No such file or directory: '{text}/adapter_config.json'",
            "",
            "The above exception was the direct cause of the following exception:",
            "",
            *traceback,
            f"vllm.exceptions.LoRAAdapterNotFoundError: {missing}",
        )
        + record(
            "EngineCore",
            engine,
            "ERROR",
            "v1/engine/core.py:1750",
            "Invocation of add_lora method failed",
            *traceback,
            f"RuntimeError: Worker failed with error '{missing}', please check the stack trace above",
        )
        + record("APIServer", api, "DEBUG", "error_response.py:24", f"create_error_response called with {missing}")
        + 'INFO:     127.0.0.1:51186 - "POST /v1/load_lora_adapter HTTP/1.1" 404 Not Found\n'
    )


SHAPES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "a line of its own": lambda text: f"\n{text}\n",
    "between carriage returns": lambda text: f"\r{text}\r",
    "both": lambda text: f"\r\n{text}\r\n",
    "behind a quote": lambda text: f"'\n{text}",
    "a record of a stranger": lambda text: f"\n(EngineCore pid={STRANGER}) INFO {STAMP} [core.py:1] {text}\n",
    "a record of the engine": lambda text: f"\n(EngineCore pid={pids()[1]}) INFO {STAMP} [core.py:1] {text}\n",
    "a record of the API server": lambda text: f"\r(APIServer pid={pids()[0]}) INFO {STAMP} [x.py:1] {text}\r",
    "containerd's": lambda text: f"\n2026-11-30T03:40:00.000000000Z stdout F {text}\n",
    "uvicorn's": lambda text: f"\nINFO:     {text}\n",
}


def told(guard: Guard) -> tuple[object, ...]:
    """Everything that a report says but the last line, and the verdict."""
    report = guard.report
    assert report.start is not None
    start = report.start
    return (
        report.starts,
        report.unrecognized,
        start.phase,
        start.model,
        start.vllm_version,
        start.engines,
        start.capacity,
        start.runtime,
        start.failure,
        start.warnings,
        guard.verdict.outcome,
    )


def serving() -> Guard:
    guard = Guard()
    guard.feed(until_ready(RUN))
    return guard


def test_an_adapter_that_does_not_exist_leaves_a_good_server_in_service() -> None:
    """Its worker "hit an exception" and its engine's call "failed": both go on serving."""
    guard = serving()
    before = told(guard)

    for _ in range(3):
        guard.feed(refused_adapter("/models/none").encode())
        assert told(guard) == before


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_in_an_adapters_name_is_believed(shape: str) -> None:
    guard = serving()
    before = told(guard)

    for text in TEXTS:
        guard.feed(refused_adapter(SHAPES[shape](text)).encode())
        assert told(guard) == before, text


@pytest.mark.parametrize("shape", SHAPES)
def test_a_restart_behind_it_is_a_second_start(shape: str) -> None:
    guard = serving()
    for text in TEXTS[::11]:
        guard.feed(refused_adapter(SHAPES[shape](text)).encode())

    guard.feed(NEXT)
    guard.end()

    report = guard.report
    assert report.start is not None
    assert (report.starts, report.start.kv_cache_dtype, guard.verdict.outcome) == (2, "fp8", Outcome.PASS)


def test_a_worker_that_was_killed_ends_the_server_all_the_same() -> None:
    """What the real server printed behind three refused adapters when its worker got a SIGKILL."""
    guard = serving()
    _, engine, _ = pids()
    guard.feed(refused_adapter("/models/none").encode())

    guard.feed(
        record(
            "EngineCore",
            engine,
            "ERROR",
            "v1/executor/multiproc_executor.py:290",
            "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.",
        ).encode()
    )

    start = guard.report.start
    assert start is not None
    assert start.phase is Phase.STOPPED
    assert "died-after-ready" in [warning.code for warning in guard.verdict.warnings]
