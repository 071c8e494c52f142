"""Configuration facts: versions, arguments, the engine's banner, and options that vLLM resolves by itself."""

from collections.abc import Mapping
from typing import Any

from kvguard.events import (
    ArgumentsGiven,
    ContextReduced,
    EngineConfigured,
    OptionResolved,
    RankAssigned,
    ServerAnnounced,
)
from kvguard.lines import option_text
from kvguard.lines.line_format import COUNT, INTEGER, NUMBER, LineFormat, Scope

VERSION = r"(?:[0-9][\w.+!-]*+|dev)"
FITTED = rf"(?:GPU|KV cache) memory \((?P<kv_cache_gib>{NUMBER}) GiB (?:available for KV cache|\w++(?: \+ {NUMBER} GiB host)?)\)"
BACKEND = (
    r"(?:[A-Z][A-Z0-9]++(?:_[A-Z0-9]++)*+|Flash ?+Attention(?: MLA)?|FlashInfer(?: MLA)?|FlashMLA"
    r"|Triton(?: MLA| Attention)?|(?:Cutlass|Sparse|AITER) MLA|(?:Tree|Rocm|Rocm/Aiter) Attention|Aiter (?:Flash|Unified) "
    r"Attention|Torch SDPA|XFormers|Flex\w++|(?:ROCm|DualChunk|Differential|Blocksparse)FlashAttention|HPUAttention|TurboQuant)"
)
"""The names that the attention selectors print; other things are backends too."""


ALL_CUT, SOME_CUT = "()", "(}"
"""What completes a cut list of arguments; no whole one ends so."""


def _cut(text: str, completion: str) -> dict[str, Any]:
    return {"cut": True} if text.endswith(completion) else {}


def _read_namespace(groups: Mapping[str, str]) -> dict[str, Any]:
    return {"arguments": option_text.pairs(groups["text"]), "complete": True, **_cut(groups["text"], ALL_CUT)}


def _read_non_default(groups: Mapping[str, str]) -> dict[str, Any]:
    return {"arguments": option_text.dictionary(groups["text"]), "complete": False, **_cut(groups["text"], SOME_CUT)}


def _read_banner(groups: Mapping[str, str]) -> dict[str, Any]:
    return {
        "vllm_version": groups.get("vllm_version"),
        "generation": groups.get("generation"),
        "config": option_text.pairs(groups["text"]),
    }


