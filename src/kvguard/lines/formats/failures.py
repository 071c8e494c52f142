"""Why a start fails: messages with their numbers, processes that give up, and lines that only sound like it.

The same text stands in an ERROR record and in a raw traceback, with the exception's class before it in either: an
optional class name opens every pattern. `startup` counts incidents, not lines.
"""

from kvguard.events import ExceptionRaised, FailureReported, ProcessFailed
from kvguard.lines.line_format import INTEGER, NUMBER, LineFormat, Scope

CLASS = r"(?:[A-Za-z_][\w.]*+: )?"
"""The class of the exception, where the line has one."""
REMOTE = r"(?:Worker failed with error ['\"]|RayTaskError\(\w++\): )?"
LINK = r"(?: See \S++ for more details\.)?"
OOM_TAIL = r"(?:[. ].*+)?"


def _failure(
    name: str, literal: str, pattern: str, kind: str, versions: tuple[str, ...], upstream: str, **fixed: object
) -> LineFormat:
    return LineFormat(
        name=name,
        literal=literal,
        pattern=rf"(?P<message>{CLASS}{pattern})",
        emits=(FailureReported,),
        scope=Scope.ENGINE,
        versions=versions,
        upstream=upstream,
        fixed={"kind": kind, **fixed},
    )


def _gives_up(
    name: str, literal: str, pattern: str, versions: tuple[str, ...], upstream: str, kind: str = "engine_crash"
) -> LineFormat:
    return LineFormat(
        name=name,
        literal=literal,
        pattern=rf"(?P<message>{CLASS}{pattern})",
        emits=(ProcessFailed,),
        scope=Scope.PROCESS,
        versions=versions,
        upstream=upstream,
        fixed={"kind": kind},
    )


CAPACITY: tuple[LineFormat, ...] = (
    _failure(
        "fail-context-over-cache",
        "is larger than the maximum number of tokens that can be stored in KV cache",
        rf"The model's max seq len \((?P<requested_tokens>{INTEGER})\) is larger than the maximum number of tokens that can be stored in KV cache \((?P<kv_cache_tokens>{INTEGER})\)\.(?: Try increasing `[A-Za-z_]++` or decreasing `max_model_len` when initializing the engine\.)?",
        "kv_cache_too_small",
        ("0.2.7-0.10.2",),
        "engine/llm_engine.py, worker/worker.py; CPU and OpenVINO name their own variable",
    ),
    _failure(
        "fail-cannot-serve-one",
        "To serve at least one request with the model",
        rf"To serve at least one request with the model'?s?'?s max seq len \((?P<requested_tokens>{INTEGER})\), \(?(?P<needed_gib>{NUMBER}) (?:GB|GiB) KV cache is needed, which is larger than the available KV cache memory \((?P<available_gib>{NUMBER}) (?:GB|GiB)\)\.?\)?\.?(?: Based on the available memory,)?(?: the estimated maximum model length is (?P<estimated_tokens>{INTEGER})\.)?(?: {{1,2}}Try increasing `gpu_memory_utilization` (?:\(which also controls CPU memory on the CPU backend\) )?or decreasing `max_model_len` when initializing the engine\.{LINK})?",
        "kv_cache_too_small",
        ("0.7.0-0.33.0",),
        "v1/core/kv_cache_utils.py, kv_cache_planning.py; GB means GiB, the brackets are unbalanced",
    ),
    _failure(
        "fail-no-cache-blocks",
        "No available memory for the cache blocks",
        rf"No available memory for the cache blocks\.(?: Try increasing `[A-Za-z_]++` when initializing the engine(?: \(this flag also controls CPU memory reservation on the CPU backend, despite its name\))?\.)?{LINK}",
        "no_kv_memory",
        ("0.1.7-0.33.0",),
        "engine/llm_engine.py, worker/worker.py, v1/core/kv_cache_utils.py",
    ),
    _failure(
        "fail-cannot-auto-fit",
        "Cannot auto-fit max_model_len: ",
        r"Cannot auto-fit max_model_len: not enough (?:GPU )?memory available to serve even a single token\..*+",
        "no_kv_memory",
        ("0.14.0-0.33.0",),
        "v1/core/kv_cache_utils.py, kv_cache_planning.py",
    ),
    _failure(
        "fail-frontend-reservation",
        "frontend multimodal GPU decoding reserves ",
        rf"frontend multimodal GPU decoding reserves {NUMBER} GiB \([^()]*+\), but only (?P<available_gib>{NUMBER}) GiB is available for the KV cache\..*+",
        "no_kv_memory",
        ("0.25.0-0.33.0",),
        "v1/worker/gpu_ipc_memory.py",
    ),
    _failure(
        "fail-mamba-blocks",
        " exceeds available Mamba cache blocks ",
        r"max_num_seqs \(\d++\) exceeds available Mamba cache blocks \(\d++\)(?:\..*+)?",
        "kv_cache_too_small",
        ("0.17.0-0.33.0",),
        "config/compilation.py: every decoding request needs a state block",
    ),
    _failure(
        "fail-tpu-hbm",
        " exceeds total_hbm_limit_cap_gb=",
        rf"total_hbm_used_gb={NUMBER}GiB exceeds total_hbm_limit_cap_gb={NUMBER}GiB by {NUMBER}GiB\. Please consider increasing --gpu-memory-utilization from (?P<utilization>{NUMBER}) to a larger value\.",
        "no_kv_memory",
        ("tpu-inference 0.11.1-0.32.0",),
        "tpu_inference worker/tpu_worker.py",
    ),
    _failure(
        "fail-spyre-pages",
        "Number of pages available on Spyre ",
        r"Number of pages available on Spyre \(?\d++\)? is not enough to serve the current model \(need at least \(?\d++\)? pages\)\.",
        "kv_cache_too_small",
        ("vllm-spyre 1.1.0-2.0.0",),
        "vllm_spyre",
    ),
    _failure(
        "fail-rbln-blocks",
        "Not enough memory for ",
        r"Not enough memory for \d++ blocks of KV cache\. Try reducing the number of blocks by setting --num-gpu-blocks-override\.",
        "kv_cache_too_small",
        ("vllm-rbln 0.10.4-0.11.0",),
        "vllm_rbln rbln_worker.py",
    ),
    _failure(
        "fail-rbln-dram",
        "Insufficient DRAM during block calculation",
        r"Insufficient DRAM during block calculation\. Try reducing gpu_memory_utilization\.",
        "no_kv_memory",
        ("vllm-rbln 0.10.4-0.12.0",),
        "vllm_rbln",
    ),
    _failure(
        "fail-neuron-blocks",
        " blocks are required for max_model_len",
        r"At least \d++ blocks are required for max_model_len.*+",
        "kv_cache_too_small",
        ("neuron",),
        "the Neuron worker",
    ),
)

