"""Whose word counts: a server that has shown itself says when it is ready, and one without a name may go on speaking."""

from kvguard import Guard
from kvguard.startup.report import Phase
from tests.startup.lines import BOOT, READY, SIZED, log, start_of

SHOWN = "(APIServer pid=100) INFO 12-08 10:15:42 [api_server.py:1634] Supported_tasks: ['generate']\n"
OF_V0 = """\
INFO 11-20 09:00:00 api_server.py:495] vLLM API server version 0.6.3.post1
INFO 11-20 09:00:05 llm_engine.py:237] Initializing an LLM engine (v0.6.3.post1) with config: model='acme/Quill-8B', tensor_parallel_size=2
(VllmWorkerProcess pid=532) INFO 11-20 09:00:40 model_runner.py:1067] Loading model weights took 7.5122 GB
INFO 11-20 09:01:00 distributed_gpu_executor.py:57] # GPU blocks: 27500, # CPU blocks: 2048
INFO:     Application startup complete.
"""
OF_V0_SERVING = (
    "INFO 11-20 09:02:00 metrics.py:345] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
    "Running: 3 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 12.5%, CPU KV cache usage: 0.0%.\n"
)


def test_engines_alone_make_no_start_ready_that_a_server_will_serve():
    assert start_of(log(SIZED)).phase is Phase.READY
    assert start_of(log(SIZED) + SHOWN).phase is Phase.ALLOCATED
    assert start_of(SHOWN + log(SIZED)).phase is Phase.ALLOCATED


def test_a_source_file_that_only_a_server_loads_shows_it_where_no_process_is_named():
    init = "INFO 05-11 12:04:07 [llm_engine.py:435] init engine (profile, create kv cache, warmup model) took 0.15 seconds\n"
    chat = "INFO 05-11 12:04:08 [serving_chat.py:116] Using default chat sampling params from model: {'top_k': 20}\n"

    assert start_of("# GPU blocks: 1170, # CPU blocks: 0\n" + init).phase is Phase.READY
    assert start_of("# GPU blocks: 1170, # CPU blocks: 0\n" + init + chat).phase is Phase.ALLOCATED


def test_the_servers_own_word_makes_it_ready_after_all():
    start = start_of(log(SIZED) + SHOWN + log(READY))

    assert start.phase is Phase.READY
    assert start.capacity.weakest.max_concurrency == 53.71


def test_what_is_told_once_the_engines_are_ready_changes_no_figure_though_a_server_shows():
    start = start_of(log(SIZED) + SHOWN + log(SIZED, concurrency="99.99"))

    assert start.capacity.weakest.max_concurrency == 53.71


def test_the_start_is_timed_from_where_its_server_has_shown_itself():
    start = start_of(SHOWN.replace("10:15:42", "10:14:00") + log(BOOT, SIZED, READY))

    assert start.timings.ready == 105.0


def test_a_server_without_a_name_is_believed_beside_workers_that_have_one():
    start = start_of(OF_V0 + OF_V0_SERVING)

    assert start.runtime.samples == 1
    assert start.runtime.peak_kv_cache_usage == 0.125


def test_it_may_end_in_order():
    ended = "INFO 11-20 09:03:00 multiproc_worker_utils.py:140] Terminating local vLLM worker processes\n"

    assert start_of(OF_V0 + OF_V0_SERVING + ended).phase is Phase.STOPPED


def test_an_engine_is_expected_that_only_fails():
    failed = "(EngineCore_3 pid=2095494) ERROR 04-17 23:05:06 [core.py:390] EngineCore hit an exception: Traceback\n"

    assert start_of(failed).capacity.engines_expected == 4


def test_a_requests_handler_fails_no_start():
    guard = Guard()
    guard.feed(
        b"ERROR serving_chat.chat_completion_stream_generator: Error in chat completion stream generator.\n"
        b"Traceback (most recent call last):\n"
        b'  File "/opt/venv/lib/python3.12/site-packages/vllm/entrypoints/openai/serving_chat.py", line 503, in stream\n'
        b"    async for res in result_generator:\n"
        b"ValueError: a python exception was caught while processing the async generator: MQEngineDeadError\n"
    )
    guard.end()

    assert guard.report.start is None


def test_the_same_server_fails_where_it_is_made():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/entrypoints/openai/serving_chat.py", line 95, in __init__\n'
        "    raise TypeError('Error: --enable-auto-tool-choice requires a parser')\n"
        "TypeError: Error: --enable-auto-tool-choice requires a parser\n"
    )

    assert start_of(text).phase is Phase.FAILED


def test_tokens_and_concurrency_that_contradict_each_other_are_of_several_kinds_of_layers():
    def codes(tokens: str) -> list[str]:
        text = "INFO 01-02 03:04:05 [api_server.py:1] vLLM API server version 0.13.0\n"
        text += f"GPU KV cache size: {tokens} tokens\nMaximum concurrency for 8,192 tokens per request: 54.44x\n"
        return [warning.code for warning in start_of(text).warnings]

    assert codes("282,624") == ["hybrid-token-figure"]
    assert codes("445,968") == []


def test_a_start_takes_time_though_its_records_tell_nothing():
    waits = (
        "(EngineCore_DP0 pid=130) INFO 12-08 10:24:02 [shm_broadcast.py:542] No available shared memory broadcast block "
        "found in 60 seconds.\n"
    )
    start = start_of(log(BOOT, SIZED) + waits)

    assert start.began is not None
    assert start.latest == start.began + 600


def test_an_engine_that_encounters_a_fatal_error_had_started():
    fatal = "(EngineCore_DP0 pid=130) ERROR 12-08 10:30:00 [core.py:710] EngineCore encountered a fatal error.\n"

    assert start_of(fatal).phase is Phase.STOPPED
    assert start_of(log(BOOT) + fatal).phase is Phase.FAILED


def test_a_length_of_nothing_is_none():
    text = "GPU KV cache size: 100 tokens\nMaximum concurrency for 0 tokens per request: 5.00x\n"

    assert start_of(text).max_model_len is None


def test_a_clock_that_goes_back_times_nothing():
    back = log(BOOT, SIZED, READY, hour=12).replace("12-08 12:15:45", "12-07 12:15:45")

    assert start_of(log(BOOT, SIZED, READY, hour=12)).timings.ready == 103.0
    assert start_of(back).timings.ready is None