def _option(
    name: str, literal: str, pattern: str, option: str, versions: tuple[str, ...], upstream: str, **fixed: object
) -> LineFormat:
    """A row that tells one option in force: a number, or the word that `value_name` captures."""
    return LineFormat(
        name=name,
        literal=literal,
        pattern=pattern,
        emits=(OptionResolved,),
        scope=Scope.PROCESS,
        versions=versions,
        upstream=upstream,
        fixed={"option": option, **fixed},
    )


ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="server-version",
        literal=" version ",
        pattern=rf"vLLM (?:API server|batch processing API|gRPC server) version (?P<vllm_version>{VERSION})",
        emits=(ServerAnnounced,),
        scope=Scope.PROCESS,
        versions=("0.4.0.post1-0.33.0",),
        upstream="entrypoints/openai/api_server.py and grpc_server.py to 0.14.1, run_batch.py in all",
    ),
    LineFormat(
        name="server-version-and-model",
        literal="vLLM server version ",
        pattern=rf"vLLM server version (?P<vllm_version>{VERSION}), serving model (?P<model>\S++)",
        emits=(ServerAnnounced,),
        scope=Scope.PROCESS,
        versions=("0.15.0-0.33.0",),
        upstream="entrypoints/utils.py, api_utils.py, startup.py, where the logo is off",
    ),
    LineFormat(
        name="server-logo-version",
        literal=" version ",
        pattern=rf"[▀-█][ ▀-█]*+version (?P<vllm_version>{VERSION})",
        emits=(ServerAnnounced,),
        scope=Scope.PROCESS,
        versions=("0.15.0-0.33.0",),
        upstream="entrypoints/utils.py, api_utils.py, startup.py: third line of the logo",
    ),
    LineFormat(
        name="server-logo-model",
        literal=" model ",
        pattern=r"[▀-█][ ▀-█]*+model ++(?P<model>\S++)",
        emits=(ServerAnnounced,),
        scope=Scope.PROCESS,
        versions=("0.15.0-0.33.0",),
        upstream="entrypoints/utils.py, api_utils.py, startup.py: fourth line of the logo",
    ),
    LineFormat(
        name="arguments-all",
        literal="args: Namespace(",
        pattern=r"args: Namespace\((?P<text>.*+)(?<=\))",
        emits=(ArgumentsGiven,),
        scope=Scope.PROCESS,
        versions=("0.1.0-0.8.5.post1",),
        upstream="entrypoints/openai/api_server.py",
        read=_read_namespace,
        completion=ALL_CUT,
    ),
    LineFormat(
        name="arguments-non-default",
        literal="non-default args: {",
        pattern=r"non-default args: (?P<text>\{.*+)(?<=\})",
        emits=(ArgumentsGiven,),
        scope=Scope.PROCESS,
        versions=("0.9.0-0.33.0",),
        upstream="entrypoints/utils.py, api_utils.py, startup.py; secrets masked from 0.33.0 only",
        read=_read_non_default,
        completion=SOME_CUT,
    ),
    LineFormat(
        name="engine-banner",
        literal=" LLM engine ",
        pattern=rf"Initializing an?+ (?:(?P<generation>V[01]) )?+LLM engine (?:\(v(?P<vllm_version>{VERSION})\) )?+"
        r"with config: (?P<text>.++)",
        emits=(EngineConfigured,),
        scope=Scope.ENGINE,
        versions=("0.1.0-0.33.0",),
        upstream="engine/llm_engine.py (V0), v1/engine/core.py; max_seq_len is the value before auto-fit",
        read=_read_banner,
    ),
    _option(
        "option-max-model-len",
        "Using max model len ",
        rf"Using max model len (?P<value>{INTEGER})",
        "max_model_len",
        ("0.9.2-0.33.0",),
        "config/model.py; printed for a draft model too",
    ),
    _option(
        "option-context-over-model",
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
        rf"User-specified max_model_len \((?P<value>{INTEGER})\) is greater than the derived max_model_len \([^()]++\)\. "
        r"(?:VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with extreme caution\.|Make sure the value is correct and within the "
        r"model context size\.).*+",
        "max_model_len",
        ("0.5.4-0.33.0",),
        "config/model.py, of whoever allows what is refused else",
    ),
    LineFormat(
        name="context-reduced",
        literal="Auto-fit max_model_len: reduced from ",
        pattern=rf"Auto-fit max_model_len: reduced from (?P<requested_tokens>{INTEGER}) to "
        rf"(?P<max_model_len_tokens>{INTEGER})(?: to fit in available (?:{FITTED}|GPU memory))?",
        emits=(ContextReduced,),
        scope=Scope.ENGINE,
        versions=("0.14.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py, kv_cache_planning.py: the second length is in force",
    ),
    LineFormat(
        name="context-fits",
        literal="Auto-fit max_model_len: full model context length ",
        pattern=rf"Auto-fit max_model_len: full model context length (?P<max_model_len_tokens>{INTEGER}) fits in available "
        rf"(?:GPU memory|{FITTED})",
        emits=(ContextReduced,),
        scope=Scope.ENGINE,
        versions=("0.14.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py, kv_cache_planning.py",
        fixed={"requested_tokens": None},
    ),
    LineFormat(
        name="context-free-of-attention",
        literal="Auto-fit max_model_len: attention-free model",
        pattern=rf"Auto-fit max_model_len: attention-free model, using derived max_model_len=(?P<max_model_len_tokens>{INTEGER})",
        emits=(ContextReduced,),
        scope=Scope.ENGINE,
        versions=("0.14.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py, kv_cache_planning.py",
        fixed={"requested_tokens": None},
    ),
    LineFormat(
        name="rank-assigned",
        literal=" is assigned as DP rank ",
        pattern=rf"rank (?P<rank_number>{COUNT}) in world size (?P<world_size>{COUNT}) is assigned as "
        rf"DP rank (?P<dp_rank>{COUNT}), PP rank {COUNT},(?: PCP rank {COUNT},)? TP rank {COUNT}"
        rf"(?:, \w++ rank (?:{COUNT}|N/A))*+",
        emits=(RankAssigned,),
        scope=Scope.RANK,
        versions=("0.8.0-0.33.0",),
        upstream="distributed/parallel_state.py",
    ),
    _option(
        "option-kv-cache-dtype",
        " data type to store kv cache.",
        r"Using (?P<value_name>\w++) data type to store kv cache\..*+",
        "kv_cache_dtype",
        ("0.3.0-0.33.0",),
        "config/cache.py",
    ),
    _option(
        "option-kv-cache-layout",
        " KV cache layout",
        r"Using (?:(?:[\w-]++ backend with|default) )?(?:KV cache layout )?(?P<value_name>[A-Z]{2,8}+)(?: KV cache layout)?"
        r"(?: for \w++ backend\.| on V1 engine by default for Blackwell \(SM 10\.0\) GPUs\.|\.)?",
        "kv_cache_layout",
        ("0.10.0-0.33.0",),
        "v1/attention/selector.py, backends/utils.py, platforms/cuda.py: how a block's bytes lie, not how many",
    ),
    _option(
        "option-kv-cache-layout-set",
        "etting KV cache layout to ",
        r"(?:[\w`]++ (?:environment )?variable detected\. Setting|[A-Z]\w++ (?:detected\. Setting|setting)) KV cache layout to "
        r"(?P<value_name>[A-Z]++)(?:\.| for .++)",
        "kv_cache_layout",
        ("0.9.1-0.33.0",),
        "v1/attention/backends/utils.py, kv_connector: by the environment or by a connector",
    ),
    _option(
        "option-attention-backend",
        "Using ",
        rf"Using (?:AttentionBackendEnum\.)?(?P<value_name>{BACKEND}) (?:attention )?backend"
        r"(?:\.| on V1 engine\.| out of potential backends: .++| \(selected via --attention-backend\)\.)",
        "attention_backend",
        ("0.4.2-0.33.0",),
        "attention/selector.py, platforms/cuda.py, rocm.py, xpu.py, cpu.py, hpu.py",
    ),
    _option(
        "option-chunked-prefill",
        "Chunked prefill is enabled with max_num_batched_tokens=",
        rf"Chunked prefill is enabled with max_num_batched_tokens=(?P<value>{INTEGER})\.?",
        "max_num_batched_tokens",
        ("0.5.3-0.33.0",),
        "config/scheduler.py",
    ),
    _option(
        "option-architecture",
        "Resolved architecture: ",
        r"Resolved architecture: (?P<value_name>\w++)",
        "architecture",
        ("0.10.1-0.33.0",),
        "config/model.py",
    ),
    _option(
        "option-enforce-eager",
        "Enforce eager set, ",
        r"Enforce eager set, (?:overriding optimization level to -O0"
        r"|disabling torch\.compile(?: and CUDAGraphs|, CUDAGraphs, and JIT kernel warmup)\..*+)",
        "enforce_eager",
        ("0.12.0-0.33.0",),
        "config/vllm.py",
        value=True,
    ),
    _option(
        "option-eager-mode",
        "Cudagraph is disabled under eager mode",
        r"Cudagraph is disabled under eager mode",
        "enforce_eager",
        ("0.10.1-0.33.0",),
        "config/vllm.py, config/__init__.py: said of this option alone",
        value=True,
    ),
    _option(
        "option-eager-fallback",
        "CUDA graph is not supported ",
        r"CUDA graph is not supported (?:on|for) [\w -]++, fallback to the eager mode\.",
        "enforce_eager",
        ("0.4.0.post1-0.10.2",),
        "config.py, platforms/cpu.py, xpu.py: of a device, a model or a quantization that has none",
        value=True,
    ),
    _option(
        "option-async-scheduling",
        "Asynchronous scheduling is ",
        r"Asynchronous scheduling is (?P<value_name>enabled|disabled)\.",
        "async_scheduling",
        ("0.14.0-0.26.0",),
        "config/vllm.py",
    ),
    _option(
        "option-v2-runner",
        "Using V2 Model Runner",
        r"Using V2 Model Runner",
        "v2_model_runner",
        ("0.16.0-0.33.0",),
        "v1/worker/gpu_worker.py: every rank prints its weights",
        value=True,
    ),
    _option(
        "option-v1-runner",
        "; using the V1 model runner instead.",
        r"Model Runner V2 (?:requires Triton|does not yet support [^;]++); using the V1 model runner instead\.",
        "v2_model_runner",
        ("0.23.0-0.33.0",),
        "config/vllm.py",
        value=False,
    ),
)
