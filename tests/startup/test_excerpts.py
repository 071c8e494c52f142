"""Excerpts that several starts, or the middle of one, have left behind: what belongs together, and what is proven."""

from kvguard.startup.report import FailureKind, Phase
from tests.startup.lines import read, start_of

LONGER_REFUSED = """\
Available KV cache memory: 10.55 GiB
GPU KV cache size: 230,528 tokens
[kv_cache_utils.py:868] Maximum concurrency for 100,000 tokens per request: 2.31x
ValueError: To serve at least one request with the models's max seq len (221000), (10.12 GiB KV cache is needed, which \
is larger than the available KV cache memory (5.59 GiB). Based on the available memory, the estimated maximum model \
length is 122080. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
"""
V0_RUN = """\
Loading model weights took {weights} GB
Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.06GiB \
memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size={cache}GiB gpu_memory_utilization=0.90
# GPU blocks: {blocks}, # CPU blocks: 2048
Maximum concurrency for {length} tokens per request: {requests}x
"""
WORKERS_WITH_PIDS = """\
INFO 11-11 15:09:07 api_server.py:528] vLLM API server version 0.6.3.post1
INFO 11-11 15:09:10 llm_engine.py:237] Initializing an LLM engine (v0.6.3.post1) with config: \
model='meta-llama/Llama-3.1-8B-Instruct', max_seq_len=131072, tensor_parallel_size=2, kv_cache_dtype=auto
INFO 11-11 15:09:24 model_runner.py:1067] Loading model weights took 7.5122 GB
(VllmWorkerProcess pid=488951) INFO 11-11 15:09:24 model_runner.py:1067] Loading model weights took 7.5122 GB
INFO 11-11 15:09:28 distributed_gpu_executor.py:57] # GPU blocks: 70165, # CPU blocks: 8192
INFO 11-11 15:09:28 distributed_gpu_executor.py:61] Maximum concurrency for 131072 tokens per request: 8.57x
INFO:     Started server process [488700]
INFO:     Application startup complete.
"""
STATS = (
    "INFO 11-11 15:10:02 metrics.py:345] Avg prompt throughput: 5.1 tokens/s, Avg generation throughput: 9.1 tokens/s, "
    "Running: 3 reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 1.5%, CPU KV cache usage: 0.0%.\n"
)


def test_a_context_that_another_start_has_served_was_refused_to_the_next() -> None:
    report = read(LONGER_REFUSED)

    assert report.start is not None
    assert (report.starts, report.start.phase) == (2, Phase.FAILED)
    assert report.start.capacity.weakest.kv_cache_tokens is None
    assert report.start.max_model_len == 221_000


def test_weights_behind_a_pool_are_the_next_starts() -> None:
    first = V0_RUN.format(weights="14.9888", cache="3.81", blocks=1952, length=20000, requests="1.56")
    second = V0_RUN.format(weights="14.9910", cache="2.89", blocks=1478, length=29000, requests="0.82")

    report = read(first + second)

    assert report.start is not None
    assert report.starts == 2
    assert report.start.memory.weights == round(14.9910 * 2**30)
    assert report.start.memory.kv_cache == round(2.89 * 2**30)


def test_a_server_without_a_pid_is_believed_where_only_its_workers_have_some() -> None:
    """To 0.10.1 neither the API server nor the engine prints its pid; the workers of TP and PP do."""
    start = start_of(WORKERS_WITH_PIDS + STATS)

    assert start.phase is Phase.READY
    assert (start.runtime.samples, start.runtime.peak_running, start.runtime.peak_waiting) == (1, 3, 1)


def test_options_about_memory_are_no_progress() -> None:
    start = start_of(
        "WARNING 05-14 17:28:21 [cpu.py:106] Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) for CPU backend is not "
        "set, using 4 by default.\n"
    )

    assert start.phase is Phase.LOADING


def test_the_highest_engine_that_has_spoken_tells_how_many_there_are() -> None:
    start = start_of(
        "(EngineCore_DP3 pid=14) INFO 12-08 10:15:03 [gpu_model_runner.py:3549] Model loading took 14.9600 GiB memory "
        "and 17.362905 seconds\n"
    )

    assert start.capacity.engines_expected == 4
    assert start.missing == ("engine 0", "engine 1", "engine 2", "engine 3")


def test_a_pool_whose_tokens_contradict_its_concurrency_has_several_kinds_of_layers() -> None:
    start = start_of(
        "INFO 01-23 15:50:11 [api_server.py:1351] vLLM API server version 0.13.0\n"
        "(EngineCore_DP0 pid=164) INFO 01-23 15:50:29 [kv_cache_utils.py:1291] GPU KV cache size: 282,624 tokens\n"
        "(EngineCore_DP0 pid=164) INFO 01-23 15:50:29 [kv_cache_utils.py:1296] Maximum concurrency for 8,192 tokens "
        "per request: 54.44x\n"
    )

    warning = next(warning for warning in start.warnings if warning.code == "hybrid-token-figure")
    assert warning.place is not None
    assert warning.place.line == 2


def test_a_failure_of_the_same_length_is_of_the_same_start() -> None:
    start = start_of(
        V0_RUN.format(weights="14.9888", cache="2.89", blocks=1478, length=29000, requests="0.82")
        + "The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache "
        "(23648). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )

    assert start.index == 1
    assert start.failure is not None
    assert start.failure.kind is FailureKind.KV_CACHE_TOO_SMALL
    assert start.capacity.weakest.gpu_blocks == 1478


def test_statistics_show_that_a_server_is_ready_and_not_since_when() -> None:
    """A server that prints no ready line (0.3 in somebody's service): its first request comes when it comes."""
    start = start_of(
        "INFO 03-20 21:31:06 llm_engine.py:70] Initializing an LLM engine with config: model='acme/Quill-7B', "
        "max_seq_len=32768, tensor_parallel_size=1, kv_cache_dtype=auto\n"
        "INFO 03-20 21:31:16 llm_engine.py:275] # GPU blocks: 2043, # CPU blocks: 2048\n"
        "INFO 03-20 21:42:25 llm_engine.py:706] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 "
        "tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%\n"
    )

    assert start.phase is Phase.READY
    assert start.timings.ready is None


def test_refusals_that_one_process_cannot_both_have_said_are_of_two_attempts() -> None:
    """A troubleshooting page goes from one to the next; the newest is told with its own figures, and with no others."""
    oom = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB.\n\n# GPU blocks: 0\n"
    none = (
        "ValueError: No available memory for the cache blocks.\nTry increasing `gpu_memory_utilization` when initializing "
        "the engine.\n\n"
    )
    short = (
        "ValueError: The model's max seq len ({asked}) is larger than the maximum number of tokens that can be stored in KV "
        "cache ({there}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
        "engine.\n\n"
    )
    first, second = short.format(asked=32768, there=4464), short.format(asked=2048, there=1936)

    told = [read(text) for text in (oom + none, none + first, first + second, none + none)]

    assert [
        (report.starts, report.start and report.start.failure and report.start.failure.kind) for report in told
    ] == [
        (2, FailureKind.NO_KV_MEMORY),
        (2, FailureKind.KV_CACHE_TOO_SMALL),
        (2, FailureKind.KV_CACHE_TOO_SMALL),
        (1, FailureKind.NO_KV_MEMORY),
    ]
    assert told[2].start is not None
    assert told[2].start.max_model_len == 2048
