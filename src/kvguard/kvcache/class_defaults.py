"""What transformers' configuration classes put where a config.json is silent: vLLM reads configs through them.

Read off the classes of transformers 5.19; only keys that the cache depends on.
"""

from collections.abc import Mapping

Defaults = Mapping[str, object]


def _row(
    shape: tuple[int, int, int] | None = None,
    kv: int | None = None,
    head: int | None = None,
    length: int | None = None,
    **more: object,
) -> Defaults:
    """A class; `shape` is layers, hidden size and query heads, `kv` and `head` KV heads and a head's elements."""
    layers, hidden, heads = shape or (None, None, None)
    row = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": head,
        "max_position_embeddings": length,
        **more,
    }
    return {name: value for name, value in row.items() if value is not None}


def _window_off(window: int, layers: int) -> dict[str, int | bool]:
    """Qwen's classes name a window, and the layers that would have none, but use it only where a config says so."""
    return {"sliding_window": window, "use_sliding_window": False, "max_window_layers": layers}


_SHAPE = ("num_hidden_layers", "hidden_size", "num_attention_heads")

_CLASSES: Mapping[str, Defaults] = {
    "afmoe": _row(shape=(32, 2048, 16), head=128, length=16384, sliding_window=1024, global_attn_every_n_layers=4),
    "apertus": _row(shape=(32, 4096, 32), length=65536),
    "arcee": _row(shape=(32, 2560, 32), length=4096),
    "bamba": _row(
        shape=(32, 4096, 32), kv=8, length=262144, mamba_expand=2, mamba_d_state=256, mamba_d_conv=4,
        mamba_d_head="auto", mamba_n_heads=128, mamba_n_groups=1, mamba_chunk_size=256,
    ),
    "bert": _row(shape=(12, 768, 12), length=512),
    "chatglm": _row(seq_length=2048, multi_query_group_num=1, kv_channels=128),
    "cohere": _row(shape=(40, 8192, 64), length=8192),
    "cohere2": _row(shape=(40, 8192, 64), length=8192, sliding_window=4096),
    "dbrx": _row(max_seq_len=2048),
    "deepseek_v2": _row(
        shape=(32, 4096, 32), length=2048, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128,
        v_head_dim=128,
    ),
    "deepseek_v3": _row(
        shape=(61, 7168, 128), kv=128, length=4096, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128,
        v_head_dim=128,
    ),
    "deepseek_v32": _row(
        shape=(61, 7168, 128), kv=128, length=4096, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128,
        v_head_dim=128,
    ),
    "dots1": _row(shape=(62, 4608, 32), kv=32, length=2048, sliding_window=4096, max_window_layers=62),
    "ernie4_5": _row(shape=(18, 1024, 16), kv=2, head=128, length=131072),
    "ernie4_5_moe": _row(shape=(28, 2560, 20), kv=4, length=131072),
    "exaone4": _row(shape=(32, 4096, 32), kv=32, length=2048, sliding_window=4096, sliding_window_pattern=4),
    "exaone_moe": _row(shape=(32, 4096, 32), kv=32, length=2048, sliding_window=4096, sliding_window_pattern=4),
    "falcon": _row(shape=(32, 4544, 71), length=2048, multi_query=True),
    "falcon_h1": _row(
        shape=(32, 4096, 32), kv=8, length=8192, mamba_expand=2, mamba_d_state=256, mamba_d_conv=4,
        mamba_d_head="auto", mamba_n_heads=128, mamba_n_groups=1, mamba_d_ssm=1024, mamba_chunk_size=256,
    ),
    "falcon_mamba": _row(state_size=16, expand=2, conv_kernel=4),
    "gemma": _row(shape=(28, 3072, 16), kv=16, head=256, length=8192),
    "gemma2": _row(shape=(26, 2304, 8), kv=4, head=256, length=8192, sliding_window=4096),
    "gemma3_text": _row(shape=(26, 2304, 8), kv=4, head=256, length=131072, sliding_window=4096),
    "gemma3n_text": _row(
        shape=(35, 2048, 8), kv=2, head=256, length=32768, sliding_window=512, num_kv_shared_layers=15,
    ),
    "gemma4_text": _row(shape=(30, 2304, 8), kv=4, head=256, length=131072, sliding_window=512),
    "gemma4_unified_text": _row(shape=(30, 2304, 8), kv=4, head=256, length=262144, sliding_window=1024),
    "glm": _row(shape=(40, 4096, 32), kv=2, head=128, length=131072),
    "glm4": _row(shape=(40, 4096, 32), kv=2, head=128, length=131072),
    "glm4_moe": _row(shape=(46, 4096, 96), kv=8, length=131072),
    "glm4_moe_lite": _row(
        shape=(47, 2048, 20), kv=20, length=202752, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=192,
        v_head_dim=256,
    ),
    "glm4v_moe_text": _row(shape=(46, 4096, 96), kv=8, length=65536),
    "glm4v_text": _row(shape=(40, 4096, 32), kv=2, length=32768),
    "glm_moe_dsa": _row(
        shape=(78, 6144, 64), kv=64, head=64, length=202752, kv_lora_rank=512, qk_rope_head_dim=64,
        qk_nope_head_dim=192, v_head_dim=256, index_topk=2048, index_head_dim=128,
    ),
    "gpt2": _row(n_positions=1024),
    "gpt_bigcode": _row(n_positions=1024, multi_query=True),
    "gpt_neox": _row(shape=(44, 6144, 64), length=2048),
    "gpt_oss": _row(shape=(36, 2880, 64), kv=8, head=64, length=131072, sliding_window=128),
    "gptj": _row(n_positions=2048),
    "granite": _row(shape=(32, 4096, 32), length=2048),
    "granitemoe": _row(shape=(32, 4096, 32), length=2048),
    "granitemoehybrid": _row(
        shape=(32, 4096, 32), length=2048, mamba_expand=2, mamba_d_state=256, mamba_d_conv=4, mamba_d_head="auto",
        mamba_n_heads=128, mamba_n_groups=1, mamba_chunk_size=256,
    ),
    "hunyuan_v1_dense": _row(shape=(32, 4096, 32), length=2048),
    "hunyuan_v1_moe": _row(shape=(32, 4096, 32), length=2048),
    "jamba": _row(
        shape=(32, 4096, 32), kv=8, length=262144, mamba_expand=2, mamba_d_state=16, mamba_d_conv=4,
        attn_layer_period=8, attn_layer_offset=4,
    ),
    "kimi_k2": _row(
        shape=(61, 7168, 128), kv=128, length=4096, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128,
        v_head_dim=128,
    ),
    "kimi_linear": _row(shape=(32, 4096, 32), length=4096),
    "lfm2": _row(shape=(32, 2560, 32), kv=8, length=128000, conv_L_cache=3),
    "lfm2_moe": _row(shape=(32, 2048, 32), kv=8, length=128000, conv_L_cache=3),
    "llama": _row(shape=(32, 4096, 32), length=2048),
    "llama4_text": _row(
        shape=(48, 5120, 40), kv=8, head=128, length=131072, attention_chunk_size=8192, no_rope_layer_interval=4,
    ),
    "longcat_flash": _row(
        head=64, length=131072, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128,
    ),
    "mamba": _row(state_size=16, expand=2, conv_kernel=4),
    "mamba2": _row(head=64, state_size=128, expand=2, conv_kernel=4, n_groups=8, num_heads=128, chunk_size=256),
    "mimo_v2_flash": _row(shape=(48, 4096, 64), kv=4, head=192, length=131072, sliding_window=128, v_head_dim=128),
    "minicpm3": _row(
        shape=(62, 2560, 40), kv=40, length=32768, kv_lora_rank=256, qk_rope_head_dim=32, qk_nope_head_dim=64,
    ),
    "minimax": _row(shape=(32, 4096, 32), kv=8, length=131072),
    "minimax_m2": _row(shape=(62, 3072, 48), kv=8, head=128, length=196608),
    "ministral": _row(shape=(32, 4096, 32), kv=8, length=131072, sliding_window=4096),
    "ministral3": _row(shape=(34, 4096, 32), kv=8, head=128, length=262144),
    "mistral": _row(shape=(32, 4096, 32), kv=8, length=131072, sliding_window=4096),
    "mixtral": _row(shape=(32, 4096, 32), kv=8, length=131072),
    "modernbert": _row(shape=(22, 768, 12), length=8192),
    "mpt": _row(max_seq_len=2048),
    "nemotron": _row(shape=(32, 6144, 48), length=4096),
    "nemotron_h": _row(
        kv=8, head=128, length=4096, expand=2, conv_kernel=4, n_groups=8, ssm_state_size=128, mamba_num_heads=128,
        mamba_head_dim=64, chunk_size=128,
    ),
    "nomic_bert": _row(shape=(12, 768, 12), length=2048),
    "olmo": _row(shape=(32, 4096, 32), length=2048),
    "olmo2": _row(shape=(32, 4096, 32), length=2048),
    "olmo3": _row(shape=(32, 4096, 32), length=2048, sliding_window=4096),
    "olmo_hybrid": _row(shape=(32, 3840, 30), length=65536, linear_conv_kernel_dim=4),
    "olmoe": _row(shape=(16, 2048, 16), length=4096),
    "opt": _row(shape=(12, 768, 12), length=2048),
    "persimmon": _row(shape=(36, 4096, 64), length=16384),
    "phi": _row(shape=(24, 2048, 32), length=2048),
    "phi3": _row(shape=(32, 3072, 32), length=4096, original_max_position_embeddings=4096),
    "phimoe": _row(shape=(32, 4096, 32), kv=8, length=131072),
    "qwen2": _row(shape=(32, 4096, 32), kv=32, length=32768, **_window_off(4096, 28)),
    "qwen2_5_omni_text": _row(shape=(28, 3584, 28), kv=4, length=32768, **_window_off(32768, 28)),
    "qwen2_5_vl_text": _row(shape=(80, 8192, 64), kv=8, length=32768, **_window_off(4096, 80)),
    "qwen2_moe": _row(shape=(24, 2048, 16), kv=16, length=32768, **_window_off(4096, 28)),
    "qwen2_vl_text": _row(shape=(80, 8192, 64), kv=8, length=32768, **_window_off(4096, 80)),
    "qwen3": _row(shape=(32, 4096, 32), kv=32, head=128, length=32768, **_window_off(4096, 28)),
    "qwen3_5_moe_text": _row(
        shape=(40, 2048, 16), kv=2, head=256, length=32768, linear_num_key_heads=16, linear_num_value_heads=32,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4,
    ),
    "qwen3_5_text": _row(
        shape=(32, 4096, 16), kv=4, head=256, length=32768, linear_num_key_heads=16, linear_num_value_heads=32,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4,
    ),
    "qwen3_moe": _row(shape=(24, 2048, 32), kv=4, length=32768, sliding_window=4096, use_sliding_window=False),
    "qwen3_next": _row(
        shape=(48, 2048, 16), kv=2, head=256, length=32768, linear_num_key_heads=16, linear_num_value_heads=32,
        linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4,
    ),
    "qwen3_omni_moe_text": _row(shape=(28, 2048, 28), kv=4, length=32768),
    "qwen3_vl_moe_text": _row(shape=(24, 2048, 16), kv=16, length=128000),
    "qwen3_vl_text": _row(shape=(32, 4096, 32), kv=32, head=128, length=128000),
    "roberta": _row(shape=(12, 768, 12), length=512),
    "seed_oss": _row(shape=(64, 4096, 80), kv=8, head=128, length=524288),
    "smollm3": _row(shape=(36, 2048, 16), kv=4, length=32768, use_sliding_window=False, no_rope_layer_interval=4),
    "stablelm": _row(shape=(32, 2560, 32), kv=32, length=4096),
    "starcoder2": _row(shape=(30, 3072, 24), kv=2, length=4096),
    "step3_text": _row(shape=(61, 7168, 64), head=256, max_seq_len=65536, num_attention_groups=1),
    "step3p5": _row(shape=(48, 5120, 40), max_seq_len=4096, num_attention_groups=8),
    "whisper": _row(max_target_positions=448),
    "xlm-roberta": _row(shape=(12, 768, 12), length=512),
    "zamba2": _row(
        shape=(54, 2560, 32), length=4096, mamba_expand=2, mamba_d_state=64, mamba_d_conv=4, chunk_size=256,
        mamba_ngroups=1, n_mamba_heads=8,
    ),
}  # fmt: skip

_SECTION_OF: Mapping[str, str] = {
    # a multi-modal model's type, and that of the language model inside where the section names none
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "glm4v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "llava_onevision": "qwen2",
    "mistral3": "mistral",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
}


def class_defaults(model_type: str, nested: bool) -> Defaults:
    """The keys that a config of this type may leave out.

    A model's very shape may be left out only in a section of a multi-modal config, which gives what differs from the
    class; elsewhere its absence means that the config is no model's, and is refused.
    """
    row = _CLASSES.get(_SECTION_OF.get(model_type, model_type), {})
    return row if nested else {name: value for name, value in row.items() if name not in _SHAPE}
