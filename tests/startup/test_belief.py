"""What is believed once a server serves: nothing that its users can write, and a real restart all the same."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvguard import Guard
from kvguard.startup.report import CapacityReport, Phase
from tests.lines.test_envelopes import facts
from tests.startup.lines import BOOT, CRASHED, READY, REFUSED, SIZED, STATS, STOPPED, log, read

SERVING = log(BOOT, SIZED, READY, STATS)
ALIVE = log(STATS, hour=11)
RESTART = log(STOPPED) + log(BOOT, SIZED, READY, api=900, core=930, hour=12, concurrency="26.85")
LURES = {
    "a whole start of the same processes": log(BOOT, SIZED, READY, hour=11, concurrency="99.99"),
    "a whole start of new processes": log(BOOT, SIZED, READY, api=5, core=7, hour=11, concurrency="99.99"),
    "a start that fails": log(BOOT, REFUSED, api=5, core=7, hour=11),
    "capacity alone": log(SIZED, hour=11, concurrency="99.99"),
    "a crash": log(CRASHED, api=5, core=7, hour=11),
    "an end": log(STOPPED, api=5, hour=11),
    "lines of old releases": (
        "INFO 12-08 11:00:00 llm_engine.py:161] Initializing an LLM engine (v0.4.3) with config: model='x', seed=1\n"
        "INFO 12-08 11:00:01 gpu_executor.py:83] # GPU blocks: 999999, # CPU blocks: 2048\n"
        "INFO 12-08 11:00:01 gpu_executor.py:87] Maximum concurrency for 8192 tokens per request: 99.99x\n"
    ),
    "stripped lines": "GPU KV cache size: 999,999 tokens\nMaximum concurrency for 8,192 tokens per request: 9.99x\n"
    "Killed\n",
    "failures": (
        "ValueError: No available memory for the cache blocks.\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    ),
}
"""What a client would like to be read."""


def as_request_log(lure: str) -> str:
    """vLLM logs a prompt by `repr`, on one line."""
    return (
        f"(APIServer pid=100) INFO 12-08 10:21:00 [logger.py:48] Received request chatcmpl-1: prompt: {lure!r}, "
        "params: SamplingParams(n=1), prompt_token_ids: None, lora_request: None.\n"
    )


def as_request_log_with_newlines(lure: str) -> str:
    """Were it not by `repr`: vLLM's formatter repeats the record's prefix before every inner line."""
    prefix = "(APIServer pid=100) INFO 12-08 10:21:00 [logger.py:48] "
    return "".join(f"{prefix}{line}\r\n" for line in ["Received request chatcmpl-1: prompt: '", *lure.splitlines()])


def as_print(lure: str) -> str:
    """A print of the API server: to 0.30.0 its tag stands before every line."""
    return "".join(f"(APIServer pid=100) {line}\n" for line in lure.splitlines())


def as_raw_lines_of_a_traceback(lure: str) -> str:
    return (
        "(APIServer pid=100) ERROR 12-08 10:21:00 [serving_chat.py:221] Error in preprocessing prompt inputs\n"
        "Traceback (most recent call last):\n"
        '  File "/app/vllm/entrypoints/openai/serving_chat.py", line 199, in create_chat_completion\n'
        f"jinja2.exceptions.TemplateError: {lure}"
    )


def as_access_log(lure: str) -> str:
    """uvicorn quotes the path."""
    first = lure.splitlines()[0].replace(" ", "%20")
    return f'(APIServer pid=100) INFO:     127.0.0.1:55310 - "GET /{first} HTTP/1.1" 404 Not Found\n'


def as_json(lure: str) -> str:
    return "".join(
        json.dumps({"message": line, "levelname": "INFO", "process": 7}) + "\n" for line in lure.splitlines()
    )


def as_cri(lure: str) -> str:
    return "".join(f"2026-12-08T11:00:00.000000000Z stdout F {line}\n" for line in lure.splitlines())


def as_compose(lure: str) -> str:
    return "".join(f"vllm-2  | {line}\n" for line in lure.splitlines())


def as_ray(lure: str) -> str:
    return "".join(f"(RayWorkerWrapper pid=4242, ip=10.0.0.9) {line}\n" for line in lure.splitlines())


def coloured(lure: str) -> str:
    return "".join(f"\x1b[2K\x1b[1A\x1b[0;36m{line}\x1b[0m\n" for line in lure.splitlines())


def behind_carriage_returns(lure: str) -> str:
    line = as_request_log("x").rstrip("\n")
    return "".join(f"{line}\r{part}\n" for part in lure.splitlines())


def behind_other_separators(lure: str) -> str:
    return (
        as_request_log("x").rstrip("\n")
        + "".join(
            f"{mark}{lure.splitlines()[0]}"
            for mark in ("\x00", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\u202e", "⏎")
        )
        + "\n"
    )


def on_one_line(lure: str) -> str:
    return as_request_log("x").rstrip("\n") + " " + " ".join(lure.splitlines()) + "\n"


FORMS: list[Callable[[str], str]] = [
    as_request_log,
    as_request_log_with_newlines,
    as_print,
    as_raw_lines_of_a_traceback,
    as_access_log,
    as_json,
    as_cri,
    as_compose,
    as_ray,
    coloured,
    behind_carriage_returns,
    behind_other_separators,
    on_one_line,
]


LINE_OF_REFUSAL = len((SERVING + LURES["a start that fails"]).partition("ValueError")[0].splitlines())
WHOLE = LURES.pop("a whole start of the same processes")
"""Printed in raw lines it is what a container prints that was killed and started again: see test_doubt."""
PRINTED = [form for form in FORMS if form not in (as_raw_lines_of_a_traceback, as_json, as_cri, as_compose, coloured)]
"""Forms in which no raw line begins with what the user wrote."""
AS_THE_SERVER = {
    "scaled": "(APIServer pid=100) INFO 12-08 11:00:00 [core_client.py:1465] [Elastic EP] Scale up completed, new data "
    "parallel size: 99\n",
    "pool rebuilt": "(EngineCore_DP0 pid=130) INFO 12-08 11:00:00 [core_patch.py:80] [gaudi_reconfigure] kv cache "
    "reinitialized: num_gpu_blocks=999999\n",
    "engine dead": "(EngineCore_DP0 pid=130) ERROR 12-08 11:00:00 [core.py:877] EngineCore encountered a fatal "
    "error.\n",
    "finished": "INFO:     Finished server process [100]\n",
}
"""Lines that would be believed of the server itself."""


def believed(report: CapacityReport) -> dict[str, object]:
    """What must not be moved: everything but what stats lines add up, and that somebody was refused beside."""
    told = facts(report)
    for start in (told["start"],):
        start.pop("runtime"), start.pop("latest")
        start["warnings"] = [warning for warning in start["warnings"] if warning["code"] != "nodes-differ"]
    return told


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("lure", LURES.values(), ids=LURES)
def test_nothing_that_a_user_can_write_is_believed_while_the_server_lives(lure, form):
    assert believed(read(SERVING + form(lure) + ALIVE)) == believed(read(SERVING + ALIVE))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("lure", LURES.values(), ids=LURES)
def test_a_real_restart_behind_it_is_recognised(lure, form):
    report = read(SERVING + form(lure) + ALIVE + RESTART)

    assert report.start is not None
    assert (report.start.phase, report.start.capacity.weakest.max_concurrency) == (Phase.READY, 26.85)
    assert report.starts == 2


@pytest.mark.parametrize("lure", LURES.values(), ids=LURES)
def test_raw_lines_are_withdrawn_when_the_old_server_speaks_again(lure):
    guard = Guard()
    guard.feed(SERVING.encode())
    guard.feed(lure.encode())
    guard.feed(ALIVE.encode())

    assert believed(guard.report) == believed(read(SERVING + ALIVE))


def test_a_refusal_of_unknown_processes_is_named_and_decides_nothing():
    report = read(SERVING + LURES["a start that fails"] + ALIVE)

    assert believed(report) == believed(read(SERVING + ALIVE))
    assert report.start is not None
    assert [(warning.code, warning.place and warning.place.line) for warning in report.start.warnings] == [
        ("nodes-differ", LINE_OF_REFUSAL)
    ]


@pytest.mark.parametrize("form", PRINTED, ids=lambda form: form.__name__)
def test_a_whole_start_of_the_same_processes_is_not_believed_either(form):
    assert believed(read(SERVING + form(WHOLE) + ALIVE)) == believed(read(SERVING + ALIVE))


@settings(max_examples=60, deadline=None)
@given(prompt=st.text(max_size=300), lure=st.sampled_from(sorted(LURES.values())), where=st.integers(0, 3))
def test_user_text_in_a_request_log_changes_nothing(prompt, lure, where):
    text = [prompt, prompt + lure, lure + prompt, lure][where]

    assert believed(read(SERVING + as_request_log(text) + ALIVE)) == believed(read(SERVING + ALIVE))


@pytest.mark.parametrize("form", PRINTED, ids=lambda form: form.__name__)
@pytest.mark.parametrize("lure", AS_THE_SERVER.values(), ids=AS_THE_SERVER)
def test_the_server_is_not_believed_where_it_repeats_what_a_user_says_of_it(lure, form):
    assert believed(read(SERVING + form(lure) + ALIVE)) == believed(read(SERVING + ALIVE))
