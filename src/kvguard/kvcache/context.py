"""The context length that a model's config promises, as each release derives it (vLLM's config/model.py)."""

from collections.abc import Mapping
from typing import Any

from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.releases import Release
from kvguard.slotted import dataclass

_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
_UNNAMED = 2048
_NOT_STRETCHED = frozenset({"default", "su", "longrope", "llama3", "mrope", "proportional"})
_YARN = frozenset({"yarn", "deepseek_yarn", "deepseek_llama_scaling"})
_YARN_IS_IN_THE_LENGTH = Release(0, 30, 0)
_LONGROPE_STARTS_SHORT = Release(0, 11, 1)


@dataclass(frozen=True, slots=True)
class Context:
    """`longest` is what a longer --max-model-len is refused against (None: nothing); `default` is taken without one."""

    longest: int | None
    default: int


def context_of(config: ModelConfig, release: Release) -> Context:
    """The lengths of one model under one release, in tokens."""
    lengths = [config.integer(name, least=1) for name in _LENGTH_KEYS if isinstance(config.get(name), int)]
    if not lengths:
        return Context(None, _UNNAMED)
    length = config.optional(min(lengths), "model_max_length")  # Command-R: wins over the positions
    scaling = config.get("rope_scaling", "rope_parameters")
    scaling = scaling if isinstance(scaling, Mapping) else {}
    longest = length if config.model_type.startswith("gemma3") else _stretched(length, scaling, release)
    return Context(longest, _default(config, scaling, longest, release))


def _stretched(length: int, scaling: Mapping[str, Any], release: Release) -> int:
    kind = scaling.get("rope_type", scaling.get("type"))
    named = scaling.get("factor")
    factor = named if isinstance(named, int | float) and named > 0 else 1.0
    if kind is None or kind in _NOT_STRETCHED:
        return length
    if kind not in _YARN:
        return int(length * factor)
    if release >= _YARN_IS_IN_THE_LENGTH:
        return length
    original = scaling.get("original_max_position_embeddings")
    return int((original if kind == "yarn" and isinstance(original, int) else length) * factor)


def _default(config: ModelConfig, scaling: Mapping[str, Any], longest: int, release: Release) -> int:
    """LongRoPE models start with their original length unless told otherwise."""
    if scaling.get("rope_type", scaling.get("type")) == "longrope" and release >= _LONGROPE_STARTS_SHORT:
        return config.optional(longest, "original_max_position_embeddings")
    return longest
