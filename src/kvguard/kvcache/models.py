"""Public models by name: the figures of their config.json that the cache depends on, each with its repository."""

from collections.abc import Mapping
from typing import Any

from kvguard.kvcache.model_config import ModelConfig, model_config

Dimensions = Mapping[str, Any]
MODELS: Mapping[str, Dimensions] = {}


def named_config(name: str) -> ModelConfig | None:
    """The config of a model known by this name; None for others."""
    found = MODELS.get(name.lower())
    return None if found is None else model_config(found)
