"""Why a start cannot go on, by memory or by configuration: messages with their numbers.

The same text stands in an ERROR record and in a raw traceback, with the exception's class before it in either, or
quoted by a process that waits for the one that failed: both may open and close every pattern. `startup` counts
incidents, not lines.
"""

from kvguard.events import FailureReported
from kvguard.lines.line_format import COUNT, INTEGER, NUMBER, LineFormat, Scope, up_to
from kvguard.lines.openings import CLASS
from kvguard.lines.patterns import compiled

ALL = ("0.1.0-0.33.0",)
"""What vLLM does not print itself is the same in all its releases."""
SEE_ABOVE = "please check the stack trace above for the root cause"
V0_WORKER = r"Exception in worker \w++ while processing method \w++: "
"""How a worker of V0's multiprocessing repeats its own exception (0.4.2 to 0.10.2)."""
INSIDE = r"(?:RuntimeError: )?+Failed to (?:run autotuning code block|create unquantized linear weights): "
"""Of what failed when an allocator refused: Inductor (PyTorch 2.9), and `layers/linear.py`."""
QUOTED = (
    rf"(?:Worker failed with error ['\"]|\('Worker failed with error %s, {SEE_ABOVE}', ['\"]|{V0_WORKER}|{INSIDE})?"
)
"""What the engine says before it repeats a worker's message (the second form to 0.8.5), or a process its own."""
CLOSED = rf"(?:['\"](?:\)|, {SEE_ABOVE}))?"
UNUSABLE = (
    r"(?:no kernel image is available for execution on the device|invalid device function|the provided PTX was compiled with an "
    r"unsupported toolchain|(?:CUDA-capable device\(s\) is/are|all CUDA-capable devices are) busy or unavailable"
    r"|system not yet initialized)"
)
"""What CUDA and HIP say of a device that their programs cannot run on: no retry mends it."""
KNOWN_CAUSE = (
    r"(?:(?:CUDA|HIP|XPU|NPU) (?:out of memory|(?:driver )?error: out of memory|error: CUBLAS_STATUS_ALLOC)|level_zero backend|"
    rf"(?:CUDA|HIP) error: {UNUSABLE}|"
    r"\[Rank:|"
    r"\[enforce fail|RESOURCE_EXHAUSTED|max_num_seqs|No available memory|To serve at|Free memory on|Error in memory|"
    r"Failed to load model - not|Unable to load model, a|frontend multimodal|total_hbm_used)"
)
"""How the messages begin that have rows of their own, wherever they are quoted."""
RAYLET = r"(?:\(raylet(?:, ip=[\w.]++)?\) )?+(?:\[[^\]]++\] \(raylet\) )?+"
"""Ray's node daemon, which prints no pid."""
LINK = r"(?: See \S++ for more details\.)?"


def failure(
    name: str,
    literal: str,
    pattern: str,
    kind: str,
    versions: tuple[str, ...],
    upstream: str,
    scope: Scope = Scope.ENGINE,
    of_outsiders: bool = False,
    **fixed: object,
) -> LineFormat:
    """A row that tells a cause; `pattern` is the message without the exception's class.

    A page that shows its text as Markdown has eaten the backticks, both of a pair.
    """
    pattern = compiled(r"`([^`]++)`").sub(r"(?:`\1`|\1)", pattern)
    end = "" if pattern.rstrip(")?").endswith((".*+", ".++")) else CLOSED
    return LineFormat(
        name=name,
        literal=literal,
        pattern=rf"(?P<message>{CLASS}{QUOTED}{pattern}{end})",
        emits=(FailureReported,),
        scope=scope,
        versions=versions,
        upstream=upstream,
        fixed={"kind": kind, **fixed},
        of_outsiders=of_outsiders,
    )