MEMORY: tuple[LineFormat, ...] = (
    _failure(
        "fail-free-memory",
        " on startup is less than desired GPU memory utilization ",
        rf"Free memory on device(?: [\w:.]++)? \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup is less than desired GPU memory utilization \((?P<utilization>{NUMBER}), (?P<needed_gib>{NUMBER}) GiB\)\.(?: Decrease GPU memory utilization or reduce GPU memory used by other processes\.)?",
        "free_memory_below_utilization",
        ("0.9.1-0.33.0", "vllm-ascend 0.15.0-0.30.0"),
        "v1/worker/gpu_worker.py, v1/worker/utils.py request_memory",
        transient=True,
    ),
    _failure(
        "fail-free-memory-external-weights",
        " after excluding external process's weights ",
        rf"Free memory on device [\w:.]++ \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup is less than the engine's budget after excluding external process's weights \((?P<utilization>{NUMBER}), (?P<needed_gib>{NUMBER}) GiB\)\..*+",
        "free_memory_below_utilization",
        ("0.32.0-0.33.0",),
        "v1/worker/utils.py",
        transient=True,
    ),
    _failure(
        "fail-external-weights",
        "Externally held weights on device ",
        rf"Externally held weights on device [\w:.]++ \({NUMBER}/(?P<total_gpu_gib>{NUMBER}) GiB\) exceed the desired GPU memory utilization \((?P<utilization>{NUMBER}), {NUMBER} GiB\)\..*+",
        "free_memory_below_utilization",
        ("0.32.0-0.33.0",),
        "v1/worker/utils.py",
    ),
    _failure(
        "fail-free-memory-cpu",
        " on startup is less than desired CPU memory utilization ",
        rf"Available memory on node \d++ \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup is less than desired CPU memory utilization \((?P<utilization>{NUMBER}), (?P<needed_gib>{NUMBER}) GiB\)\..*+",
        "free_memory_below_utilization",
        ("cpu 0.20.0-0.32.0",),
        "v1/worker/cpu_worker.py",
        transient=True,
    ),
    _failure(
        "fail-free-memory-cpu-allocation",
        " on kv cache allocation is less than requested memory for kv ",
        rf"Available memory on node \d++ \((?P<free_gib>{NUMBER})/{NUMBER} GiB\) on kv cache allocation is less than requested memory for kv \((?P<needed_gib>{NUMBER})(?:/{NUMBER})? GiB\)\..*+",
        "free_memory_below_utilization",
        ("cpu 0.20.0-0.33.0",),
        "v1/worker/cpu_worker.py",
    ),
    _failure(
        "fail-cpu-worker-over-budget",
        "The worker already uses ",
        rf"The worker already uses {NUMBER} GiB \(model weights and runtime\), more than the {NUMBER} GiB of CPU memory reserved for it on node \d++, leaving none for the KV cache\..*+",
        "no_kv_memory",
        ("cpu 0.33.0",),
        "v1/worker/cpu_worker.py",
    ),
    _failure(
        "fail-profiling",
        "Error in memory profiling.",
        rf"Error in memory profiling\.(?: Initial (?:free|used)(?: NPU)? memory {NUMBER}(?: GiB)?, (?:current free|currently used|current)(?: NPU)? memory {NUMBER}(?: GiB)?\.)? This happens when .++",
        "free_memory_below_utilization",
        ("0.4.0.post1-0.33.0", "vllm-ascend 0.7.3-0.14.0"),
        "worker/worker.py, v1/worker/gpu_worker.py: another process released memory while this one measured",
        transient=True,
    ),
    _failure(
        "fail-oom",
        " out of memory. Tried to allocate ",
        rf"{REMOTE}(?:[A-Za-z_][\w.]*+: )?(?:CUDA|HIP|XPU|NPU) out of memory\. Tried to allocate .++",
        "oom",
        ("0.1.0-0.33.0",),
        "PyTorch; the words vary with it",
    ),
    _failure(
        "fail-oom-cuda-error",
        "error: out of memory",
        r"(?:CUDA|HIP) error: out of memory(?:[. ].*+)?",
        "oom",
        ("0.1.0-0.33.0",),
        "PyTorch, a driver's refusal outside of its allocator",
    ),
    _failure(
        "fail-oom-loading",
        "Failed to load model - not enough GPU memory.",
        r"Failed to load model - not enough GPU memory\. Try lowering --gpu-memory-utilization .*+",
        "oom",
        ("0.13.0-0.33.0",),
        "v1/worker/gpu_model_runner.py",
    ),
    _failure(
        "fail-oom-warm-up",
        " out of memory occurred when warming up ",
        r"CUDA out of memory occurred when warming up (?:sampler|pooler(?: \([^()]*+\))?) with \d++ dummy requests\..*+",
        "oom",
        ("0.8.0-0.33.0",),
        "v1/worker/gpu_model_runner.py, after healthy capacity lines; the word CUDA is fixed on every platform",
    ),
    _failure(
        "fail-oom-tpu",
        "Unable to load model, a likely reason is ",
        r"Unable to load model, a likely reason is .++",
        "oom",
        ("tpu 0.10.0-0.13.0",),
        "v1/worker/tpu_model_runner.py",
    ),
)

