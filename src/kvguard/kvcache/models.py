"""Public models by name: what of their config.json the cache and the weights depend on, each with its repository."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from kvguard.kvcache.model_config import ModelConfig, model_config

Dimensions = Mapping[str, Any]


def _dense(
    source: str,
    architecture: str,
    layers: int,
    hidden: int,
    inner: int,
    heads: tuple[int, int],
    length: int,
    vocabulary: int,
    **more: object,
) -> Dimensions:
    """A decoder's config.json; `heads` are query and KV heads, `source` its repository on the Hugging Face hub."""
    return {
        "source": source,
        "architectures": [architecture],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "max_position_embeddings": length,
        "vocab_size": vocabulary,
        "torch_dtype": "bfloat16",
        **more,
    }


_LLAMA, _QWEN2, _QWEN3, _QWEN3_MOE = "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"
_MISTRAL, _MIXTRAL, _PHI3 = "MistralForCausalLM", "MixtralForCausalLM", "Phi3ForCausalLM"
_GEMMA2, _GEMMA3, _COHERE2 = "Gemma2ForCausalLM", "Gemma3ForCausalLM", "Cohere2ForCausalLM"
_GPT_OSS, _V2, _V3, _GLM4 = "GptOssForCausalLM", "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "Glm4MoeForCausalLM"

_LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
_V3_MOE = {"q_lora_rank": 1536, "moe_intermediate_size": 2048, "n_shared_experts": 1} | _LATENT
_DELTA_NET = {"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "head_dim": 256}
_TIED = {"tie_word_embeddings": True}
_MXFP4 = {"quantization_config": {"quant_method": "mxfp4"}}

MODELS: Mapping[str, Dimensions] = {
    # Llama
    "llama-2-7b": _dense("meta-llama/Llama-2-7b-hf", _LLAMA, 32, 4096, 11008, (32, 32), 4096, 32000),
    "llama-2-13b": _dense("meta-llama/Llama-2-13b-hf", _LLAMA, 40, 5120, 13824, (40, 40), 4096, 32000),
    "llama-2-70b": _dense("meta-llama/Llama-2-70b-hf", _LLAMA, 80, 8192, 28672, (64, 8), 4096, 32000),
    "llama-3-8b": _dense("meta-llama/Meta-Llama-3-8B", _LLAMA, 32, 4096, 14336, (32, 8), 8192, 128256),
    "llama-3-70b": _dense("meta-llama/Meta-Llama-3-70B", _LLAMA, 80, 8192, 28672, (64, 8), 8192, 128256),
    "llama-3.1-8b": _dense("meta-llama/Llama-3.1-8B", _LLAMA, 32, 4096, 14336, (32, 8), 131072, 128256),
    "llama-3.1-70b": _dense("meta-llama/Llama-3.1-70B", _LLAMA, 80, 8192, 28672, (64, 8), 131072, 128256),
    "llama-3.1-405b": _dense("meta-llama/Llama-3.1-405B", _LLAMA, 126, 16384, 53248, (128, 8), 131072, 128256),
    "llama-3.2-1b": _dense("meta-llama/Llama-3.2-1B", _LLAMA, 16, 2048, 8192, (32, 8), 131072, 128256, **_TIED),
    "llama-3.2-3b": _dense("meta-llama/Llama-3.2-3B", _LLAMA, 28, 3072, 8192, (24, 8), 131072, 128256, **_TIED),
    "llama-3.3-70b": _dense("meta-llama/Llama-3.3-70B-Instruct", _LLAMA, 80, 8192, 28672, (64, 8), 131072, 128256),
    # Qwen
    "qwen2.5-0.5b": _dense("Qwen/Qwen2.5-0.5B-Instruct", _QWEN2, 24, 896, 4864, (14, 2), 32768, 151936, **_TIED),
    "qwen2.5-1.5b": _dense("Qwen/Qwen2.5-1.5B-Instruct", _QWEN2, 28, 1536, 8960, (12, 2), 32768, 151936, **_TIED),
    "qwen2.5-3b": _dense("Qwen/Qwen2.5-3B-Instruct", _QWEN2, 36, 2048, 11008, (16, 2), 32768, 151936, **_TIED),
    "qwen2.5-7b": _dense("Qwen/Qwen2.5-7B-Instruct", _QWEN2, 28, 3584, 18944, (28, 4), 32768, 152064),
    "qwen2.5-14b": _dense("Qwen/Qwen2.5-14B-Instruct", _QWEN2, 48, 5120, 13824, (40, 8), 32768, 152064),
    "qwen2.5-32b": _dense("Qwen/Qwen2.5-32B-Instruct", _QWEN2, 64, 5120, 27648, (40, 8), 32768, 152064),
    "qwen2.5-72b": _dense("Qwen/Qwen2.5-72B-Instruct", _QWEN2, 80, 8192, 29568, (64, 8), 32768, 152064),
    "qwen3-0.6b": _dense("Qwen/Qwen3-0.6B", _QWEN3, 28, 1024, 3072, (16, 8), 40960, 151936, head_dim=128, **_TIED),
    "qwen3-1.7b": _dense("Qwen/Qwen3-1.7B", _QWEN3, 28, 2048, 6144, (16, 8), 40960, 151936, head_dim=128, **_TIED),
    "qwen3-4b": _dense("Qwen/Qwen3-4B", _QWEN3, 36, 2560, 9728, (32, 8), 40960, 151936, head_dim=128, **_TIED),
    "qwen3-8b": _dense("Qwen/Qwen3-8B", _QWEN3, 36, 4096, 12288, (32, 8), 40960, 151936, head_dim=128),
    "qwen3-14b": _dense("Qwen/Qwen3-14B", _QWEN3, 40, 5120, 17408, (40, 8), 40960, 151936, head_dim=128),
    "qwen3-32b": _dense("Qwen/Qwen3-32B", _QWEN3, 64, 5120, 25600, (64, 8), 40960, 151936, head_dim=128),
    "qwen3-30b-a3b": _dense(
        "Qwen/Qwen3-30B-A3B", _QWEN3_MOE, 48, 2048, 6144, (32, 4), 40960, 151936,
        head_dim=128, num_experts=128, moe_intermediate_size=768,
    ),
    "qwen3-235b-a22b": _dense(
        "Qwen/Qwen3-235B-A22B", _QWEN3_MOE, 94, 4096, 12288, (64, 4), 40960, 151936,
        head_dim=128, num_experts=128, moe_intermediate_size=1536,
    ),
    "qwen3-coder-30b-a3b": _dense(
        "Qwen/Qwen3-Coder-30B-A3B-Instruct", _QWEN3_MOE, 48, 2048, 6144, (32, 4), 262144, 151936,
        head_dim=128, num_experts=128, moe_intermediate_size=768,
    ),
    "qwen3-next-80b-a3b": _dense(
        "Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen3NextForCausalLM", 48, 2048, 5120, (16, 2), 262144, 151936,
        model_type="qwen3_next", linear_num_key_heads=16, linear_num_value_heads=32, full_attention_interval=4,
        num_experts=512, moe_intermediate_size=512, shared_expert_intermediate_size=512, **_DELTA_NET,
    ),
    "qwen3.5-27b": _dense(
        "Qwen/Qwen3.5-27B", "Qwen3_5ForCausalLM", 64, 5120, 17408, (24, 4), 262144, 248320,
        model_type="qwen3_5_text", linear_num_key_heads=16, linear_num_value_heads=48, full_attention_interval=4,
        mamba_ssm_dtype="float32", **_DELTA_NET,
    ),
    # Mistral
    "mistral-7b": _dense("mistralai/Mistral-7B-Instruct-v0.3", _MISTRAL, 32, 4096, 14336, (32, 8), 32768, 32768),
    "mistral-nemo-12b": _dense(
        "mistralai/Mistral-Nemo-Instruct-2407", _MISTRAL, 40, 5120, 14336, (32, 8), 131072, 131072, head_dim=128
    ),
    "mistral-small-24b": _dense(
        "mistralai/Mistral-Small-24B-Instruct-2501", _MISTRAL, 40, 5120, 32768, (32, 8), 32768, 131072, head_dim=128
    ),
    "mixtral-8x7b": _dense(
        "mistralai/Mixtral-8x7B-Instruct-v0.1", _MIXTRAL, 32, 4096, 14336, (32, 8), 32768, 32000, num_local_experts=8
    ),
    "mixtral-8x22b": _dense(
        "mistralai/Mixtral-8x22B-Instruct-v0.1", _MIXTRAL, 56, 6144, 16384, (48, 8), 65536, 32768, num_local_experts=8
    ),
    # Gemma
    "gemma-2-2b": _dense(
        "google/gemma-2-2b-it", _GEMMA2, 26, 2304, 9216, (8, 4), 8192, 256000,
        head_dim=256, sliding_window=4096, **_TIED,
    ),
    "gemma-2-9b": _dense(
        "google/gemma-2-9b-it", _GEMMA2, 42, 3584, 14336, (16, 8), 8192, 256000,
        head_dim=256, sliding_window=4096, **_TIED,
    ),
    "gemma-2-27b": _dense(
        "google/gemma-2-27b-it", _GEMMA2, 46, 4608, 36864, (32, 16), 8192, 256000,
        head_dim=128, sliding_window=4096, **_TIED,
    ),
    "gemma-3-1b": _dense(
        "google/gemma-3-1b-it", _GEMMA3, 26, 1152, 6912, (4, 1), 32768, 262144,
        head_dim=256, sliding_window=512, **_TIED,
    ),
    "gemma-3-4b": _dense(
        "google/gemma-3-4b-it", _GEMMA3, 34, 2560, 10240, (8, 4), 131072, 262208,
        head_dim=256, sliding_window=1024, **_TIED,
    ),
    "gemma-3-12b": _dense(
        "google/gemma-3-12b-it", _GEMMA3, 48, 3840, 15360, (16, 8), 131072, 262208,
        head_dim=256, sliding_window=1024, **_TIED,
    ),
    "gemma-3-27b": _dense(
        "google/gemma-3-27b-it", _GEMMA3, 62, 5376, 21504, (32, 16), 131072, 262208,
        head_dim=128, sliding_window=1024, **_TIED,
    ),
    # DeepSeek, Kimi
    "deepseek-v2-lite": _dense(
        "deepseek-ai/DeepSeek-V2-Lite", _V2, 27, 2048, 10944, (16, 16), 163840, 102400,
        moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, first_k_dense_replace=1, **_LATENT,
    ),
    "deepseek-v3": _dense(
        "deepseek-ai/DeepSeek-V3", _V3, 61, 7168, 18432, (128, 128), 163840, 129280,
        n_routed_experts=256, first_k_dense_replace=3, quantization_config={"quant_method": "fp8"}, **_V3_MOE,
    ),
    "deepseek-v3.2": _dense(
        "deepseek-ai/DeepSeek-V3.2", "DeepseekV32ForCausalLM", 61, 7168, 18432, (128, 128), 163840, 129280,
        n_routed_experts=256, first_k_dense_replace=3, quantization_config={"quant_method": "fp8"},
        index_topk=2048, index_head_dim=128, index_n_heads=64, **_V3_MOE,
    ),
    "kimi-k2": _dense(
        "moonshotai/Kimi-K2-Instruct", _V3, 61, 7168, 18432, (64, 64), 131072, 163840,
        n_routed_experts=384, first_k_dense_replace=1, quantization_config={"quant_method": "fp8"}, **_V3_MOE,
    ),
    # gpt-oss
    "gpt-oss-20b": _dense(
        "openai/gpt-oss-20b", _GPT_OSS, 24, 2880, 2880, (64, 8), 131072, 201088,
        head_dim=64, sliding_window=128, num_local_experts=32, **_MXFP4,
    ),
    "gpt-oss-120b": _dense(
        "openai/gpt-oss-120b", _GPT_OSS, 36, 2880, 2880, (64, 8), 131072, 201088,
        head_dim=64, sliding_window=128, num_local_experts=128, **_MXFP4,
    ),
    # Phi, Command, GLM
    "phi-3-mini-4k": _dense(
        "microsoft/Phi-3-mini-4k-instruct", _PHI3, 32, 3072, 8192, (32, 32), 4096, 32064, sliding_window=2047
    ),
    "phi-4": _dense("microsoft/phi-4", _PHI3, 40, 5120, 17920, (40, 10), 16384, 100352),
    "phi-4-mini": _dense(
        "microsoft/Phi-4-mini-instruct", _PHI3, 32, 3072, 8192, (24, 8), 131072, 200064, sliding_window=262144, **_TIED
    ),
    "command-r7b": _dense(
        "CohereLabs/c4ai-command-r7b-12-2024", _COHERE2, 32, 4096, 14336, (32, 8), 132096, 256000,
        sliding_window=4096, **_TIED,
    ),
    "glm-4.5-air": _dense(
        "zai-org/GLM-4.5-Air", _GLM4, 46, 4096, 10944, (96, 8), 131072, 151552,
        head_dim=128, n_routed_experts=128, moe_intermediate_size=1408, n_shared_experts=1, first_k_dense_replace=1,
    ),
    "glm-4.5": _dense(
        "zai-org/GLM-4.5", _GLM4, 92, 5120, 12288, (96, 8), 131072, 151552,
        head_dim=128, n_routed_experts=160, moe_intermediate_size=1536, n_shared_experts=1, first_k_dense_replace=3,
    ),
}  # fmt: skip


def named_config(name: str) -> ModelConfig | None:
    """The config of a model known by this name, or by its repository; None for others."""
    found = MODELS.get(name.lower()) or _BY_REPOSITORY.get(name.lower())
    return None if found is None else model_config(found)


def unknown_model(name: str) -> str:
    """What to say of a name that is in no table: the nearest one that is, and where they are listed."""
    close = get_close_matches(name.lower().rpartition("/")[2], MODELS, n=1, cutoff=0.6)
    meant = f"; did you mean {close[0]}?" if close else ""
    return (
        f"{name}: no such file or folder, and no model known by that name{meant} (`kvguard plan --models` lists them)"
    )


_BY_REPOSITORY = {str(dimensions["source"]).lower(): dimensions for dimensions in MODELS.values()}