CAPACITY: tuple[LineFormat, ...] = (
    failure(
        "fail-context-over-cache",
        "is larger than the maximum number of tokens that can be stored in KV cache",
        rf"The model's max seq len \((?P<requested_tokens>{INTEGER})\) is larger than the maximum number of tokens that can be "
        rf"stored in KV cache \((?P<kv_cache_tokens>{INTEGER})\)\.(?: Try increasing `\w++` or decreasing `max_model_len` when "
        r"initializing the engine\.)?",
        "kv_cache_too_small",
        ("0.2.7-0.10.2",),
        "engine/llm_engine.py, worker/worker.py; CPU and OpenVINO name their own variable",
    ),
    failure(
        "fail-cannot-serve-one",
        "To serve at least one request with the model",
        rf"To serve at least one request with the (?:model's|models's) max seq len \((?P<requested_tokens>{INTEGER})\), "
        rf"\(?+(?P<needed_gib>{NUMBER}) (?:GB|GiB) KV cache is needed(?:, which is larger than the available KV cache memory "
        rf"\((?P<available_gib>{NUMBER}) (?:GB|GiB)\))?+(?:\.\.\.|\.?+\)?+\.?+)(?: Based on the available memory,)?+"
        rf"(?: (?:[Tt]he e|E)stimated maximum model length is (?P<estimated_tokens>{INTEGER})\.)?+(?: {{1,2}}+Try increasing "
        r"`gpu_memory_utilization` (?:\(which also controls CPU memory on the CPU backend\) )?+or decreasing `max_model_len` "
        rf"when initializing the engine\.{LINK})?",
        "kv_cache_too_small",
        ("0.7.0-0.33.0",),
        "v1/core/kv_cache_utils.py, kv_cache_planning.py; GB means GiB, the brackets are unbalanced",
    ),
    failure(
        "fail-no-cache-blocks",
        "No available memory for the cache blocks",
        r"No available memory for the cache blocks\.(?: Try increasing `\w++` when initializing the engine(?: \(this flag also "
        rf"controls CPU memory reservation on the CPU backend, despite its name\))?\.)?{LINK}",
        "no_kv_memory",
        ("0.1.7-0.33.0",),
        "engine/llm_engine.py, worker/worker.py, v1/core/kv_cache_utils.py",
    ),
    failure(
        "fail-cannot-auto-fit",
        "Cannot auto-fit max_model_len: ",
        r"Cannot auto-fit max_model_len: not enough (?:GPU )?memory available to serve even a single token\. Try increasing "
        r"`gpu_memory_utilization`\.",
        "no_kv_memory",
        ("0.14.0-0.33.0",),
        "v1/core/kv_cache_utils.py, kv_cache_planning.py",
    ),
    failure(
        "fail-frontend-reservation",
        "frontend multimodal GPU decoding reserves ",
        rf"frontend multimodal GPU decoding reserves {NUMBER} GiB \([^()]*+\), but only (?P<available_gib>{NUMBER}) GiB is "
        r"available for the KV cache\. Reduce mm_ipc_gpu_memory_gb(?: or hw_decoders)?, use a different video backend, or "
        r"increase gpu_memory_utilization\.",
        "no_kv_memory",
        ("0.25.0-0.33.0",),
        "v1/worker/gpu_worker.py, multimodal/gpu_ipc_memory.py",
    ),
    failure(
        "fail-mamba-blocks",
        " exceeds available Mamba cache blocks ",
        rf"max_num_seqs \((?P<requested_seqs>{COUNT})\) exceeds available Mamba cache blocks \((?P<mamba_blocks>{COUNT})\)\."
        r"(?: Each decode sequence requires one "
        r"Mamba cache block, so CUDA graph capture cannot proceed\.)?(?: Please lower max_num_seqs to at most "
        rf"{COUNT} or increase gpu_memory_utilization\.)?",
        "kv_cache_too_small",
        ("0.20.0-0.33.0",),
        "config/compilation.py: every decoding request needs a state block",
    ),
    failure(
        "fail-tpu-hbm",
        " exceeds total_hbm_limit_cap_gb=",
        rf"total_hbm_used_gb={NUMBER}GiB exceeds total_hbm_limit_cap_gb={NUMBER}GiB by {NUMBER}GiB\. Please consider increasing "
        rf"--gpu-memory-utilization from (?P<utilization>{NUMBER}) to a larger value\.",
        "no_kv_memory",
        ("tpu-inference 0.11.1-0.32.0",),
        "tpu_inference worker/tpu_worker.py",
    ),
    failure(
        "fail-metal-no-memory",
        "Paged attention: not enough Metal memory for KV cache.",
        rf"Paged attention: not enough Metal memory for KV cache\.(?: metal_limit={NUMBER}GB, {up_to(', kv_budget=')}"
        rf"(?P<available_decimal_gb>{NUMBER})GB\.(?: Mitigations: {up_to('model')}[^.'\"]*+\.?)?)?",
        "no_kv_memory",
        ("vllm-metal 0.1.0-0.3.0",),
        "vllm_metal v1/cache_policy.py: decimal units",
    ),
    failure(
        "fail-metal-few-blocks",
        "Paged attention: computed num_blocks too low ",
        rf"Paged attention: computed num_blocks too low \({COUNT} < minimum {COUNT}\)\.(?: .++)?",
        "kv_cache_too_small",
        ("vllm-metal 0.1.0-0.3.0",),
        "vllm_metal v1/cache_policy.py",
    ),
    failure(
        "fail-spyre-pages",
        "Number of pages available on Spyre ",
        rf"Number of pages available on Spyre \(?+{COUNT}\)?+ is not enough to serve the current model \(need at least "
        rf"\(?+{COUNT}\)?+ pages\)\.",
        "kv_cache_too_small",
        ("vllm-spyre 1.1.0-2.0.0",),
        "vllm_spyre",
    ),
    failure(
        "fail-rbln-blocks",
        "Not enough memory for ",
        rf"Not enough memory for {COUNT} blocks of KV cache\. Try reducing the number of blocks by setting "
        r"--num-gpu-blocks-override\.",
        "kv_cache_too_small",
        ("vllm-rbln 0.10.4-0.11.0",),
        "vllm_rbln rbln_worker.py",
    ),
    failure(
        "fail-rbln-dram",
        "Insufficient DRAM during block calculation",
        r"Insufficient DRAM during block calculation\. Try reducing gpu_memory_utilization\.",
        "no_kv_memory",
        ("vllm-rbln 0.10.4-0.12.0",),
        "vllm_rbln",
    ),
    failure(
        "fail-neuron-blocks",
        " blocks are required for max_model_len",
        rf"At least {COUNT} blocks are required for max_model_len (?P<requested_tokens>{COUNT}), but only {COUNT} blocks are "
        r"available \(user-intended blocks, excluding the \+1 for null block\)",
        "kv_cache_too_small",
        ("neuron 0.10.0-0.19.0",),
        "the Neuron plugin's model loader",
    ),
)

