"""What people and pages do to lines: broken, emboldened, quoted in prose, relayed, set in; and what stays unread."""

import pytest

from kvguard.events import Role
from kvguard.lines.parser import StartupLogParser
from tests.startup.lines import BOOT, READY, SIZED, log, read

ENGINE = "(APIServer pid=5693) (EngineCore_DP0 pid=7960) "
REFUSAL = (
    "ValueError: To serve at least one request with the models's max seq len (1048576), (24.00 GiB KV cache is needed, which "
    "is larger than the available KV cache memory (9.97 GiB). Try increasing `gpu_memory_utilization` or decreasing "
    "`max_model_len` when initializing the engine."
)


def figures(text: str) -> tuple[int | None, float | None]:
    start = read(text).start
    return (
        (None, None)
        if start is None
        else (start.capacity.weakest.kv_cache_tokens, start.capacity.weakest.max_concurrency)
    )


def test_a_line_that_is_broken_as_in_a_shell_is_one():
    head = "(EngineCore pid=7250) INFO ... [kv_cache_utils.py:1869] "
    text = "GPU KV cache size: 110,457 tokens, \\\n    Maximum concurrency for 32,768 tokens per request: 3.37x\n"

    assert figures(head + text) == (110457, 3.37)


def test_a_bold_figure_is_the_figure():
    start = read(
        "INFO 06-19 23:05:20 [gpu_model_runner.py:1933] Graph capturing finished in **17 secs**, took 0.48 GiB\n"
    ).start

    assert start is not None
    assert start.timings.graphs == 17.0


def test_every_message_that_a_sentence_quotes_tells_its_figures():
    sentence = (
        "I see `GPU KV cache size: 12,345 tokens` and `Maximum concurrency for 4,096 tokens per request: 3.01x`.\n"
    )

    assert figures(sentence) == (12345, 3.01)


def test_a_message_without_a_figure_that_a_sentence_quotes_is_advice():
    assert read("If it says `No available memory for the cache blocks.` then lower the utilization.\n").start is None


def test_no_sentence_is_searched_once_the_server_serves():
    lure = "I see `GPU KV cache size: 12,345 tokens` and `Maximum concurrency for 4,096 tokens per request: 3.01x`.\n"

    assert read(log(BOOT, SIZED, READY) + lure).start == read(log(BOOT, SIZED, READY)).start


def test_a_refusal_with_its_authors_words_behind_it_keeps_its_numbers():
    start = read(f"ERROR 04-05 01:12:55 [core.py:390] {REFUSAL} It would be more convenient if it were smaller\n").start

    assert start is not None
    assert start.failure is not None
    assert start.failure.available_bytes == round(9.97 * 2**30)
    assert start.failure.message == REFUSAL


def test_an_engine_speaks_through_a_wrapper_that_has_started_its_server():
    text = (
        f"{ENGINE}INFO 04-14 19:15:07 [kv_cache_utils.py:1100] GPU KV cache size: 136,800 tokens\n"
        f"{ENGINE}INFO 04-14 19:15:07 [kv_cache_utils.py:1104] Maximum concurrency for 4,096 tokens per request: 33.40x\n"
    )

    assert figures(text) == (136800, 33.4)


def test_no_engine_speaks_through_a_server_that_serves():
    quoted = "(APIServer pid=100) (EngineCore_DP0 pid=130) ERROR 12-08 10:30:00 [core.py:877] EngineCore encountered a fatal error.\n"

    assert read(log(BOOT, SIZED, READY) + quoted).start == read(log(BOOT, SIZED, READY)).start


def test_a_text_that_stands_in_goes_on_behind_a_record_of_users_text():
    shown = "(APIServer pid=100) INFO 12-08 10:15:44 [serving_chat.py:125] Using default chat sampling params from model: {}\n"
    whole = log(BOOT, SIZED) + shown + log(READY)

    assert read("".join(f"    {line}\n" for line in whole.splitlines())).start == read(whole).start


def test_a_note_in_wide_brackets_is_none_of_the_message():
    assert figures("GPU KV cache size: 1,041,802 tokens      （util=0.80）\n") == (1041802, None)


def test_a_fork_that_prints_all_its_lines_through_uvicorns_handler_is_no_vllm():
    text = (
        "INFO:     Initializing the Aphrodite Engine (v0.5.2) with the following config:\n"
        "INFO:     # GPU blocks: 17194, # CPU blocks: 4096\n"
        "INFO:     Minimum concurrency: 68.78x\n"
    )

    assert read(text).start is None
    assert figures("INFO: # GPU blocks: 17194, # CPU blocks: 4096\n") == (None, None)
    assert read("INFO: # GPU blocks: 17194, # CPU blocks: 4096\n").start is not None


def test_the_function_of_a_frame_that_a_viewer_has_broken_is_no_exception():
    broken = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.10/runpy.py", line 196, in\n'
        "_run_module_as_main\n"
        "    return _run_code(code, main_globals, None,\n"
    )

    assert read(broken).start is None
    cause = read(broken + "RuntimeError: Engine core initialization failed.\n").start
    assert cause is not None
    assert cause.failure is not None
    assert cause.failure.message == "RuntimeError: Engine core initialization failed."


def test_an_exception_is_written_with_its_words_or_as_a_class_is():
    for last in ("socket.gaierror: [Errno -2] Name or service not known", "zmq.error.Again", "AssertionError"):
        start = read(f"{BOOT}Traceback (most recent call last):\n  frame\n{last}\n").start
        assert start is not None
        assert start.failure is not None
        assert start.failure.message == last


def test_what_stands_behind_a_quoted_block_is_no_rest_of_its_last_line():
    quoted = "INFO 01-02 03:04:05 [kv_cache_utils.py:864] GPU KV cache size:\n```\n12,345 tokens is what I hoped for\n"

    assert figures(quoted) == (None, None)


@pytest.mark.parametrize("columns", [48, 60, 80])
def test_a_prefix_that_is_cut_over_several_lines_names_its_speaker(columns: int) -> None:
    line = (
        "(ServeReplica:default:LLMDeployment:osprey-30b pid=100411) (EngineCoreActor(osprey-30b) pid=100512, ip=10.0.0.7) "
        "(pid=100533, ip=10.0.0.7) (RayWorkerWrapper pid=100633, ip=10.0.0.8) INFO 07-09 08:02:21 [kv_cache_utils.py:716] "
        "GPU KV cache size: 509,232 tokens"
    )
    wrapped = "\n".join(line[start : start + columns] for start in range(0, len(line), columns))
    parser = StartupLogParser()
    (told,) = [*parser.feed(f"{wrapped}\n".encode()), *parser.end()]

    assert (told.format, told.origin.role, told.origin.pid) == ("kv-cache-size", Role.WORKER, 100633)
