"""Which architecture is read by which reader, and everything else that the arithmetic asks of a model."""

from collections.abc import Mapping
from dataclasses import replace

from kvguard.errors import ConfigError
from kvguard.kvcache.context import context_of
from kvguard.kvcache.layers import Attention, Layer, LayerKind, ModelLayers, NoCache
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.options import Options
from kvguard.kvcache.readers import Reader, Shards, decoder, encoders, latent, recurrent
from kvguard.kvcache.readers.heads import attention_heads, layer_count

_ALTERNATING = decoder.decoder(decoder.every(2))
_WINDOW_AFTER = decoder.decoder(decoder.first_full)

ARCHITECTURES: Mapping[str, Reader] = {
    # one kind of layer, by heads and head size; a sliding_window in the config makes all of them sliding
    "AquilaForCausalLM": decoder.dense,
    "AquilaModel": decoder.dense,
    "ApertusForCausalLM": decoder.dense,
    "ArceeForCausalLM": decoder.dense,
    "ArcticForCausalLM": decoder.dense,
    "BaiChuanForCausalLM": decoder.dense,
    "BaichuanForCausalLM": decoder.dense,
    "BailingMoeForCausalLM": decoder.dense,
    "BailingMoeV2ForCausalLM": decoder.dense,
    "BloomForCausalLM": decoder.dense,
    "ChatGLMForConditionalGeneration": decoder.dense,
    "ChatGLMModel": decoder.dense,
    "CohereForCausalLM": decoder.dense,
    "CwmForCausalLM": decoder.decoder(decoder.every(4)),
    "DbrxForCausalLM": decoder.dense,
    "DeepseekForCausalLM": decoder.dense,
    "Dots1ForCausalLM": decoder.dense,
    "Ernie4_5ForCausalLM": decoder.dense,
    "Ernie4_5_MoeForCausalLM": decoder.dense,
    "ExaoneForCausalLM": decoder.dense,
    "FalconForCausalLM": decoder.dense,
    "FlexOlmoForCausalLM": decoder.dense,
    "GPT2LMHeadModel": decoder.dense,
    "GPTBigCodeForCausalLM": decoder.dense,
    "GPTJForCausalLM": decoder.dense,
    "GPTNeoXForCausalLM": decoder.dense,
    "GemmaForCausalLM": decoder.dense,
    "Glm4ForCausalLM": decoder.dense,
    "Glm4MoeForCausalLM": decoder.dense,
    "GlmForCausalLM": decoder.dense,
    "GraniteForCausalLM": decoder.dense,
    "GraniteMoeForCausalLM": decoder.dense,
    "GraniteMoeSharedForCausalLM": decoder.dense,
    "GritLM": decoder.dense,
    "Grok1ForCausalLM": decoder.dense,
    "Grok1ModelForCausalLM": decoder.dense,
    "HunYuanDenseV1ForCausalLM": decoder.hunyuan,
    "HunYuanMoEV1ForCausalLM": decoder.hunyuan,
    "InternLM2ForCausalLM": decoder.dense,
    "InternLM3ForCausalLM": decoder.dense,
    "InternLMForCausalLM": decoder.dense,
    "JAISLMHeadModel": decoder.dense,
    "LLaMAForCausalLM": decoder.dense,
    "LlamaForCausalLM": decoder.dense,
    "MPTForCausalLM": decoder.dense,
    "MiMoForCausalLM": decoder.dense,
    "MiniCPMForCausalLM": decoder.dense,
    "MiniMaxM2ForCausalLM": decoder.dense,
    "Ministral3ForCausalLM": decoder.dense,
    "MistralForCausalLM": decoder.dense,
    "MixtralForCausalLM": decoder.dense,
    "NemotronForCausalLM": decoder.dense,
    "OPTForCausalLM": decoder.dense,
    "Olmo2ForCausalLM": decoder.dense,
    "OlmoForCausalLM": decoder.dense,
    "OlmoeForCausalLM": decoder.dense,
    "OrionForCausalLM": decoder.dense,
    "PersimmonForCausalLM": decoder.dense,
    "Phi3ForCausalLM": decoder.dense,
    "PhiForCausalLM": decoder.dense,
    "PhiMoEForCausalLM": decoder.dense,
    "QWenLMHeadModel": decoder.dense,
    "Qwen2ForCausalLM": _WINDOW_AFTER,
    "Qwen2MoeForCausalLM": _WINDOW_AFTER,
    "Qwen3ForCausalLM": _WINDOW_AFTER,
    "Qwen3MoeForCausalLM": _WINDOW_AFTER,
    "SeedOssForCausalLM": decoder.dense,
    "SmolLM3ForCausalLM": decoder.dense,
    "SolarForCausalLM": decoder.dense,
    "StableLMEpochForCausalLM": decoder.dense,
    "StableLmForCausalLM": decoder.dense,
    "Starcoder2ForCausalLM": decoder.dense,
    "Step1ForCausalLM": decoder.dense,
    "Step3TextForCausalLM": decoder.dense,
    "TeleChat2ForCausalLM": decoder.dense,
    "TeleChatForCausalLM": decoder.dense,
    "XverseForCausalLM": decoder.dense,
    "YuanForCausalLM": decoder.dense,
    # full and sliding layers in a pattern
    "AfmoeForCausalLM": decoder.decoder(decoder.every(4, "global_attn_every_n_layers")),
    "Cohere2ForCausalLM": decoder.cohere2,
    "Exaone4ForCausalLM": decoder.decoder(decoder.every(4, "sliding_window_pattern")),
    "ExaoneMoEForCausalLM": decoder.decoder(decoder.every(4, "sliding_window_pattern")),
    "ExaoneMoeForCausalLM": decoder.decoder(decoder.every(4, "sliding_window_pattern")),
    "Gemma2ForCausalLM": _ALTERNATING,
    "Gemma3ForCausalLM": decoder.decoder(decoder.every(6, "sliding_window_pattern", "_sliding_window_pattern")),
    "Gemma3TextModel": encoders.encoder_only,
    "Gemma3nForCausalLM": decoder.gemma3n,
    "Gemma4ForCausalLM": decoder.gemma4,
    "GptOssForCausalLM": _ALTERNATING,
    "LagunaForCausalLM": decoder.dense,
    "MiMoV2FlashForCausalLM": decoder.mimo_v2,
    "MiMoV2ForCausalLM": decoder.mimo_v2,
    "Olmo3ForCausalLM": decoder.decoder(decoder.every(4)),
    "Step3p5ForCausalLM": decoder.step3p5,
    "VaultGemmaForCausalLM": _ALTERNATING,
    # chunked and full
    "Llama4ForCausalLM": decoder.llama4,
    # layers of different widths
    "DeciLMForCausalLM": decoder.nemotron_nas,
    # latent attention, dense and sparse
    "AXK1ForCausalLM": latent.deepseek,
    "DeepseekV2ForCausalLM": latent.deepseek,
    "DeepseekV32ForCausalLM": latent.deepseek,
    "DeepseekV3ForCausalLM": latent.deepseek,
    "Glm4MoeLiteForCausalLM": latent.deepseek,
    "GlmMoeDsaForCausalLM": latent.deepseek,
    "KimiK2ForCausalLM": latent.deepseek,
    "LongcatFlashForCausalLM": latent.longcat_flash,
    "MiniCPM3ForCausalLM": latent.padded_heads,
    "MistralLarge3ForCausalLM": latent.deepseek,
    "PanguUltraMoEForCausalLM": latent.deepseek,
    # recurrent, alone and with attention
    "BambaForCausalLM": recurrent.bamba,
    "FalconH1ForCausalLM": recurrent.falcon_h1,
    "FalconMambaForCausalLM": recurrent.mamba,
    "GraniteMoeHybridForCausalLM": recurrent.granite_hybrid,
    "JambaForCausalLM": recurrent.jamba,
    "KimiLinearForCausalLM": recurrent.kimi_linear,
    "Lfm2ForCausalLM": recurrent.lfm2,
    "Lfm2MoeForCausalLM": recurrent.lfm2,
    "Mamba2ForCausalLM": recurrent.mamba2,
    "MambaForCausalLM": recurrent.mamba,
    "MiniMaxM1ForCausalLM": recurrent.minimax_text,
    "MiniMaxText01ForCausalLM": recurrent.minimax_text,
    "NemotronHForCausalLM": recurrent.nemotron_h,
    "NemotronH_Nano_VL_V2": recurrent.nemotron_h,
    "OlmoHybridForCausalLM": recurrent.qwen_gdn,
    "Plamo2ForCausalLM": recurrent.plamo2,
    "Qwen3NextForCausalLM": recurrent.qwen_gdn,
    "Qwen3_5ForCausalLM": recurrent.qwen_gdn,
    "Qwen3_5MoeForCausalLM": recurrent.qwen_gdn,
    "Zamba2ForCausalLM": recurrent.zamba2,
    # encoders
    "BertForSequenceClassification": encoders.encoder_only,
    "BertModel": encoders.encoder_only,
    "GteModel": encoders.encoder_only,
    "GteNewModel": encoders.encoder_only,
    "ModernBertForSequenceClassification": encoders.encoder_only,
    "ModernBertModel": encoders.encoder_only,
    "NomicBertModel": encoders.encoder_only,
    "RobertaForMaskedLM": encoders.encoder_only,
    "RobertaModel": encoders.encoder_only,
    "WhisperForConditionalGeneration": encoders.whisper,
    "XLMRobertaForSequenceClassification": encoders.encoder_only,
    "XLMRobertaModel": encoders.encoder_only,
}
"""vLLM's model classes (model_executor/models/registry.py) whose cache is known."""