FREE_MEMORY: tuple[LineFormat, ...] = (
    failure(
        "fail-free-memory",
        " on startup is less than desired GPU memory utilization ",
        rf"Free memory on device(?: [\w:.]++)? \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup is less "
        rf"than desired GPU memory utilization \((?P<utilization>{NUMBER}), (?P<needed_gib>{NUMBER}) GiB\)(?:\.(?: Decrease GPU "
        r"memory utilization or reduce GPU memory used by other processes\.)?)?",
        "free_memory_below_utilization",
        ("0.9.1-0.33.0", "vllm-ascend 0.15.0-0.30.0"),
        "v1/worker/gpu_worker.py, v1/worker/utils.py request_memory",
        transient=True,
    ),
    failure(
        "fail-free-memory-external-weights",
        " after excluding external process's weights ",
        rf"Free memory on device [\w:.]++ \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup is less than "
        rf"the engine's budget after excluding external process's weights \((?P<utilization>{NUMBER}), "
        rf"(?P<needed_gib>{NUMBER}) GiB\)\. Decrease GPU memory utilization or reduce GPU memory used by other processes\.",
        "free_memory_below_utilization",
        ("0.32.0-0.33.0",),
        "v1/worker/utils.py",
        transient=True,
    ),
    failure(
        "fail-external-weights",
        "Externally held weights on device ",
        rf"Externally held weights on device [\w:.]++ \({NUMBER}/(?P<total_gpu_gib>{NUMBER}) GiB\) exceed the desired GPU "
        rf"memory utilization \((?P<utilization>{NUMBER}), {NUMBER} GiB\)\. Increase GPU memory utilization or reduce GPU "
        r"memory used by other processes\.",
        "free_memory_below_utilization",
        ("0.32.0-0.33.0",),
        "v1/worker/utils.py",
    ),
    failure(
        "fail-free-memory-cpu",
        " on startup is less than desired CPU memory utilization ",
        rf"Available memory on node {COUNT} \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup is less than "
        rf"desired CPU memory utilization \((?P<utilization>{NUMBER}), (?P<needed_gib>{NUMBER}) GiB\)\. .++",
        "free_memory_below_utilization",
        ("cpu 0.20.0-0.32.0",),
        "v1/worker/cpu_worker.py",
        transient=True,
    ),
    failure(
        "fail-free-memory-cpu-allocation",
        " on kv cache allocation is less than requested memory for kv ",
        rf"Available memory on node {COUNT} \((?P<free_gib>{NUMBER})/{NUMBER} GiB\) on kv cache allocation is less than "
        rf"requested memory for kv \((?P<needed_gib>{NUMBER})(?:/{NUMBER})? GiB\)\. .++",
        "free_memory_below_utilization",
        ("cpu 0.20.0-0.33.0",),
        "v1/worker/cpu_worker.py",
    ),
    failure(
        "fail-cpu-worker-over-budget",
        "The worker already uses ",
        rf"The worker already uses {NUMBER} GiB \(model weights and runtime\), more than the {NUMBER} GiB of CPU memory reserved "
        rf"for it on node {COUNT}, leaving none for the KV cache\.(?: .++)?",
        "no_kv_memory",
        ("cpu 0.33.0",),
        "v1/worker/cpu_worker.py",
    ),
    failure(
        "fail-profiling",
        "Error in memory profiling.",
        rf"Error in memory profiling\.(?: Initial (?:free|used)(?: NPU)? memory {NUMBER}(?: GiB)?, (?:current free|currently "
        rf"used|current)(?: NPU)? memory {NUMBER}(?: GiB)?\.)? This happens when (?:other processes sharing the same container "
        r"release GPU memory while vLLM is profiling during initialization\.(?: To fix this, ensure consistent GPU memory "
        r"allocation or isolate vLLM in its own container\.)?|the [A-Z]PU memory was not properly cleaned up before "
        r"initializing the vLLM instance\.)",
        "free_memory_below_utilization",
        ("0.4.0.post1-0.33.0", "vllm-ascend 0.7.3-0.14.0"),
        "worker/worker.py, v1/worker/gpu_worker.py: another process released memory while this one measured",
        transient=True,
    ),
)

