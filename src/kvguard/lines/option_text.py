"""Options as vLLM prints them: a `Namespace`, a Python dict, or a banner of `key=value`; secrets are never kept.

Only the known keys are read: values hold commas, brackets and nested `key=value` text, and some releases lose a comma.
"""

import ast
from collections.abc import Mapping
from types import MappingProxyType

import regex

OPTIONS = frozenset(
    {
        "model",
        "model_tag",
        "served_model_name",
        "max_model_len",
        "max_seq_len",
        "dtype",
        "kv_cache_dtype",
        "quantization",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "data_parallel_size_local",
        "data_parallel_rank",
        "data_parallel_start_rank",
        "data_parallel_external_lb",
        "data_parallel_hybrid_lb",
        "data_parallel_backend",
        "decode_context_parallel_size",
        "prefill_context_parallel_size",
        "headless",
        "nnodes",
        "node_rank",
        "api_server_count",
        "enable_expert_parallel",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "num_gpu_blocks_override",
        "block_size",
        "cpu_offload_gb",
        "swap_space",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_num_encoder_input_tokens",
        "enable_chunked_prefill",
        "chunked_prefill_enabled",
        "enable_prefix_caching",
        "async_scheduling",
        "disable_hybrid_kv_cache_manager",
        "mamba_cache_mode",
        "mamba_block_size",
        "mamba_cache_dtype",
        "mamba_ssm_cache_dtype",
        "num_speculative_tokens",
        "enforce_eager",
        "disable_log_stats",
        "load_format",
        "distributed_executor_backend",
        "device_config",
    }
)
"""The options that a report may repeat: none of them can hold a secret."""

_VALUE = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|\[[^\[\]]*+\]|[^\s,()\[\]{}'\"]++(?=[,)\s}\]])"
"""A quoted text, a flat list, or a word that something follows: a cut line's last word may be half of one."""
_DICT_ITEM = regex.compile(r"['\"](?P<key>[a-z_][a-z_0-9]*+)['\"]: (?P<value>" + _VALUE + ")")
_NAMESPACE_ITEM = regex.compile(r"(?<![\w.'\"])(?P<key>[a-z_][a-z_0-9]*+)=(?P<value>" + _VALUE + ")")


def namespace(text: str) -> Mapping[str, object]:
    """The known options of `Namespace(key=repr, …)`."""
    return _known(text)


def banner(text: str) -> Mapping[str, object]:
    """The known options of an engine's banner; `None` values are left out, lone words stay text."""
    return _known(text)


def dictionary(text: str) -> Mapping[str, object]:
    """The known options of a Python dict; where it is no literal (objects inside), item by item."""
    try:
        parsed = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        parsed = {match["key"]: _literal(match["value"]) for match in _DICT_ITEM.finditer(text)}
    if not isinstance(parsed, dict):
        return MappingProxyType({})
    return MappingProxyType({key: value for key, value in parsed.items() if key in OPTIONS and value is not None})


def _known(text: str) -> Mapping[str, object]:
    """First occurrence of each known key: later ones stand inside nested configurations."""
    found: dict[str, object] = {}
    for match in _NAMESPACE_ITEM.finditer(text):
        key = match["key"]
        if key in OPTIONS and key not in found:
            found[key] = _literal(match["value"])
    return MappingProxyType({key: value for key, value in found.items() if value is not None})


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
