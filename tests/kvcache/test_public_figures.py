"""What people's servers printed: the model, flags and size of the cache that they posted, and the figures beside them.

Dimensions are the models' published ones. A printed size hides half of its last digit, so that a pool has two ends; one
block count between them must print both figures.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model, with_drafter
from kvguard.kvcache.layout import lay_out
from kvguard.kvcache.model_config import ModelConfig, model_config
from kvguard.kvcache.models import named_config
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.plan import Plan, PoolInput, make_plan
from kvguard.kvcache.pool import describe_pool, recover_blocks
from kvguard.kvcache.releases import parse_release
from kvguard.units import GIB, Interval


def qwen_hybrid(layers: int, hidden: int, heads: int, kv_heads: int, value_heads: int, moe: int = 0) -> ModelConfig:
    """Qwen3.5 and its successors: every fourth layer attends, the others keep a Gated DeltaNet's state."""
    text = {
        "model_type": "qwen3_5_moe_text" if moe else "qwen3_5_text",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "max_position_embeddings": 262_144,
        "mamba_ssm_dtype": "float32",
        "dtype": "bfloat16",
        **({"num_experts": moe} if moe else {}),
    }
    name = "Qwen3_5MoeForConditionalGeneration" if moe else "Qwen3_5ForConditionalGeneration"
    return model_config(
        {"architectures": [name], "model_type": "qwen3_5_moe" if moe else "qwen3_5", "text_config": text}
    )


def known(name: str) -> ModelConfig:
    config = named_config(name)
    assert config is not None
    return config


GEMMA_4_E2B = model_config(
    {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "text_config": {
            "model_type": "gemma4_text",
            "num_hidden_layers": 35,
            "hidden_size": 1536,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "global_head_dim": 512,
            "sliding_window": 512,
            "num_kv_shared_layers": 20,
            "layer_types": ["full_attention" if (i + 1) % 5 == 0 else "sliding_attention" for i in range(35)],
            "max_position_embeddings": 131_072,
            "dtype": "bfloat16",
        },
    }
)
QWEN3_CODER_480B = model_config(
    {
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_hidden_layers": 62,
        "hidden_size": 6144,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 262_144,
        "dtype": "bfloat16",
        "num_experts": 160,
    }
)
QWEN_2B, QWEN_9B = qwen_hybrid(24, 2048, 8, 2, 16), qwen_hybrid(32, 4096, 16, 4, 32)
QWEN_27B, QWEN_35B = qwen_hybrid(64, 5120, 24, 4, 48), qwen_hybrid(40, 2048, 16, 2, 32, moe=256)
DRAFTED = {"num_speculative_tokens": 3, "draft_layers": 1}


@dataclass(frozen=True)
class Printed:
    """One server: what it ran with, and what it printed."""

    what: str
    config: ModelConfig
    release: str
    gib: float
    length: int
    tokens: int | None
    concurrency: float
    flags: dict[str, Any] = field(default_factory=dict)


SERVERS = (
    Printed("Llama 3.1 8B with EAGLE", known("llama-3.1-8b"), "0.9.1", 51.63, 131_072, 410_128, 3.13, DRAFTED),
    Printed("Qwen2.5 7B AWQ, 16 GB card", known("qwen2.5-7b"), "0.20.0", 8.0, 32_768, 149_712, 4.57),
    Printed("Qwen3 0.6B as OCR, H100", known("qwen3-0.6b"), "0.15.1", 77.94, 16_384, None, 44.53),
    Printed("GLM-4.x, 2 x GB10", known("glm-4.5"), "0.11.0", 16.85, 16_384, 96_000, 5.86, {"tensor_parallel_size": 2}),
    Printed("GLM-4.x, its twin", known("glm-4.5"), "0.11.0", 13.43, 16_384, 76_560, 4.67, {"tensor_parallel_size": 2}),
    Printed("Gemma 4 E2B, L4", GEMMA_4_E2B, "0.21.0", 9.92, 8_192, 1_062_157, 129.66),
    Printed("Gemma 4 E2B, T4", GEMMA_4_E2B, "0.30.0", 4.66, 16_384, 519_681, 31.72, {"max_num_seqs": 8}),
    Printed("Qwen3.5 2B", QWEN_2B, "0.19.0", 5.95, 262_144, 129_472, 1.97),
    Printed(
        "Qwen3.5 9B, FP8 cache, prefix caching",
        QWEN_9B,
        "0.17.0",
        2.43,
        16_384,
        39_072,
        6.82,
        {"kv_cache_dtype": "fp8", "enable_prefix_caching": True},
    ),
    Printed("Qwen3.5 27B, align by default", QWEN_27B, "0.31.0", 31.24, 8_192, 314_187, 38.35),
    Printed(
        "Qwen3.6 27B with one MTP token",
        QWEN_27B,
        "0.24.0",
        17.25,
        131_072,
        255_975,
        1.95,
        DRAFTED | {"num_speculative_tokens": 1},
    ),
    Printed(
        "Qwen3.6 27B with two, FP8 cache, GB10",
        QWEN_27B,
        "0.23.0",
        48.6,
        262_144,
        1_394_129,
        5.32,
        DRAFTED | {"num_speculative_tokens": 2, "kv_cache_dtype": "fp8", "enable_prefix_caching": True},
    ),
    Printed(
        "Qwen3.6 35B-A3B NVFP4, FP8 cache, RTX 5090",
        QWEN_35B,
        "0.24.0",
        5.98,
        131_072,
        567_978,
        4.33,
        {"kv_cache_dtype": "fp8", "enable_prefix_caching": True, "max_num_seqs": 1},
    ),
)