OTHERS: tuple[LineFormat, ...] = (
    _failure(
        "fail-context-over-model",
        "User-specified max_model_len (",
        rf"(?:Value error, )?User-specified max_model_len \((?P<requested_tokens>{INTEGER})\) is greater than the derived max_model_len \(.++",
        "invalid_config",
        ("0.2.0-0.33.0",),
        "config/model.py; a warning instead with VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    ),
    LineFormat(
        name="fail-validation",
        literal=" validation error",
        pattern=r"(?P<message>(?:[A-Za-z_][\w.]*+: )?\d++ validation errors? for \w++)",
        emits=(ExceptionRaised,),
        scope=Scope.PROCESS,
        versions=("0.10.0-0.33.0",),
        upstream="pydantic, for vLLM's configuration classes",
    ),
    LineFormat(
        name="fail-arguments",
        literal=": error: ",
        pattern=r"(?P<message>(?:vllm|api_server\.py|[\w.]++)(?: serve)?: error: .++)",
        emits=(FailureReported,),
        scope=Scope.PROCESS,
        versions=("0.1.0-0.33.0",),
        upstream="argparse",
        fixed={"kind": "invalid_config"},
    ),
    LineFormat(
        name="fail-killed",
        literal="illed",
        pattern=r"(?P<message>(?:.{0,200}?: line \d++: +\d++ )?Killed(?: +\S.{0,400}+)?)",
        emits=(FailureReported,),
        scope=Scope.PROCESS,
        versions=("0.1.0-0.33.0",),
        upstream="the shell, of a process that the kernel ended",
        fixed={"kind": "killed"},
    ),
    LineFormat(
        name="fail-exit-137",
        literal=" 137",
        pattern=r"(?P<message>(?:Process |Container |Command )?.{0,120}?(?:exit(?:ed)?(?: with)?(?: exit)?(?: code| status)?|terminated with exit code)[: ]{1,2}137\.?)",
        emits=(FailureReported,),
        scope=Scope.PROCESS,
        versions=("0.1.0-0.33.0",),
        upstream="a container runtime or a wrapper script",
        fixed={"kind": "killed"},
    ),
    _gives_up(
        "process-engine-core-failed",
        "EngineCore failed to start.",
        r"EngineCore failed to start\.",
        ("0.8.5-0.33.0",),
        "v1/engine/core.py; the traceback follows in the same record",
    ),
    _gives_up(
        "process-engine-core-exception",
        "EngineCore hit an exception: ",
        r"EngineCore hit an exception: .*+",
        ("0.7.0-0.8.4",),
        "v1/engine/core.py",
    ),
    _gives_up(
        "process-initialization-failed",
        "ngine core initialization failed. See root cause above.",
        r"Engine core initialization failed\. See root cause above\..*+",
        ("0.8.4-0.33.0",),
        "v1/engine/utils.py, core_client.py: the last line, the cause is above",
    ),
    _gives_up(
        "process-initialization-failed-named",
        " initialization failed. See root cause above.",
        r"(?!Engine core)[\w.]++ initialization failed\. See root cause above\.",
        ("0.7.0-0.8.3",),
        "v1/engine/core_client.py",
    ),
    _gives_up(
        "process-worker-failed",
        "WorkerProc failed to start.",
        r"WorkerProc failed to start\.",
        ("0.6.5-0.33.0",),
        "v1/executor/multiproc_executor.py; the cause follows",
    ),
    _gives_up(
        "process-worker-exception",
        "WorkerProc hit an exception",
        r"WorkerProc hit an exception(?:: %s|\.)?",
        ("0.7.0-0.33.0",),
        "v1/executor/multiproc_executor.py; to 0.8.5 the placeholder stays in the text",
    ),
    _gives_up(
        "process-worker-method-failed",
        "This might cause deadlock in distributed execution.",
        r"Error executing method '?\w++'?\. This might cause deadlock in distributed execution\.",
        ("0.4.0.post1-0.33.0",),
        "worker/worker_base.py; the traceback follows in the same record",
    ),
    _gives_up(
        "process-worker-exited",
        " died, exit code: ",
        r"Worker \w++ pid \d++ died, exit code: -?\d++",
        ("0.4.2-0.10.2",),
        "executor/multiproc_worker_utils.py",
    ),
    _gives_up(
        "process-worker-initialization-failed",
        "WorkerProc initialization failed due to an exception in a background process",
        r"WorkerProc initialization failed due to an exception in a background process\. See stack trace for root cause\.",
        ("0.8.5-0.33.0",),
        "v1/executor/multiproc_executor.py",
    ),
    _gives_up(
        "process-engine-failed",
        " failed to start.",
        r"(?:Engine process|EngineCoreProc) failed to start\.(?: See stack trace for the root cause\.)?",
        ("0.6.2-0.10.2",),
        "entrypoints/openai/api_server.py (V0), v1/engine/core.py (early V1)",
    ),
    _gives_up(
        "process-engine-fatal",
        "EngineCore encountered a fatal error.",
        r"EngineCore encountered a fatal error\.",
        ("0.8.5-0.33.0",),
        "v1/engine/core.py, of an engine that had started",
    ),
    _gives_up(
        "process-worker-died",
        " died unexpectedly",
        r"(?:(?:Worker|Engine core) proc \S++|RayWorkerProc rank=\S++) died unexpectedly(?: \(exit code: (?:-?\d++|None)\))?, shutting down (?:executor|client)\.",
        ("0.8.5-0.33.0",),
        "v1/executor/multiproc_executor.py, v1/engine/core_client.py",
    ),
    _gives_up(
        "process-start-timed-out",
        "Timed out waiting for engine core processes to start.",
        r"Timed out waiting for engine core processes to start\..*+",
        ("0.17.0-0.33.0",),
        "v1/engine/core_client.py",
        kind="other",
    ),
    _gives_up(
        "process-engine-dead",
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        r"EngineCore encountered an issue\. See stack trace \(above\) for the root cause\.",
        ("0.8.5-0.33.0",),
        "v1/engine/exceptions.py: what a front end says after its engine has died, or while it is shut down",
    ),
    LineFormat(
        name="decoy-long-context",
        literal="The model has a long context length (",
        pattern=r"The model has a long context length \(\d++\)\. This may cause ?OOM .++",
        emits=(),
        scope=Scope.PROCESS,
        versions=("0.5.0-0.10.2",),
        upstream="config.py: advice, nothing has failed",
    ),
    LineFormat(
        name="decoy-shared-memory-wait",
        literal="No available shared memory broadcast block",
        pattern=r"No available (?:shared memory broadcast )?block(?:s)? found in \d++ seconds\..*+|No available shared memory broadcast block.*+",
        emits=(),
        scope=Scope.PROCESS,
        versions=("0.8.0-0.33.0",),
        upstream="distributed/device_communicators/shm_broadcast.py: a process waits, nothing has failed",
    ),
)

ROWS: tuple[LineFormat, ...] = CAPACITY + MEMORY + OTHERS
