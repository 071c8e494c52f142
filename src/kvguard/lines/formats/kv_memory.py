"""KV cache memory of one rank, in bytes: profiled, or declared by an option and never measured."""

from kvguard.events import KvCacheMemory, LayersNoted, MemoryProfiled
from kvguard.lines.line_format import COUNT, NUMBER, SCALED, LineFormat, Scope

DECLARED = {"basis": "declared"}
DEFAULT = {"basis": "default"}
KV_CACHE_MEMORY_BYTES_ADVICE = (
    r"This does (?:does )?not respect the gpu_memory_utilization config\. Only use kv_cache_memory_bytes config when "
    r"you want manual control of KV cache memory size\. If OOM'ed, check the difference of initial free memory between "
    r"the current run and the previous run where kv_cache_memory_bytes is suggested and update it correspondingly\."
)
HPU_BUDGET = (
    rf"Free device memory: (?P<free_scaled>{SCALED}), {SCALED} usable \(gpu_memory_utilization=(?P<utilization>{NUMBER})\), "
    rf"{SCALED} reserved for HPUGraphs \(VLLM_GRAPH_RESERVED_MEM={NUMBER}\), "
)

ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="kv-memory-available",
        literal="Available KV cache memory: ",
        pattern=rf"Available KV cache memory: (?P<kv_cache_gib>{NUMBER}) GiB(?: \(halved for workspace\)| per GPU)?",
        emits=(KvCacheMemory,),
        scope=Scope.RANK,
        versions=("0.9.1-0.33.0", "vllm-ascend 0.15.0-0.30.0"),
        upstream="v1/worker/gpu_worker.py determine_available_memory; from 0.20.0 the CUDA-graph estimate is subtracted too",
    ),
    LineFormat(
        name="kv-memory-reserved",
        literal="reserved ",
        pattern=rf"(?:Initial free memory (?P<free_gib>{NUMBER}) GiB, )?reserved (?P<kv_cache_gib>{NUMBER}) ?+GiB memory for "
        rf"KV Cache as specified by kv_cache_memory_bytes(?: config(?: and skipped memory profiling(?:\."
        rf"(?: {KV_CACHE_MEMORY_BYTES_ADVICE}| This does not respect the gpu_memory_utilization config\.(?: \.\.\.)?)?)?)?)?",
        emits=(KvCacheMemory, MemoryProfiled),
        scope=Scope.RANK,
        versions=("0.10.2-0.33.0",),
        upstream="v1/worker/gpu_worker.py determine_available_memory, with --kv-cache-memory-bytes",
        fixed=DECLARED,
    ),
    LineFormat(
        name="kv-memory-startup-plan",
        literal="Applying persisted startup plan ",
        pattern=rf"Applying persisted startup plan \(fingerprint \w++\): "
        rf"kv_cache_memory_bytes=(?P<kv_cache_exact_bytes>{COUNT}) \({NUMBER} GiB\), recorded free-memory baseline "
        rf"{NUMBER} GiB, current {NUMBER} GiB\. Memory profiling will be skipped\.",
        emits=(KvCacheMemory,),
        scope=Scope.RANK,
        versions=("0.26.0-0.33.0",),
        upstream="v1/worker/startup_plan.py: the figure of an earlier start",
        fixed=DECLARED,
    ),
    LineFormat(
        name="kv-memory-startup-plan-rejected",
        literal="Startup plan not applied: ",
        pattern=rf"Startup plan not applied: current free memory \({NUMBER} GiB\) is below the recorded baseline "
        rf"\({NUMBER} GiB\); falling back to full memory profiling\.",
        emits=(),
        scope=Scope.RANK,
        versions=("0.26.0-0.33.0",),
        upstream="v1/worker/startup_plan.py: profiling follows as usual",
    ),
    LineFormat(
        name="kv-memory-startup-plan-saved",
        literal="Saved startup plan to ",
        pattern=r"Saved startup plan to \S++",
        emits=(),
        scope=Scope.RANK,
        versions=("0.26.0-0.33.0",),
        upstream="v1/worker/startup_plan.py: after a full profile",
    ),
    LineFormat(
        name="kv-memory-frontend-reservation",
        literal="KV cache memory reduced to ",
        pattern=rf"Reserving {NUMBER} GiB of GPU memory for frontend multimodal decoding \({NUMBER} GiB raw-frame semaphore "
        rf"budget, {NUMBER} GiB decoder\+CUDA-context across {COUNT} API server\(s\) @ {NUMBER} GiB/server\); "
        rf"KV cache memory reduced to (?P<kv_cache_gib>{NUMBER}) GiB\.",
        emits=(KvCacheMemory,),
        scope=Scope.RANK,
        versions=("0.25.0-0.33.0",),
        upstream="v1/worker/gpu_worker.py, multimodal/gpu_ipc_memory.py: after the available memory, and what is really used",
        fixed={"supersedes": True},
    ),
    LineFormat(
        name="kv-memory-cpu-explicit",
        literal="GiB for KV cache on node ",
        pattern=rf"Explicitly set \((?P<kv_cache_gib>{NUMBER})/{NUMBER}\) GiB for KV cache on node {COUNT}\.",
        emits=(KvCacheMemory,),
        scope=Scope.RANK,
        versions=("cpu 0.20.0-0.33.0",),
        upstream="v1/worker/cpu_worker.py, with VLLM_CPU_KVCACHE_SPACE or --kv-cache-memory-bytes",
        fixed=DECLARED,
    ),
    LineFormat(
        name="kv-memory-cpu-auto",
        literal="GiB for KV cache on node ",
        pattern=rf"Auto set \((?P<kv_cache_gib>{NUMBER})/{NUMBER}\) GiB for KV cache on node {COUNT}, with {NUMBER} GiB "
        rf"requested memory for the worker\. {NUMBER} GiB memory was consumed by non-kv usages\.",
        emits=(KvCacheMemory,),
        scope=Scope.RANK,
        versions=("cpu 0.20.0-0.33.0",),
        upstream="v1/worker/cpu_worker.py",
    ),
    LineFormat(
        name="kv-memory-cpu-default-space",
        literal="VLLM_CPU_KVCACHE_SPACE not set. Using ",
        pattern=rf"VLLM_CPU_KVCACHE_SPACE not set\. Using (?P<kv_cache_gib>{NUMBER}) GiB for KV cache\.",
        emits=(KvCacheMemory,),
        scope=Scope.PROCESS,
        versions=("cpu 0.13.0-0.19.1",),
        upstream="platforms/cpu.py",
        fixed=DEFAULT,
    ),
    LineFormat(
        name="kv-memory-cpu-default",
        literal="for CPU backend is not set, using ",
        pattern=rf"Environment variable VLLM_CPU_KVCACHE_SPACE \((?:GB|GiB)\) for CPU backend is not set, "
        rf"using (?P<kv_cache_gib>{NUMBER}) by default\.",
        emits=(KvCacheMemory,),
        scope=Scope.PROCESS,
        versions=("cpu 0.4.0.post1-0.12.0",),
        upstream="executor/cpu_executor.py, platforms/cpu.py; GB means GiB",
        fixed=DEFAULT,
    ),
    LineFormat(
        name="kv-memory-hpu",
        literal=" reserved for HPUGraphs ",
        pattern=rf"{HPU_BUDGET}(?P<kv_cache_scaled>{SCALED}) reserved for KV cache",
        emits=(KvCacheMemory, MemoryProfiled),
        scope=Scope.RANK,
        versions=("hpu 0.6.4-0.9.2",),
        upstream="worker/hpu_worker.py",
    ),
    LineFormat(
        name="kv-memory-gaudi",
        literal=" reserved for usable KV cache",
        pattern=rf"{HPU_BUDGET}{SCALED} reserved for KV cache dummy block,?+ (?P<kv_cache_scaled>{SCALED}) reserved for "
        rf"usable KV cache",
        emits=(KvCacheMemory, MemoryProfiled),
        scope=Scope.RANK,
        versions=("vllm-gaudi 0.10.0-0.27.0",),
        upstream="vllm_gaudi hpu_worker.py: the last figure is the usable one",
    ),
    LineFormat(
        name="kv-memory-gaudi-explicit",
        literal=", using explicit KV cache budget ",
        pattern=rf"Free device memory: (?P<free_scaled>{SCALED}), using explicit KV cache budget {SCALED} "
        r"\(--kv-cache-memory-bytes; gpu_memory_utilization ignored\), "
        rf"{SCALED} reserved for KV cache dummy block, (?P<kv_cache_scaled>{SCALED}) reserved for usable KV cache",
        emits=(KvCacheMemory, MemoryProfiled),
        scope=Scope.RANK,
        versions=("vllm-gaudi 0.27.0",),
        upstream="vllm_gaudi hpu_worker.py, with --kv-cache-memory-bytes",
        fixed=DECLARED,
    ),
    LineFormat(
        name="kv-memory-gaudi-hybrid",
        literal="HPU hybrid cache: reducing available KV cache memory by ",
        pattern=rf"HPU hybrid cache: reducing available KV cache memory by {NUMBER}% \(factor={NUMBER}\) for separate "
        rf"per-spec allocations \([^()]++\)\.",
        emits=(LayersNoted,),
        scope=Scope.RANK,
        versions=("vllm-gaudi 0.21.0-0.27.0",),
        upstream="vllm_gaudi hpu_worker.py: after the budget's line, which then holds more than the pool gets",
        fixed={"layers": "hybrid"},
    ),
    LineFormat(
        name="kv-memory-ascend-bytes",
        literal="Available memory: ",
        pattern=rf"Available memory: (?P<kv_cache_exact_bytes>-?+{COUNT}), total memory: (?P<total_gpu_exact_bytes>{COUNT})",
        emits=(KvCacheMemory, MemoryProfiled),
        scope=Scope.RANK,
        versions=("vllm-ascend 0.7.3-0.14.0",),
        upstream="vllm_ascend worker_v1.py determine_available_memory",
    ),
    LineFormat(
        name="kv-memory-ascend-offload",
        literal="Sparse KV offload is enabled, enlarge total available memory to ",
        pattern=rf"Sparse KV offload is enabled, enlarge total available memory to {NUMBER} GiB",
        emits=(),
        scope=Scope.RANK,
        versions=("vllm-ascend 0.23.0-0.30.0",),
        upstream="vllm_ascend worker.py: the host's memory counted in; the device's own figure stands",
    ),
    LineFormat(
        name="kv-memory-tpu",
        literal="total_hbm_avail_gb=",
        pattern=rf"Memory statistics \| (?:total_hbm_limit_gb=(?P<total_gpu_gib>{NUMBER})GiB \| "
        rf"total_hbm_limit_cap_gb=(?P<usable_gib>{NUMBER})GiB \| )?total_hbm_used_gb=(?P<consumed_gib>{NUMBER})GiB \| "
        rf"(?:kv_cache_headroom_gb={NUMBER}GiB \| )?total_hbm_avail_gb=(?P<kv_cache_gib>{NUMBER})GiB",
        emits=(KvCacheMemory, MemoryProfiled),
        scope=Scope.RANK,
        versions=("tpu-inference 0.11.1-0.32.0",),
        upstream="tpu_inference worker/tpu_worker.py: summed over the chips of this worker",
    ),
    LineFormat(
        name="kv-memory-rbln",
        literal="available_memory_estimate = ",
        pattern=rf"available_memory_estimate = (?P<kv_cache_gib>{NUMBER}) GiB",
        emits=(KvCacheMemory,),
        scope=Scope.RANK,
        versions=("vllm-rbln 0.10.4-0.12.0",),
        upstream="vllm_rbln rbln_worker.py",
    ),
)
