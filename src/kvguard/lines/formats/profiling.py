"""Memory profiling, CUDA graphs and durations of a start-up, of one rank (`init engine`: of one engine)."""

from collections.abc import Mapping
from typing import Any

from kvguard.events import (
    Compiled,
    CudaGraphMemory,
    EngineInitialized,
    KvCacheMemory,
    MemoryProfiled,
    Printed,
    Progressed,
)
from kvguard.lines.line_format import COUNT, NUMBER, PAIR, SCALED, LineFormat, Scope, up_to
from kvguard.lines.patterns import compiled

FREE_ON_DEVICE = (
    rf"Free memory on device \((?P<free_gib>{NUMBER})/(?P<total_gpu_gib>{NUMBER}) GiB\) on startup\. "
    rf"Desired GPU memory utilization is \((?P<utilization>{NUMBER}), (?P<usable_gib>{NUMBER}) GiB\)\. "
)
SUGGESTIONS = (
    rf"Replace gpu_memory_utilization(?: config)? with `--kv-cache-memory(?:-bytes)?+=(?P<suggested_kv_cache_bytes>-?+{COUNT})`"
    rf"(?: \({NUMBER} GiB\))? to fit into requested memory, or `--kv-cache-memory(?:-bytes)?+=(?P<full_kv_cache_bytes>-?+{COUNT})`"
    rf"(?: \({NUMBER} GiB\))? to fully utilize (?:gpu|NPU free) memory\. "
)
IN_USE = (
    rf"Current (?:kv|KV) cache memory(?: in use is|:) (?:(?P<kv_cache_gib>{NUMBER}) GiB|"
    rf"(?P<kv_cache_exact_bytes>{COUNT}) bytes)\."
)
ADVICE = rf"(?: (?:(?:{SUGGESTIONS}|\.\.\. )?+{IN_USE}|Replace gpu_memory_utilization.++))?"
"""What stands behind the parts; a page may have cut it, or left out its middle."""
UTILIZATIONS = (
    rf"The current --gpu-memory-utilization=(?P<utilization_rounded>{NUMBER}) is equivalent to "
    rf"--gpu-memory-utilization=(?P<equivalent_utilization_rounded>{NUMBER}) without (?:CUDA|ACL) graph memory profiling\."
)
GRAPHS = "(?:CUDA|ACL) graph memory profiling"
BUDGET = (
    rf"the current vLLM instance can use total_gpu_memory \((?P<total_gpu_gib>{NUMBER})GiB\) x gpu_memory_utilization "
    rf"\((?P<utilization_rounded>{NUMBER})\) = (?P<usable_gib>{NUMBER})GiB"
)
PARTS = (
    rf"model weights take (?P<weights_gib>{NUMBER})GiB; non_torch_memory takes (?P<non_torch_gib>{NUMBER})GiB; PyTorch "
    rf"activation peak memory takes (?P<activation_peak_gib>{NUMBER})GiB; the rest of the memory reserved for KV Cache is "
    rf"(?P<kv_cache_gib>{NUMBER})GiB\."
)

_LIMIT = rf"\({NUMBER}, ({NUMBER})\)"


