"""The engine that a release starts with, by what is asked of it (engine/arg_utils.py of each release)."""

from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.model_config import ModelConfig, model_config
from kvguard.kvcache.models import named_config
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.releases import parse_release

LLAMA: ModelConfig | None = named_config("llama-3.1-8b")
BLOOM = model_config({"architectures": ["BloomForCausalLM"], "n_layer": 30, "hidden_size": 4096, "n_head": 32})
MAMBA2 = model_config(
    {
        "architectures": ["Mamba2ForCausalLM"],
        "num_hidden_layers": 64,
        "hidden_size": 4096,
        "n_groups": 8,
        "num_heads": 128,
        "head_dim": 64,
        "state_size": 128,
        "max_position_embeddings": 8192,
    }
)


def settled(config: ModelConfig | None, version: str, **flags: Any) -> tuple[str, str | None]:
    """The engine, and why it was taken where nobody named it."""
    assert config is not None
    options = Options(vllm_version=parse_release(version), **flags)
    serving, assumed = resolve(options, read_model(config, options))
    return serving.engine, next((one.why for one in assumed if one.option == "engine"), None)


@pytest.mark.parametrize(
    "config, flags, last_v0, first_v1",
    [
        (LLAMA, {}, "0.7.3", "0.8.0"),
        (LLAMA, {"pipeline_parallel_size": 2}, "0.9.0", "0.9.1"),
        (LLAMA, {"num_speculative_tokens": 3, "draft_layers": 1}, "0.8.5", "0.9.0"),
        (LLAMA, {"kv_cache_dtype": "fp8"}, "0.8.1", "0.8.2"),
        (BLOOM, {}, "0.10.1", "0.10.2"),
        (MAMBA2, {}, "0.10.1", "0.10.2"),
    ],
    ids=["plain", "stages", "drafts", "fp8", "bloom", "recurrent"],
)
def test_v1_is_the_default_from_the_release_that_could_do_it(
    config: ModelConfig, flags: dict[str, Any], last_v0: str, first_v1: str
) -> None:
    assert settled(config, last_v0, **flags)[0] == "v0"
    assert settled(config, first_v1, **flags)[0] == "v1"


def test_a_fallback_says_why() -> None:
    assert settled(LLAMA, "0.9.0", pipeline_parallel_size=2) == (
        "v0",
        "pipeline stages: with V1 by default from 0.9.1 on",
    )
    assert settled(LLAMA, "0.9.0") == ("v1", None)


def test_an_fp8_cache_hangs_on_the_card_while_v0_is_there() -> None:
    assert settled(LLAMA, "0.10.2", kv_cache_dtype="fp8")[1] == (
        "an FP8 KV cache on Hopper; cards without FP8 attention in V1 fall back to V0"
    )
    assert settled(LLAMA, "0.11.0", kv_cache_dtype="fp8") == ("v1", None)


def test_v1_may_be_asked_for_before_it_is_the_default() -> None:
    assert settled(MAMBA2, "0.9.2", engine="v1", block_size=16) == ("v1", None)
    with pytest.raises(ConfigError, match=r"recurrent layers with V0 only; V1 has it from 0\.9\.2 on"):
        settled(MAMBA2, "0.9.1", engine="v1")
