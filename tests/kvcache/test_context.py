"""The context length that a config promises, by release."""

from typing import Any

import pytest

from kvguard.kvcache.context import context_of
from kvguard.kvcache.model_config import model_config
from kvguard.kvcache.releases import parse_release


@pytest.mark.parametrize(
    "keys, version, longest, default",
    [
        ({"max_position_embeddings": 8192}, "0.32.0", 8192, 8192),
        ({"n_positions": 1024}, "0.32.0", 1024, 1024),
        ({"max_position_embeddings": 4096, "max_target_positions": 448}, "0.32.0", 448, 448),
        ({"max_position_embeddings": 8192, "model_max_length": 131072}, "0.32.0", 131072, 131072),
        ({}, "0.32.0", None, 2048),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, "0.32.0", 16384, 16384),
        (
            {"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            "0.32.0",
            131072,
            131072,
        ),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            },
            "0.29.0",
            131072,
            131072,
        ),
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            },
            "0.30.0",
            131072,
            131072,
        ),
        (
            {
                "max_position_embeddings": 131072,
                "original_max_position_embeddings": 4096,
                "rope_scaling": {"rope_type": "longrope"},
            },
            "0.32.0",
            131072,
            4096,
        ),
        (
            {
                "max_position_embeddings": 131072,
                "original_max_position_embeddings": 4096,
                "rope_scaling": {"type": "longrope"},
            },
            "0.11.0",
            131072,
            131072,
        ),
    ],
)
def test_the_length(keys: dict[str, Any], version: str, longest: int | None, default: int) -> None:
    context = context_of(model_config({"architectures": ["LlamaForCausalLM"], **keys}), parse_release(version))

    assert (context.longest, context.default) == (longest, default)
