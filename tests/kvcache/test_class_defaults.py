"""A key that a config.json leaves out has the value that transformers' configuration class gives it."""

from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.layers import Attention, LayerKind, ModelLayers
from kvguard.kvcache.model_config import model_config
from kvguard.kvcache.options import Options

SHAPE = {"num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 8}


def layers_of(architecture: str, model_type: str, **keys: object) -> ModelLayers:
    config = {"architectures": [architecture], "model_type": model_type, **SHAPE, **keys}
    return read_model(model_config(config), Options())


@pytest.mark.parametrize(
    "architecture, model_type, heads, size, kind, window",
    [
        ("LlamaForCausalLM", "llama", 8, 128, LayerKind.FULL, None),
        ("MistralForCausalLM", "mistral", 8, 128, LayerKind.SLIDING, 4096),
        ("Qwen2ForCausalLM", "qwen2", 32, 128, LayerKind.FULL, None),
        ("GemmaForCausalLM", "gemma", 16, 256, LayerKind.FULL, None),
        ("GptOssForCausalLM", "gpt_oss", 8, 64, LayerKind.SLIDING, 128),
        ("Glm4ForCausalLM", "glm4", 2, 128, LayerKind.FULL, None),
    ],
)
def test_heads_and_windows_that_are_left_out_are_the_classs(
    architecture: str, model_type: str, heads: int, size: int, kind: LayerKind, window: int | None
) -> None:
    first = layers_of(architecture, model_type).layers[0]

    assert isinstance(first, Attention)
    assert (first.kv_heads, first.head_size, first.kind, first.window) == (heads, size, kind, window)


def test_a_key_that_is_there_and_null_is_no_key_left_out() -> None:
    first = layers_of("MistralForCausalLM", "mistral", sliding_window=None).layers[0]

    assert isinstance(first, Attention)
    assert first.kind is LayerKind.FULL


def test_a_window_counts_for_qwen_only_where_it_is_switched_on() -> None:
    kinds = {layer.kind for layer in layers_of("Qwen3ForCausalLM", "qwen3", sliding_window=4096).layers}

    assert kinds == {LayerKind.FULL}


def test_an_indexer_that_glm_5s_config_leaves_out_is_there() -> None:
    model = layers_of("GlmMoeDsaForCausalLM", "glm_moe_dsa", kv_lora_rank=512)

    assert model.counts() == {"mla_attention": 4, "mla_indexer": 4}


@pytest.mark.parametrize("key", sorted(SHAPE))
def test_a_models_very_shape_may_not_be_left_out(key: str) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **SHAPE}
    del config[key]

    with pytest.raises(ConfigError, match=key):
        read_model(model_config(config), Options())


def test_a_section_of_a_multi_modal_config_gives_only_what_differs() -> None:
    section: dict[str, Any] = {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560}
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": section}
    model = read_model(model_config(config), Options())

    first = model.layers[0]
    assert isinstance(first, Attention)
    assert (first.kv_heads, first.head_size, first.window) == (4, 256, 4096)
    assert model.context.default == 131_072


def test_a_layers_own_heads_are_found_by_its_number_however_it_is_padded() -> None:
    config = {
        "architectures": ["Gemma4ForCausalLM"],
        "model_type": "gemma4_text",
        **SHAPE,
        "num_hidden_layers": 6,
        "per_layer_config": {"05": {"head_dim": 512}},
    }
    sizes = [
        layer.head_size for layer in read_model(model_config(config), Options()).layers if isinstance(layer, Attention)
    ]

    assert sizes == [256] * 5 + [512]
