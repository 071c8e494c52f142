"""Lines that sound like capacity or like a failure and are neither: known, so that nobody has to wonder at them.

Without such a row a line with the words of capacity and a figure is shown as unrecognised.
"""

from kvguard.lines.line_format import COUNT, NUMBER, LineFormat, Scope


def _decoy(
    name: str, literal: str, pattern: str, versions: tuple[str, ...], upstream: str, scope: Scope = Scope.PROCESS
) -> LineFormat:
    return LineFormat(
        name=name,
        literal=literal,
        pattern=pattern,
        emits=(),
        scope=scope,
        versions=versions,
        upstream=upstream,
    )


ROWS: tuple[LineFormat, ...] = (
    _decoy(
        "decoy-long-context",
        "The model has a long context length (",
        rf"The model has a long context length \({COUNT}\)\. This may cause ?+OOM .++",
        ("0.5.0-0.10.2",),
        "config.py, engine/arg_utils.py: advice, nothing has failed",
    ),
    _decoy(
        "decoy-shared-memory-wait",
        "block found",
        r"No available (?:shared memory broadcast )?block found ?+in \S++ seconds?+\..*+",
        ("0.5.5-0.33.0",),
        "distributed/device_communicators/shm_broadcast.py: a process waits, nothing has failed",
    ),
    _decoy(
        "decoy-mamba-graph-sizes",
        " Mamba cache blocks (",
        rf"(?:Capping cudagraph capture sizes from max {COUNT} to {COUNT} to fit|No valid cudagraph capture sizes remain after "
        rf"capping to) Mamba cache blocks \({COUNT}(?: blocks available)?\)\. .++",
        ("0.18.0-0.19.1",),
        "config/compilation.py: fewer graphs, the same pool",
    ),
    _decoy(
        "decoy-kv-cache-scale",
        "Using KV cache scaling factor ",
        rf"Using KV cache scaling factor {NUMBER} for fp8_e4m3\. .++",
        ("0.6.4-0.33.0",),
        "model_executor/layers/quantization/kv_cache.py",
    ),
    _decoy(
        "decoy-kv-cache-format",
        " KV cache format",
        r"Using (?:DeepSeek's \w++|standard fp8|\w++) KV cache format(?:\.| for \w++ backend\.).*+",
        ("0.18.0-0.33.0",),
        "model_executor/layers/attention/mla_attention.py, models/deepseek_v4: how an entry lies in its page",
    ),
    _decoy(
        "decoy-kv-cache-of-model",
        " kv-cache ",
        r"Using (?:custom fp8|bfloat16|fp8) kv-cache (?:format )?for \w[\w.]*+(?: on SM\w++)?",
        ("0.11.0-0.33.0",),
        "model_executor/models/config.py: the banner has the dtype in force",
    ),
    _decoy(
        "decoy-fp8-kv-cache",
        "FP8 KV ",
        r"(?:FP8 KV cache is enabled but prefill queries are not quantized to FP8\.|FP8 KV cache on the CPU backend only does not"
        r"|Cannot use FlashAttention backend for FP8 KV cache\.|Please use FlashInfer backend with FP8 KV Cache|Gemma4 model has "
        r"heterogeneous head dimensions).*+",
        ("0.4.1-0.33.0",),
        "attention backends, platforms/cuda.py, cpu.py, model_executor/models/config.py: advice",
    ),
    _decoy(
        "decoy-kv-cache-dtype-noted",
        "kv_cache_dtype=",
        r"(?:FlashInfer resolved query dtypes:|MiniMax M3 sparse attention selected|Layer \S++ kv_cache_dtype=).++",
        ("0.19.0-0.33.0",),
        "v1/attention/backends/flashinfer.py and others: of one backend or layer",
        Scope.RANK,
    ),
    _decoy(
        "decoy-kv-cache-quantization",
        "uant",
        r"(?:WARNING: Unknown kv_cache_quant_algo|Skipping CompressedTensors config group for) .++",
        ("0.14.0-0.33.0",),
        "utils/torch_utils.py, model_executor/layers/quantization/compressed_tensors",
    ),
    _decoy(
        "decoy-kv-cache-fusion",
        "KVCache fusion",
        r"QK[ -]Norm\+(?:RoPE|MRoPE|RoPE/MRoPE)\+KVCache fusion(?: not enabled|:).++",
        ("0.26.0-0.33.0",),
        "compilation/passes/fusion/qk_norm_rope_kvcache_fusion.py",
        Scope.RANK,
    ),
    _decoy(
        "decoy-fp8-kv-cache-cast",
        " KV cache type, cast to ",
        r"CPU backend doesn't support fp8_e4m3 KV cache type, cast to fp8_e5m2\.",
        ("cpu 0.5.3-0.11.0",),
        "platforms/cpu.py: the banner has the dtype in force",
    ),
    _decoy(
        "decoy-fp8-prefill",
        "Unable to perform FP8 prefill attention",
        r"Unable to perform FP8 prefill attention when use_prefill_query_quantization is enabled\. .++",
        ("0.17.0-0.33.0",),
        "model_executor/layers/attention/mla_attention.py: advice",
    ),
    _decoy(
        "decoy-kv-cache-of-layer",
        " per layer, past the 2 GiB",
        rf"KV cache is {NUMBER} GiB per layer, past the 2 GiB where the Gluon MLA kernel drops its KV bounds mask; .++",
        ("rocm 0.31.0-0.33.0",),
        "v1/attention/backends/mla/rocm_aiter_mla.py: one layer's share",
        Scope.RANK,
    ),
    _decoy(
        "decoy-kv-cache-tensor",
        "cross layer KV cache of shape ",
        r"Allocating a cross layer KV cache of shape .++",
        ("0.12.0-0.28.0",),
        "v1/worker/kv_connector_model_runner_mixin.py",
        Scope.RANK,
    ),
    _decoy(
        "decoy-kv-connector",
        "Regist",
        r"(?:Registering (?:KV_Caches[.:]|packed KV cache:)|Registered KV caches:) .++",
        ("0.9.0-0.33.0",),
        "distributed/kv_transfer: tensors made known to a transfer library",
        Scope.RANK,
    ),
    _decoy(
        "decoy-kv-connector-block-size",
        "KV cache block_size=",
        rf"KV cache block_size={COUNT} differs from config block_size={COUNT}; .++",
        ("0.28.0-0.33.0",),
        "kv_connector/v1/moriio: of a transfer",
        Scope.RANK,
    ),
    _decoy(
        "decoy-host-blocks",
        "SimpleCPUOffload",
        r"SimpleCPUOffload(?:Scheduler: Allocating|Worker(?: \[CPU\])?:) .++",
        ("0.19.0-0.33.0",),
        "v1/simple_kv_offload: blocks in host memory, beside the pool",
        Scope.RANK,
    ),
    _decoy(
        "decoy-hybrid-manager-off",
        "Turning off hybrid kv cache manager because ",
        r"Turning off hybrid kv cache manager because .++",
        ("0.11.1-0.33.0",),
        "config/vllm.py: for hybrid models a line of its own follows",
    ),
    _decoy(
        "decoy-interleave-size",
        "cp_kv_cache_interleave_size",
        r"(?:When using PD disaggregation with DCP \(decode_context_parallel_size=.++|cp_kv_cache_interleave_size is overridden .++)",
        ("0.12.0-0.33.0",),
        "config/vllm.py",
    ),
    _decoy(
        "decoy-rbln-dynamic",
        "[Dynamic KV] ",
        r"\[Dynamic KV\] (?!reallocating KV cache: ).++",
        ("vllm-rbln 0.11.2-0.12.0",),
        "vllm_rbln: estimates on the way to the pool's size",
        Scope.RANK,
    ),
)
