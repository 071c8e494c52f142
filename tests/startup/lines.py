"""Lines of a start as vLLM 0.12 prints them, put together to logs of several starts, cut and interrupted ones."""

from kvguard import Guard
from kvguard.startup.report import CapacityReport, Start

BOOT = """\
(APIServer pid={api}) INFO 12-08 {hour}:14:02 [api_server.py:1977] vLLM API server version 0.12.0
(APIServer pid={api}) INFO 12-08 {hour}:14:02 [utils.py:253] non-default args: {{'model_tag': 'acme/Quill-8B', 'model': 'acme/Quill-8B', 'max_model_len': 8192}}
(EngineCore_DP0 pid={core}) INFO 12-08 {hour}:14:22 [core.py:93] Initializing a V1 LLM engine (v0.12.0) with config: model='acme/Quill-8B', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, kv_cache_dtype=auto, served_model_name=acme/Quill-8B
"""
SIZED = """\
(EngineCore_DP0 pid={core}) INFO 12-08 {hour}:15:03 [gpu_model_runner.py:3549] Model loading took 14.9600 GiB memory and 17.362905 seconds
(EngineCore_DP0 pid={core}) INFO 12-08 {hour}:15:20 [gpu_worker.py:349] Available KV cache memory: {gib} GiB
(EngineCore_DP0 pid={core}) INFO 12-08 {hour}:15:21 [kv_cache_utils.py:1286] GPU KV cache size: {tokens} tokens
(EngineCore_DP0 pid={core}) INFO 12-08 {hour}:15:21 [kv_cache_utils.py:1291] Maximum concurrency for 8,192 tokens per request: {concurrency}x
(EngineCore_DP0 pid={core}) INFO 12-08 {hour}:15:41 [core.py:254] init engine (profile, create kv cache, warmup model) took 33.52 seconds
"""
READY = """\
(APIServer pid={api}) INFO 12-08 {hour}:15:45 [api_server.py:1351] Starting vLLM API server 0 on http://0.0.0.0:8000
(APIServer pid={api}) INFO:     Started server process [{api}]
(APIServer pid={api}) INFO:     Waiting for application startup.
(APIServer pid={api}) INFO:     Application startup complete.
"""
STATS = (
    "(APIServer pid={api}) INFO 12-08 {hour}:20:00 [loggers.py:248] Engine 000: Avg prompt throughput: 10.0 tokens/s, "
    "Avg generation throughput: 90.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%, "
    "Prefix cache hit rate: 0.0%\n"
)
REFUSED = """\
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:21 [core.py:868] EngineCore failed to start.
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:21 [core.py:868] Traceback (most recent call last):
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:21 [core.py:868]   File "/app/vllm/v1/engine/core.py", line 859, in run_engine_core
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:21 [core.py:868] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
(EngineCore_DP0 pid={core}) Process EngineCore_DP0:
(EngineCore_DP0 pid={core}) Traceback (most recent call last):
(EngineCore_DP0 pid={core}) ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
(APIServer pid={api}) Traceback (most recent call last):
(APIServer pid={api})   File "/app/.venv/bin/vllm", line 10, in <module>
(APIServer pid={api}) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""
STOPPED = """\
(APIServer pid={api}) INFO 12-08 {hour}:30:00 [launcher.py:110] Shutting down FastAPI HTTP server.
(APIServer pid={api}) INFO:     Shutting down
(APIServer pid={api}) INFO:     Waiting for application shutdown.
(APIServer pid={api}) INFO:     Application shutdown complete.
(APIServer pid={api}) INFO:     Finished server process [{api}]
"""
CRASHED = """\
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:30:00 [core.py:877] EngineCore encountered a fatal error.
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:30:00 [core.py:877] Traceback (most recent call last):
(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:30:00 [core.py:877] RuntimeError: CUDA error: an illegal memory access was encountered
(APIServer pid={api}) ERROR 12-08 {hour}:30:00 [async_llm.py:525] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
"""


def log(
    *parts: str, api: int = 100, core: int = 130, hour: int = 10, gib: str = "54.00", concurrency: str = "53.71"
) -> str:
    """The parts of one start, with its pids and figures."""
    tokens = f"{round(float(concurrency) * 512) * 16:,}"
    values = {"api": api, "core": core, "hour": hour, "gib": gib, "concurrency": concurrency, "tokens": tokens}
    return "".join(part.format(**values) for part in parts)


def read(text: str) -> CapacityReport:
    """The report of a whole log."""
    guard = Guard()
    guard.feed(text.encode())
    guard.end()
    return guard.report


def start_of(text: str) -> Start:
    """Its newest start."""
    start = read(text).start
    assert start is not None
    return start