MODEL_TYPES: Mapping[str, str] = {
    "cohere2": "Cohere2ForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "ernie4_5_moe": "Ernie4_5_MoeForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gemma3n_text": "Gemma3nForCausalLM",
    "gemma4_text": "Gemma4ForCausalLM",
    "gemma4_unified_text": "Gemma4ForCausalLM",
    "glm4": "Glm4ForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM",
    "glm4v_moe_text": "Glm4MoeForCausalLM",
    "glm4v_text": "Glm4ForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "granite": "GraniteForCausalLM",
    "internlm2": "InternLM2ForCausalLM",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "lfm2": "Lfm2ForCausalLM",
    "lfm2_moe": "Lfm2MoeForCausalLM",
    "llama": "LlamaForCausalLM",
    "llama4_text": "Llama4ForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "nemotron_h": "NemotronHForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "opt": "OPTForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_5_vl_text": "Qwen2ForCausalLM",
    "qwen2_5_omni_text": "Qwen2ForCausalLM",
    "qwen2_vl": "Qwen2ForCausalLM",
    "qwen2_vl_text": "Qwen2ForCausalLM",
    "qwen2_5_vl": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "qwen3_next": "Qwen3NextForCausalLM",
    "qwen3_omni_moe_text": "Qwen3MoeForCausalLM",
    "qwen3_vl_moe_text": "Qwen3MoeForCausalLM",
    "qwen3_vl_text": "Qwen3ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}
"""The decoder's architecture by its model_type: multi-modal wrappers name only their own class."""

_STATES_CACHED_IN_FULL = frozenset(
    {
        "BambaForCausalLM",
        "FalconH1ForCausalLM",
        "FalconMambaForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "JambaForCausalLM",
        "Mamba2ForCausalLM",
        "MambaForCausalLM",
        "NemotronHForCausalLM",
        "Zamba2ForCausalLM",
    }
)
"""Classes with SupportsMambaPrefixCaching: their states can be kept at every block (mode "all")."""

_SPARSE_BLOCK = 64  # FlashMLA's sparse kernels take no other


def read_model(config: ModelConfig, options: Options) -> ModelLayers:
    """All layers of a model under these flags, the drafter's included.

    Raises:
        ConfigError: an architecture, a layer kind or a missing key, by name.
    """
    name, reader = _reader(config)
    shards = Shards(options.tensor_parallel_size, options.num_speculative_tokens, options.vllm_version)
    layers = reader(config, shards)
    count = _decoder_layers(config, layers)
    sparse = any(layer.kind is LayerKind.MLA_INDEXER for layer in layers)
    cross = any(layer.kind is LayerKind.CROSS for layer in layers)
    return ModelLayers(
        architecture=config.architecture,
        layers=layers + _drafter(layers, count, options.draft_layers),
        decoder_layers=count,
        attention_heads=_heads(config, layers),
        context=context_of(config, options.vllm_version),
        dtype=config.dtype,
        encoder_tokens=config.optional(1500, "max_source_positions") if cross else None,
        mamba_chunk=recurrent.mamba_chunk(config, options.vllm_version),
        ssm_dtype=recurrent.ssm_dtype(config, options.vllm_version),
        caches_states_in_full=name in _STATES_CACHED_IN_FULL,
        default_block_size=_SPARSE_BLOCK if sparse else None,
        is_moe=bool(config.get("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")),
    )


def with_drafter(model: ModelLayers, draft: ModelLayers) -> ModelLayers:
    """The model with a drafter's layers behind its own, on the last pipeline stage."""
    last = model.decoder_layers - 1
    return replace(model, layers=model.layers + tuple(replace(layer, index=last) for layer in draft.layers))


def _reader(config: ModelConfig) -> tuple[str, Reader]:
    name = config.architecture
    if name in ARCHITECTURES:
        return name, ARCHITECTURES[name]
    inner = MODEL_TYPES.get(config.model_type)
    if inner is not None and (config.text is not config.whole or _wraps(config)):
        return inner, ARCHITECTURES[inner]
    raise ConfigError(
        f"{name} (model_type {config.model_type or 'not named'}): an architecture whose cache is not known; "
        "the block count that vLLM printed can still be judged without a model config"
    )


def _wraps(config: ModelConfig) -> bool:
    """Older multi-modal configs keep the decoder's keys beside a vision section."""
    return any(name.startswith(("vision", "visual", "audio")) for name in config.whole)


def _decoder_layers(config: ModelConfig, layers: tuple[Layer, ...]) -> int:
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return len(pattern)
    if any(layer.kind is LayerKind.CROSS for layer in layers):
        return max(layer.index for layer in layers) + 1
    return layer_count(config)


def _heads(config: ModelConfig, layers: tuple[Layer, ...]) -> int:
    """What tensor parallelism must divide; a purely recurrent model has its states checked instead."""
    if any(isinstance(layer, Attention | NoCache) for layer in layers):
        return attention_heads(config)
    return 0


def _drafter(layers: tuple[Layer, ...], count: int, draft_layers: int) -> tuple[Layer, ...]:
    """MTP and EAGLE layers: each as the model's last layer that keeps every token."""
    if not draft_layers:
        return ()
    kept = [layer for layer in layers if isinstance(layer, Attention) and layer.kind in _DRAFT_KINDS]
    if not kept:
        raise ConfigError("--draft-layers: the model has no full-attention layer to copy; give --draft-config")
    last = kept[-1]
    pair = [layer for layer in kept if layer.index == last.index]
    return tuple(replace(layer, index=count - 1) for _layer in range(draft_layers) for layer in pair)


_DRAFT_KINDS = (LayerKind.FULL, LayerKind.MLA, LayerKind.MLA_INDEXER)