DEVICE: tuple[LineFormat, ...] = (
    failure(
        "fail-device-unusable",
        " error: ",
        rf"(?:CUDA|HIP) error: {UNUSABLE}.*+",
        "engine_crash",
        ALL,
        "PyTorch: built for other devices than this one, or the driver does not give it away",
        Scope.RANK,
    ),
)

INVALID = r"(?:Value error, )?"
"""What pydantic puts before a validator's own words."""
LONGER = rf"User-specified max_model_len \((?P<requested_tokens>{INTEGER})\) is greater than the derived max_model_len \([^()]++\)\."
"""What the refusal and the warning of whoever allows it have in common: only what follows tells them apart."""
KNOWN_REFUSAL = r"User-specified max_model_len |max_num_batched_tokens \(|World size \("
"""How those of a configuration begin that have rows of their own."""
CONFIGURATION: tuple[LineFormat, ...] = (
    failure(
        "fail-context-over-model",
        "User-specified max_model_len (",
        rf"{INVALID}{LONGER} (?:This may lead to|To allow overriding this maximum).*+",
        "invalid_config",
        ("0.2.0-0.33.0",),
        "config/model.py; a warning instead with VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        Scope.PROCESS,
    ),
    failure(
        "fail-world-size",
        "than the number of available GPUs (",
        rf"{INVALID}(?:World size \({COUNT}\) is larger than|Tensor parallel size \({COUNT}\) cannot be larger than) the number "
        rf"of available GPUs \({COUNT}\).++",
        "invalid_config",
        ("0.11.1-0.33.0",),
        "config/parallel.py",
        Scope.PROCESS,
    ),
    failure(
        "fail-attention-heads",
        "must be divisible by tensor parallel size (",
        rf"{INVALID}Total number of attention heads \({COUNT}\) must be divisible by tensor parallel size \({COUNT}\)\..*+",
        "invalid_config",
        ("0.1.0-0.33.0",),
        "config/model.py",
        Scope.PROCESS,
    ),
    failure(
        "fail-utilization",
        "GPU memory utilization must be less than 1.0.",
        rf"GPU memory utilization must be less than 1\.0\. Got {NUMBER}\.",
        "invalid_config",
        ("0.1.0-0.11.0",),
        "config/cache.py; a pydantic error from 0.11.1",
        Scope.PROCESS,
    ),
    failure(
        "fail-batched-tokens",
        "max_num_batched_tokens (",
        rf"{INVALID}max_num_batched_tokens \({COUNT}\) (?:is smaller than max_model_len \({COUNT}\)|must be greater than or equal "
        rf"to max_num_seqs \({COUNT}\))\..*+",
        "invalid_config",
        ("0.1.7-0.33.0",),
        "config/scheduler.py",
        Scope.PROCESS,
    ),
    failure(
        "fail-quantization",
        " is not supported for the current GPU. Minimum capability: ",
        rf"{INVALID}The quantization method \S++ is not supported for the current GPU\. Minimum capability: .++",
        "invalid_config",
        ("0.2.0-0.33.0",),
        "config/vllm.py",
        Scope.PROCESS,
    ),
    failure(
        "fail-bfloat16",
        "Bfloat16 is only supported on ",
        rf"{INVALID}Bfloat16 is only supported on GPUs with compute capability of at least {NUMBER}\. Your .++",
        "invalid_config",
        ("0.1.7-0.33.0",),
        "worker/worker.py, v1/worker/gpu_worker.py, platforms/cuda.py: a GPU before Ampere",
        Scope.RANK,
    ),
    failure(
        "fail-arguments",
        "error: ",
        r"(?:vllm(?: \w++)?|[\w-]++\.py): error: (?:argument|unrecognized arguments:|the following arguments are required:"
        r"|ambiguous option:|invalid choice:|one of the arguments) .++",
        "invalid_config",
        ("0.1.0-0.33.0",),
        "argparse, after its usage",
        Scope.PROCESS,
    ),
)

ROWS: tuple[LineFormat, ...] = CAPACITY + FREE_MEMORY + DEVICE + CONFIGURATION
