"""Blocks: the pool of an engine, its overrides, block sizes, and how layers share them."""

from collections.abc import Mapping
from typing import Any

from kvguard.events import (
    BlocksAllocated,
    BlocksCounted,
    BlockSizeSet,
    BlocksOverridden,
    KvCacheMemory,
    KvCacheSize,
    LayersNoted,
    PoolResized,
)
from kvguard.lines.line_format import COUNT, NUMBER, LineFormat, Scope, up_to
from kvguard.lines.patterns import compiled

COUNTED = "vllm cache_config_info with initialization after num_gpu_blocks is: "


def _same_of_all_layers(groups: Mapping[str, str]) -> dict[str, Any] | None:
    """Layers of several kinds hold different counts, and which of them is the pool's the line does not say."""
    counts = {int(count) for count in compiled(COUNT).findall(groups["counts"])}
    return {"gpu_blocks": counts.pop()} if len(counts) == 1 else None


def _of_several_layers(groups: Mapping[str, str]) -> dict[str, Any] | None:
    """Printed layer by layer, it tells of one alone: another may hold another count."""
    return {"gpu_blocks": int(groups["blocks"])} if int(groups["layers"]) > 1 else None


ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="blocks-device-and-cpu",
        literal=" blocks: ",
        pattern=rf"(?:# )?\w++ blocks: (?P<gpu_blocks>{COUNT}),?+ # (?:CPU|cpu) blocks: (?P<cpu_blocks>{COUNT})",
        emits=(BlocksAllocated,),
        scope=Scope.ENGINE,
        versions=("0.1.0-0.10.2",),
        upstream="engine/llm_engine.py, executor/*_executor.py, executor/executor_base.py (V0); any device's name",
    ),
    LineFormat(
        name="blocks-device",
        literal=" blocks: ",
        pattern=rf"# \w++ blocks: (?P<gpu_blocks>{COUNT})",
        emits=(BlocksAllocated,),
        scope=Scope.ENGINE,
        versions=("cpu 0.4.0.post1-0.6.6.post1", "0.6.4-0.7.3"),
        upstream="executor/cpu_executor.py (V0: the CPU blocks are the cache), v1/core/kv_cache_utils.py (early V1)",
    ),
    LineFormat(
        name="blocks-openvino",
        literal="# device blocks: ",
        pattern=rf"OpenVINO [\w.]++: # device blocks: (?P<gpu_blocks>{COUNT}); # swap blocks: (?P<cpu_blocks>{COUNT})",
        emits=(BlocksAllocated,),
        scope=Scope.ENGINE,
        versions=("openvino 0.6.3-0.6.6.post1",),
        upstream="executor/openvino_executor.py",
    ),
    LineFormat(
        name="blocks-counted",
        literal=COUNTED,
        pattern=rf"(?:Engine (?P<engine>{COUNT}): )?{COUNTED}(?P<total_gpu_blocks>{COUNT})",
        emits=(BlocksCounted,),
        scope=Scope.PROCESS,
        versions=("0.9.0-0.33.0",),
        upstream="v1/metrics/loggers.py (DEBUG from 0.11.1): summed over the engines that the front end knows",
        amends=True,
    ),
    LineFormat(
        name="blocks-counted-aggregated",
        literal=COUNTED,
        pattern=rf"(?P<engines>{COUNT}) Engines: {COUNTED}(?P<total_gpu_blocks>{COUNT})",
        emits=(BlocksCounted,),
        scope=Scope.PROCESS,
        versions=("0.11.1-0.33.0",),
        upstream="v1/metrics/loggers.py, --aggregate-engine-logging",
        amends=True,
    ),
    LineFormat(
        name="blocks-override",
        literal=" with num_gpu_blocks_override=",
        pattern=rf"Overriding num_gpu_blocks=(?P<profiled_blocks>(?!0 ){COUNT}) with "
        rf"num_gpu_blocks_override=(?P<gpu_blocks>{COUNT})",
        emits=(BlocksOverridden,),
        scope=Scope.ENGINE,
        versions=("0.4.1-0.33.0",),
        upstream="engine/llm_engine.py, v1/engine/core.py, v1/core/kv_cache_utils.py, kv_cache_planning.py",
    ),
    LineFormat(
        name="blocks-of-the-graphs-profile",
        literal="Overriding num_gpu_blocks=0 with num_gpu_blocks_override=",
        pattern=rf"Overriding num_gpu_blocks=0 with num_gpu_blocks_override={COUNT}",
        emits=(),
        scope=Scope.RANK,
        versions=("0.18.0-0.33.0",),
        upstream="v1/worker/gpu_model_runner.py profile_cudagraph_memory: the smallest cache that graphs can be tried with, "
        "thrown away before the real one is sized",
    ),
    LineFormat(
        name="blocks-forced",
        literal=" with forced_num_gpu_blocks=",
        pattern=rf"Replacing profiled num_gpu_blocks=(?P<profiled_blocks>{COUNT}) with "
        rf"forced_num_gpu_blocks=(?P<gpu_blocks>{COUNT})",
        emits=(BlocksOverridden,),
        scope=Scope.ENGINE,
        versions=("0.4.0.post1",),
        upstream="executor/gpu_executor.py",
    ),
    LineFormat(
        name="blocks-metal-breakdown",
        literal="Paged attention memory breakdown: ",
        pattern=rf"Paged attention memory breakdown: {up_to(' kv_budget=')}(?P<kv_cache_decimal_gb>{NUMBER})GB, per_block_bytes={COUNT}, "
        rf"num_blocks=(?P<gpu_blocks>{COUNT}), max_tokens_cached=(?P<kv_cache_tokens>{COUNT})",
        emits=(KvCacheMemory, BlocksAllocated, KvCacheSize),
        scope=Scope.ENGINE,
        versions=("vllm-metal 0.2.0-0.3.0",),
        upstream="vllm_metal cache_policy.py: decimal gigabytes, unlike all others",
    ),
    LineFormat(
        name="blocks-metal-received",
        literal="KV cache config received: ",
        pattern=rf"KV cache config received: (?P<gpu_blocks>{COUNT}) (?:grouped )?blocks "
        r"\((?:MLX manages cache internally|MLX layout initialized from vLLM config)\)",
        emits=(BlocksAllocated,),
        scope=Scope.ENGINE,
        versions=("vllm-metal 0.2.0-0.3.0",),
        upstream="vllm_metal cache_policy.py",
    ),
    LineFormat(
        name="blocks-metal-none",
        literal="(STT uses no KV cache)",
        pattern=rf"KV cache config received: {COUNT} blocks \(STT uses no KV cache\)",
        emits=(),
        scope=Scope.ENGINE,
        versions=("vllm-metal 0.2.0-0.3.0",),
        upstream="vllm_metal, speech to text: a nominal count for the scheduler, no pool",
    ),
    LineFormat(
        name="blocks-metal-size",
        literal=" tokens/block)",
        pattern=rf"KV cache: {NUMBER} MB \({COUNT} layers, (?P<gpu_blocks>{COUNT}) blocks, {COUNT} tokens/block\)",
        emits=(BlocksAllocated,),
        scope=Scope.ENGINE,
        versions=("vllm-metal 0.2.0-0.3.0",),
        upstream="vllm_metal kv_cache.py: decimal megabytes of the attention layers alone; the breakdown has the budget",
    ),
    LineFormat(
        name="blocks-gaudi-usable",
        literal="Usable num_blocks: ",
        pattern=rf"Usable num_blocks: (?P<gpu_blocks>{COUNT}), actual allocated num_blocks(?: \(max across layers\))?: "
        rf"{COUNT} \(_PAD_BLOCK_ID={COUNT}, _PAD_SLOT_ID={COUNT}\)",
        emits=(BlocksAllocated,),
        scope=Scope.RANK,
        versions=("vllm-gaudi 0.10.0-0.27.0",),
        upstream="vllm_gaudi hpu_worker.py",
    ),
    LineFormat(
        name="blocks-gaudi-reconfigured",
        literal="[gaudi_reconfigure] kv cache reinitialized: ",
        pattern=rf"\[gaudi_reconfigure\] kv cache reinitialized: num_gpu_blocks=(?P<gpu_blocks>{COUNT})",
        emits=(PoolResized,),
        scope=Scope.ENGINE,
        versions=("vllm-gaudi 0.19.0-0.27.0",),
        upstream="vllm_gaudi core_patch.py: the pool of a serving engine is rebuilt",
        amends=True,
    ),
    LineFormat(
        name="blocks-tpu-layers",
        literal="Init kv-cache | ",
        pattern=rf"Init kv-cache \| {up_to('num_blocks=[')}(?P<counts>[\d, ]++)(?:\.\.\.)?\].*+",
        emits=(BlocksAllocated,),
        scope=Scope.RANK,
        versions=("tpu-inference 0.11.1-0.32.0",),
        upstream="tpu_inference runner/kv_cache_manager.py: blocks of each layer",
        read=_same_of_all_layers,
    ),
    LineFormat(
        name="blocks-tpu-shape",
        literal="Init kv-cache | shape=",
        pattern=rf"Init kv-cache \| shape=(?P<layers>{COUNT}) \* (?:{COUNT} \* )?\((?P<blocks>{COUNT}), [\d, ]++\) \| sharding=.*+",
        emits=(BlocksAllocated,),
        scope=Scope.RANK,
        versions=("tpu-inference 0.1.0",),
        upstream="tpu_commons, before it was named tpu_inference: the blocks are the first figure of a layer's shape",
        read=_of_several_layers,
    ),
    LineFormat(
        name="blocks-tpu-layout",
        literal="Hybrid KV cache layout: ",
        pattern=rf"Hybrid KV cache layout: num_kv_cache_groups={COUNT}, num_kv_cache_tensors={COUNT}, "
        rf"kv_cache_config\.num_blocks=(?P<gpu_blocks>{COUNT}), duplicate_shared_layers=(?:True|False)",
        emits=(BlocksAllocated,),
        scope=Scope.RANK,
        versions=("tpu-inference 0.18.0-0.32.0",),
        upstream="tpu_inference runner/kv_cache_manager.py: of models with one kind of layer too",
    ),
    LineFormat(
        name="blocks-tpu-hybrid",
        literal="Hybrid KV cache: ",
        pattern=rf"Hybrid KV cache: (?:padding every layer spec to {COUNT} bytes|setting num_gpu_blocks_override={COUNT} to) .++",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("tpu-inference 0.18.0-0.32.0",),
        upstream="tpu_inference runner/kv_cache_manager.py: the override is its own, the core tells it again",
        fixed={"layers": "hybrid"},
    ),
    LineFormat(
        name="blocks-tpu-compact",
        literal="Compact-mamba KV cache",
        pattern=rf"Compact-mamba KV cache[^:]*+: num_gpu_blocks_override={COUNT} \(attn\), _mamba_num_blocks={COUNT}\..*+",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("tpu-inference 0.18.0-0.32.0",),
        upstream="tpu_inference runner/tpu_runner.py: the override is its own, the core tells it again",
        fixed={"layers": "hybrid"},
    ),
    LineFormat(
        name="blocks-rbln",
        literal="KV cache: num_blocks=",
        pattern=rf"KV cache: num_blocks=(?P<gpu_blocks>{COUNT}), num_groups={COUNT}, num_tensors={COUNT}, total={NUMBER} GiB",
        emits=(BlocksAllocated,),
        scope=Scope.RANK,
        versions=("vllm-rbln 0.10.4-0.11.0",),
        upstream="vllm_rbln rbln_model_runner.py",
    ),
    LineFormat(
        name="blocks-rbln-reallocated",
        literal="[Dynamic KV] reallocating KV cache: ",
        pattern=rf"\[Dynamic KV\] reallocating KV cache: {COUNT} -> (?P<gpu_blocks>{COUNT}) blocks",
        emits=(PoolResized,),
        scope=Scope.ENGINE,
        versions=("vllm-rbln 0.11.2-0.12.0",),
        upstream="vllm_rbln rbln_worker.py: after warm-up, in place of the estimate that the earlier lines tell",
    ),
    LineFormat(
        name="block-size-hybrid",
        literal="etting attention block size to ",
        pattern=rf"(?:\[XPU\])?Setting attention block size to (?P<block_size_tokens>{COUNT}) tokens (?:to ensure that "
        r"attention page size is >= mamba page size\.|so the quantized primary KV page covers the higher-precision "
        rf"padded-spec page\.|to ensure multiple of {COUNT}(?:\.|, set mamba_page_size_padded to .*+))",
        emits=(LayersNoted, BlockSizeSet),
        scope=Scope.ENGINE,
        versions=("0.10.0-0.33.0", "xpu 0.20.0-0.33.0"),
        upstream="model_executor/models/config.py, platforms/interface.py, platforms/xpu.py",
        fixed={"layers": "hybrid"},
    ),
    LineFormat(
        name="block-size-forced",
        literal="kv cache block size to ",
        pattern=rf"(?:\[ROCM_AITER_UNIFIED_ATTN\]: Setting|Setting|Forcing) kv cache block size to "
        rf"(?P<block_size_tokens>{COUNT})(?: for {up_to(' backend')}(?:\(s\))?)?\.",
        emits=(BlockSizeSet,),
        scope=Scope.PROCESS,
        versions=("0.8.0-0.33.0",),
        upstream="platforms/cuda.py and rocm.py (to 0.17.1), platforms/interface.py (from 0.18.0)",
    ),
    LineFormat(
        name="block-size-kept",
        literal="Using cache_config.block_size: ",
        pattern=rf"Using cache_config\.block_size: (?P<block_size_tokens>{COUNT}) instead of overriding with "
        r"_align_hybrid_block_size\(\) since we set mamba_page_size_padded in kv_cache_manager\.py",
        emits=(BlockSizeSet,),
        scope=Scope.PROCESS,
        versions=("tpu-inference 0.32.0",),
        upstream="tpu_inference/platforms/tpu_platform.py",
    ),
    LineFormat(
        name="block-size-groups",
        literal="kv cache group sizes ",
        pattern=r"kv cache group sizes [\[(][\d, ]*+[\])]",
        emits=(),
        scope=Scope.ENGINE,
        versions=("0.30.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py: a page may hold less than the block that the scheduler counts",
    ),
    LineFormat(
        name="block-size-common-multiple",
        literal="kv lcm block sizes ",
        pattern=rf"kv lcm block sizes {COUNT}",
        emits=(),
        scope=Scope.ENGINE,
        versions=("0.30.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py",
    ),
    LineFormat(
        name="layers-padded-page",
        literal="Padding mamba page size by ",
        pattern=rf"Padding mamba page size by {NUMBER}% to ensure that mamba page size and attention page size are "
        r"exactly equal\.",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("0.10.0-0.33.0",),
        upstream="model_executor/models/config.py, platforms/interface.py",
        fixed={"layers": "hybrid"},
    ),
    LineFormat(
        name="layers-padding",
        literal=" padding layers, may waste at most ",
        pattern=rf"Add (?P<padding_layers>{COUNT}) padding layers, may waste at most {NUMBER}% KV cache memory",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("0.9.1-0.33.0",),
        upstream="v1/core/kv_cache_utils.py",
        fixed={"layers": "hybrid"},
    ),
    LineFormat(
        name="layers-hybrid-manager-disabled",
        literal="Hybrid KV cache manager is disabled ",
        pattern=r"Hybrid KV cache manager is disabled for this hybrid model, This means we do not enable any optimizations "
        r"for saving KV cache memory \(e\.g\., dropping the KV cache outside the sliding window\)\. The compute of layers "
        r"like sliding window is still saved\.",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("0.9.1-0.33.0",),
        upstream="v1/core/kv_cache_utils.py: sliding layers are kept as full ones",
        fixed={"layers": "hybrid-manager-disabled"},
    ),
    LineFormat(
        name="layers-chunked-as-full",
        literal="chunked local attention with the hybrid KV cache manager",
        pattern=r"There is a latency regression when using chunked local attention with the hybrid KV cache manager\. "
        r"Disabling it, by default\. To enable it, set the environment "
        r"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE=1\.",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("0.10.1-0.33.0",),
        upstream="config/vllm.py",
        fixed={"layers": "hybrid-manager-disabled"},
    ),
    LineFormat(
        name="layers-sliding-as-full",
        literal="KV cache page sizes cannot be unified",
        pattern=r"KV cache page sizes cannot be unified; treating sliding-window layers as full attention for cache "
        r"allocation\. Sliding-window attention compute is unchanged\.",
        emits=(LayersNoted,),
        scope=Scope.ENGINE,
        versions=("0.27.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py",
        fixed={"layers": "hybrid-manager-disabled"},
    ),
    LineFormat(
        name="layers-scales-off",
        literal="Disabling calculate_kv_scales for hybrid model ",
        pattern=r"Disabling calculate_kv_scales for hybrid model '.++",
        emits=(LayersNoted,),
        scope=Scope.PROCESS,
        versions=("0.19.0-0.27.1",),
        upstream="model_executor/models/config.py",
        fixed={"layers": "hybrid"},
    ),
)