def _all_chips(groups: Mapping[str, str]) -> dict[str, Any]:
    """The memory of this worker's chips together, as its `Memory statistics` line counts it."""
    limits = [float(limit) for limit in compiled(_LIMIT).findall(groups["pairs"])]
    return {"total_gpu_bytes": Printed(round(sum(limits) * 2**30), 0.005 * 2**30 * len(limits))}


ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="profile-tpu-chips",
        literal="Init worker | ",
        pattern=rf"Init worker \| {up_to('hbm=[')}(?P<pairs>{PAIR}(?:, {PAIR})*+)\]GiB(?: \|.*+)?",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("tpu-inference 0.11.1-0.32.0",),
        upstream="tpu_inference/worker/tpu_worker.py: used and limit of each chip",
        read=_all_chips,
    ),
    LineFormat(
        name="profile-hpu-cache-engine",
        literal="nitializing cache engine took ",
        pattern=rf"Initializing cache engine took (?P<kv_cache_scaled>{SCALED}) of device memory "
        rf"\({SCALED}/(?P<total_gpu_scaled>{SCALED}) used\) and -?+{SCALED} of host memory \([^()]*+\)",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("hpu 0.6.4-0.9.2", "vllm-gaudi 0.10.0-0.27.0"),
        upstream="worker/hpu_worker.py, vllm_gaudi hpu_worker.py: what the budget's line has promised, rounded to blocks",
    ),
    LineFormat(
        name="profile-results",
        literal="Memory profiling results: ",
        pattern=rf"Memory profiling results: (?:duration=(?P<profile_seconds>{NUMBER}) seconds, )?"
        rf"total_gpu_memory=(?P<total_gpu_gib>{NUMBER})Gi[Bb],? initial_memory_usage={NUMBER}Gi[Bb],? "
        rf"peak_torch_memory={NUMBER}Gi[Bb],? memory_usage_post_profile={NUMBER}Gi[Bb],? "
        rf"non_torch_memory=(?P<non_torch_gib>{NUMBER})Gi[Bb],? kv_cache_size=(?P<kv_cache_gib>{NUMBER})Gi[Bb],? "
        rf"gpu_memory_utilization=(?P<utilization_rounded>{NUMBER})\.?",
        emits=(MemoryProfiled, KvCacheMemory),
        scope=Scope.RANK,
        versions=("0.6.4-0.6.4.post1",),
        upstream="worker/worker.py; builds after it give the duration and set commas",
    ),
    LineFormat(
        name="profile-seconds",
        literal="Memory profiling takes ",
        pattern=rf"Memory profiling takes (?P<profile_seconds>{NUMBER}) seconds",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.6.5-0.10.2",),
        upstream="worker/worker.py, first of three lines",
    ),
    LineFormat(
        name="profile-budget",
        literal="the current vLLM instance can use total_gpu_memory",
        pattern=BUDGET,
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.6.5-0.10.2",),
        upstream="worker/worker.py, second of three lines; the utilization is rounded to two decimals",
    ),
    LineFormat(
        name="profile-parts",
        literal="model weights take ",
        pattern=PARTS,
        emits=(MemoryProfiled, KvCacheMemory),
        scope=Scope.RANK,
        versions=("0.6.5-0.10.2",),
        upstream="worker/worker.py, third of three lines",
    ),
    LineFormat(
        name="profile-on-one-line",
        literal="Memory profiling takes ",
        pattern=rf"Memory profiling takes (?P<profile_seconds>{NUMBER}) seconds\.?+ {BUDGET}[;.]?+ {PARTS}",
        emits=(MemoryProfiled, KvCacheMemory),
        scope=Scope.RANK,
        versions=("0.6.5-0.10.2",),
        upstream="worker/worker.py, all three lines where a viewer has lost the line ends",
    ),
    LineFormat(
        name="profile-free-on-device",
        literal=" on startup. Desired GPU memory utilization is ",
        pattern=rf"{FREE_ON_DEVICE}Actual usage is (?P<weights_gib>{NUMBER}) GiB for weight, "
        rf"(?P<activation_peak_gib>{NUMBER}) GiB for peak activation, (?P<non_torch_gib>{NUMBER}) GiB for non-torch memory, "
        rf"and (?P<cuda_graphs_gib>{NUMBER}) GiB for CUDAGraph memory\.{ADVICE}",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.10.2-0.26.0",),
        upstream="v1/worker/gpu_worker.py compile_or_warm_up_model (DEBUG in 0.11.0-0.25.1)",
    ),
    LineFormat(
        name="profile-free-on-device-cut",
        literal=" on startup. Desired GPU memory utilization is ",
        pattern=rf"{FREE_ON_DEVICE}Actual usage is [^`:]*+(?:(?<=\.\.\.)|(?<=…))",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.10.2-0.33.0",),
        upstream="v1/worker/gpu_worker.py, where a paste has left out the rest",
    ),
    LineFormat(
        name="profile-free-on-device-consumed",
        literal=" on startup. Desired GPU memory utilization is ",
        pattern=rf"{FREE_ON_DEVICE}Actual usage is (?P<consumed_gib>{NUMBER}) GiB for consumed memory \(weights \+ "
        rf"non-torch\), (?P<activation_peak_gib>{NUMBER}) GiB for peak activation, and (?P<cuda_graphs_gib>{NUMBER}) GiB for "
        rf"CUDAGraph memory\.{ADVICE}",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.27.0-0.33.0",),
        upstream="v1/worker/gpu_worker.py; the peak activation already holds the graph estimate",
    ),
    LineFormat(
        name="profile-free-on-device-ascend",
        literal=" on startup. Desired GPU memory utilization is ",
        pattern=rf"{FREE_ON_DEVICE}Actual usage: (?P<weights_gib>{NUMBER}) GiB for weights, "
        rf"(?P<activation_peak_gib>{NUMBER}) GiB for peak activation, (?P<non_torch_gib>{NUMBER}) GiB for non-torch memory, "
        rf"(?P<cuda_graphs_gib>{NUMBER}) GiB for NPU graph memory\.{ADVICE}",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("vllm-ascend 0.19.1-0.30.0",),
        upstream="vllm_ascend worker.py",
    ),
    LineFormat(
        name="profile-breakdown",
        literal="Total non KV cache memory: ",
        pattern=rf"Memory profiling takes (?P<profile_seconds>{NUMBER}) seconds\. Total non KV cache memory: {NUMBER} ?+GiB; "
        rf"torch peak memory increase: (?P<activation_peak_gib>{NUMBER}) ?+GiB; (?:non-torch forward increase memory: "
        rf"(?P<non_torch_gib>{NUMBER}) ?+GiB|total consumed \(from mem_get_info\): (?P<consumed_gib>{NUMBER}) ?+GiB); "
        rf"weights memory: (?P<weights_gib>{NUMBER}) ?+GiB\.",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.9.1-0.33.0",),
        upstream="v1/worker/gpu_worker.py (DEBUG)",
    ),
    LineFormat(
        name="profile-initial-memory",
        literal="Initial free memory: ",
        pattern=rf"Initial free memory: (?P<free_gib>{NUMBER}) GiB; Requested memory: (?P<utilization_rounded>{NUMBER}) "
        rf"\(util\), (?P<usable_gib>{NUMBER}) GiB",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.10.1-0.33.0",),
        upstream="v1/worker/gpu_worker.py (DEBUG)",
    ),
    LineFormat(
        name="profile-initial-memory-requested",
        literal="requested GPU memory: ",
        pattern=rf"Initial free memory: (?P<free_gib>{NUMBER}) GiB, free memory: {NUMBER} GiB, requested GPU memory: "
        rf"(?P<usable_gib>{NUMBER}) GiB",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("0.9.1-0.10.0",),
        upstream="v1/worker/gpu_worker.py (DEBUG)",
    ),
    LineFormat(
        name="profile-free-afterwards",
        literal="Free memory after profiling: ",
        pattern=rf"Free memory after profiling: {NUMBER} GiB \(total\), {NUMBER} GiB \(within requested\)",
        emits=(Progressed,),
        scope=Scope.RANK,
        versions=("0.10.1-0.33.0",),
        upstream="v1/worker/gpu_worker.py (DEBUG)",
        fixed={"step": "profiling"},
    ),
    LineFormat(
        name="profile-xpu-before",
        literal="Before memory profiling run, ",
        pattern=rf"Before memory profiling run, total GPU memory: (?P<total_gpu_mib>{NUMBER}) MB, model load takes "
        rf"(?P<weights_mib>{NUMBER}) MB, free gpu memory is (?P<free_mib>{NUMBER}) MB\.",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("xpu 0.9.2-0.15.0",),
        upstream="v1/worker/xpu_worker.py; MB means MiB",
    ),
    LineFormat(
        name="profile-xpu-after",
        literal="After memory profiling run, ",
        pattern=rf"After memory profiling run, peak memory usage is {NUMBER} MB, ?+torch mem is {NUMBER} MB, non-torch mem is "
        rf"(?P<non_torch_mib>{NUMBER}) MB, free gpu memory is {NUMBER} MB\.",
        emits=(MemoryProfiled,),
        scope=Scope.RANK,
        versions=("xpu 0.9.2-0.15.0",),
        upstream="v1/worker/xpu_worker.py; MB means MiB",
    ),
    LineFormat(
        name="profile-rocm-fallback",
        literal="Free memory grew by ",
        pattern=rf"Free memory grew by {NUMBER} GiB during profiling \([^()]*+\)\. Sizing the KV cache from the {NUMBER} GiB "
        r"torch reserved instead of the profiling difference\.",
        emits=(Progressed,),
        scope=Scope.RANK,
        versions=("rocm 0.29.0-0.33.0",),
        upstream="v1/worker/gpu_worker.py: another process freed memory, so the size is approximate",
        fixed={"step": "profiling"},
    ),
    LineFormat(
        name="graphs-announced",
        literal="CUDA graph memory profiling will be enabled by default",
        pattern=rf"In v0\.19, {GRAPHS} will be enabled by default {up_to(' increase --gpu-memory-utilization from ')}"
        rf"(?P<utilization_rounded>{NUMBER}) to (?P<suggested_utilization_rounded>{NUMBER}) to maintain the same effective "
        r"KV cache size\.",
        emits=(CudaGraphMemory,),
        scope=Scope.RANK,
        versions=("0.18.0-0.19.1",),
        upstream="v1/worker/gpu_worker.py: nothing is subtracted yet",
    ),
    LineFormat(
        name="graphs-profiled",
        literal=" graph memory profiling is enabled",
        pattern=rf"{GRAPHS} is enabled \([^()]*+\)\. (?:This will become the default in v0\.19\. )?{UTILIZATIONS} To maintain "
        rf"the same effective KV cache size as before, increase --gpu-memory-utilization to "
        rf"(?P<suggested_utilization_rounded>{NUMBER})\.(?: To disable, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0\.)?",
        emits=(CudaGraphMemory,),
        scope=Scope.RANK,
        versions=("0.18.0-0.33.0", "vllm-ascend 0.22.1-0.30.0"),
        upstream="v1/worker/gpu_worker.py: the estimate is subtracted from the KV cache",
    ),
    LineFormat(
        name="graphs-not-profiled",
        literal="graph memory profiling is disabled",
        pattern=r"(?:CUDA|ACL) graph memory profiling is disabled \(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0\)\. "
        rf"{up_to(' increasing --gpu-memory-utilization from ')}(?P<utilization_rounded>{NUMBER}) to "
        rf"(?P<suggested_utilization_rounded>{NUMBER})\.",
        emits=(CudaGraphMemory,),
        scope=Scope.RANK,
        versions=("0.20.0-0.33.0", "vllm-ascend 0.21.0-0.22.1"),
        upstream="v1/worker/gpu_worker.py",
    ),
    LineFormat(
        name="graphs-estimated",
        literal="Estimated CUDA graph memory: ",
        pattern=rf"Estimated CUDA graph memory: (?P<cuda_graphs_estimated_gib>{NUMBER}) GiB total",
        emits=(CudaGraphMemory,),
        scope=Scope.RANK,
        versions=("0.18.0-0.33.0",),
        upstream="v1/worker/gpu_model_runner.py profile_cudagraph_memory",
    ),
    LineFormat(
        name="graphs-pool",
        literal=" graph pool memory: ",
        pattern=rf"(?:CUDA|ACL) graph pool memory: (?P<cuda_graphs_gib>{NUMBER}) GiB \(actual\), "
        rf"(?P<cuda_graphs_estimated_gib>{NUMBER}) GiB \(estimated\), difference: {NUMBER} GiB \({NUMBER}%\)\.",
        emits=(CudaGraphMemory,),
        scope=Scope.RANK,
        versions=("0.18.0-0.33.0", "vllm-ascend 0.22.1-0.30.0"),
        upstream="v1/worker/gpu_worker.py, after capture",
    ),
    LineFormat(
        name="graphs-captured",
        literal="Graph capturing finished in ",
        pattern=rf"Graph capturing finished in (?P<capture_seconds>{NUMBER}) secs(?:, took (?P<cuda_graphs_gib>{NUMBER}) GiB|\.)?",
        emits=(CudaGraphMemory,),
        scope=Scope.RANK,
        versions=("0.2.6-0.33.0",),
        upstream="worker/model_runner.py, v1/worker/gpu_model_runner.py capture_model; no memory to 0.6.3.post1",
    ),
    LineFormat(
        name="graphs-captured-encoder",
        literal="Encoder graph capturing finished in ",
        pattern=rf"Encoder graph capturing finished in {NUMBER} secs, took {NUMBER} GiB \({COUNT} graphs\)",
        emits=(),
        scope=Scope.RANK,
        versions=("0.31.0-0.33.0",),
        upstream="v1/worker/gpu_model_runner.py: the encoder's own graphs",
    ),
    LineFormat(
        name="graphs-profiling",
        literal="Profiling CUDA graph memory: ",
        pattern=r"Profiling CUDA graph memory: .++",
        emits=(Progressed,),
        scope=Scope.RANK,
        versions=("0.18.0-0.33.0",),
        upstream="v1/worker/gpu_model_runner.py: which graphs the estimate is made from",
        fixed={"step": "profiling"},
    ),
    LineFormat(
        name="compile-seconds",
        literal="torch.compile t",
        pattern=rf"(?:\[\w++\] )?torch\.compile (?:takes|took) (?P<compile_seconds>{NUMBER}) s in total",
        emits=(Compiled,),
        scope=Scope.RANK,
        versions=("0.7.0-0.33.0",),
        upstream="compilation/monitor.py; from 0.32.0 behind the part of the model in brackets",
    ),
    LineFormat(
        name="compile-step",
        literal=" s",
        pattern=rf"(?:\[\w++\] )?(?:Dynamo bytecode transform time: {NUMBER} s|Compiling a graph for "
        rf"{up_to(' takes ')}{NUMBER} s|Initial profiling/warmup run took {NUMBER} s)",
        emits=(Progressed,),
        scope=Scope.RANK,
        versions=("0.7.0-0.33.0",),
        upstream="compilation/backends.py, monitor.py: parts of a total that has its own line",
        fixed={"step": "profiling"},
    ),
    LineFormat(
        name="init-engine",
        literal="init engine ",
        pattern=rf"init engine (?:\((?:profile, create kv cache, warmup model|\.\.\.)\) )?took (?P<init_seconds>{NUMBER}) (?:seconds|s)"
        rf"(?: \(compilation: (?P<compile_seconds>{NUMBER}) s(?: — [^()]*+)?\))?",
        emits=(EngineInitialized,),
        scope=Scope.ENGINE,
        versions=("0.6.5-0.33.0",),
        upstream="engine/llm_engine.py (V0), v1/engine/core.py",
    ),
)