def plan_of(server: Printed) -> Plan:
    options = Options(vllm_version=parse_release(server.release), max_model_len=server.length, **server.flags)
    half = 0.005 * GIB
    pool = PoolInput((Interval(round(server.gib * GIB - half), round(server.gib * GIB + half)),))
    return make_plan(read_model(server.config, options), options, pool)


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.what)
def test_a_pool_of_the_printed_size_prints_the_figures_that_were_posted(server: Printed) -> None:
    plan = plan_of(server)
    assert plan.low is not None
    assert plan.high is not None
    printed = Interval(server.concurrency - 0.005, server.concurrency + 0.005)
    found = recover_blocks(plan.layout, server.tokens, printed)
    assert found is not None
    assert max(found[0], plan.low.pool.blocks) <= min(found[1], plan.high.pool.blocks)


@pytest.mark.parametrize(("gib", "longest"), [(48.66, 205_728), (55.65, 235_296)])
def test_qwen3_coder_480b_is_refused_its_context_with_the_length_that_was_posted(gib: float, longest: int) -> None:
    """8 x H20 with data and expert parallelism; 62.00 GiB were needed for 262,144 tokens."""
    plan = plan_of(Printed("", QWEN3_CODER_480B, "0.10.1", gib, 262_144, None, 0.0))
    ends = [end.refusal for end in (plan.low, plan.high) if end is not None and end.refusal is not None]
    assert [round((refusal.needed_bytes or 0) / GIB, 2) for refusal in ends] == [62.0, 62.0]
    assert ends[0].estimated_max_model_len is not None
    assert ends[1].estimated_max_model_len is not None
    assert ends[0].estimated_max_model_len <= longest <= ends[1].estimated_max_model_len


@pytest.mark.parametrize(("blocks", "tokens"), [(424, 620_944), (425, 622_408)])
def test_one_block_more_of_a_drafted_hybrid_on_two_cards(blocks: int, tokens: int) -> None:
    """Qwen3.6 27B on 2 x RTX 3090, FP8 cache, three MTP tokens: twice started, one block apart, 2.37x both times."""
    flags = DRAFTED | {"kv_cache_dtype": "fp8_e5m2", "dtype": "float16", "tensor_parallel_size": 2}
    options = Options(vllm_version=parse_release("0.22.0"), max_model_len=262_144, enable_prefix_caching=True, **flags)
    layers = read_model(QWEN_27B, options)
    pool = describe_pool(lay_out(layers, resolve(options, layers)[0]), blocks)
    assert (pool.tokens, f"{pool.concurrency:.2f}") == (tokens, "2.37")


# --- a drafter with layers of its own ---------------------------------------------------------------------------------


def dflash(**keys: object) -> ModelConfig:
    """A DFlash drafter of five layers with the heads of Qwen3."""
    return model_config(
        {
            "architectures": ["DFlash2DraftModel"],
            "model_type": "qwen3",
            "num_hidden_layers": 5,
            "hidden_size": 5120,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 262_144,
            "dtype": "bfloat16",
            **keys,
        }
    )


SLIDING = {"layer_types": ["sliding_attention"] * 5, "sliding_window": 2048, "use_sliding_window": True}


@pytest.mark.parametrize("keys", [SLIDING, {"dflash_config": {"use_swa": True, "swa_window_size": 2048}}])
def test_a_dflash_drafter_is_a_group_of_sliding_layers_beside_the_model(keys: dict[str, object]) -> None:
    """Qwen3.8 27B: 10 groups of states, 4 of attention, the drafter's; 1,018 blocks of 832 tokens, as it printed."""
    options = Options(
        vllm_version=parse_release("0.32.0"), max_model_len=4096, enable_prefix_caching=True, num_speculative_tokens=7
    )
    layers = with_drafter(read_model(QWEN_27B, options), read_model(dflash(**keys), options))
    layout = lay_out(layers, resolve(options, layers)[0])
    kinds = [group.spec.kind for group in layout.groups]
    assert [kinds.count(kind) for kind in ("mamba", "full_attention", "sliding_window")] == [10, 4, 1]
    assert layout.block_size == 832
    pool = describe_pool(layout, 1018)
    assert pool.printed == (
        "GPU KV cache size: 35,945 tokens, Maximum concurrency for 4,096 tokens per request: 8.78x",
    )


def test_a_dflash_drafter_that_names_no_window_is_all_full() -> None:
    options = Options()
    assert {layer.kind.value for layer in read_model(dflash(), options).layers} == {"full_attention"}
    with pytest.raises(ConfigError, match='sliding layers without a "sliding_window"'):
        read_model(dflash(dflash_config={"use_swa": True}), options)
