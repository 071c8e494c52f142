"""Options as vLLM prints them: a `Namespace`, a Python dict, or a banner of `key=value`; secrets are never kept.

Only known keys of the outermost level are read: values hold commas, brackets and other configurations' `key=value`
text, and some releases lose a comma.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kvguard.lines.patterns import compiled

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
        "enable_lora",
        "max_loras",
        "max_lora_rank",
        "enforce_eager",
        "disable_log_stats",
        "load_format",
        "distributed_executor_backend",
        "device_config",
    }
)
"""The options that a report may repeat: none of them can hold a secret."""

OF_ADAPTERS = ("max_loras", "max_lora_rank")
"""Options that older releases print at their defaults, and that are nothing at all without `enable_lora`."""
MAX_NUMBER = 10**15
"""Larger numbers are no option's: a hostile line may hold any."""
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_UNENDED = r"'(?:[^'\\]|\\.)*+$|\"(?:[^\"\\]|\\.)*+$"
"""A quoted text that the line's cut has left open: whatever follows is its inside."""
_LIST = rf"\[(?:[^\[\]'\"]++|{_QUOTED})*+\]"
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?P<part>\.[0-9]++)?"
_OF_LITERALS = tuple("'\"[-+.0123456789")
"""How a literal begins that is no word."""
_CONSTANTS: Mapping[str, object] = MappingProxyType({"None": None, "True": True, "False": False})
_PATH = rf"\b[A-Z]\w{{0,20}}Path\(({_QUOTED})\)"
"""A path that a program has handed over as an object."""
_VALUE = rf"{_QUOTED}|{_LIST}|[^\s,()\[\]{{}}'\"]{{1,1000}}+(?=[,)\s}}\]])"
"""A quoted text, a flat list, or a word that something follows: a cut line's last word may be half of one. A word has
a bound because a line of `a=a=a=…` would be read anew from each."""
_DRAFTED = (
    r"\bspeculative_config['\"]?[:=] ?+(?:SpeculativeConfig\(|['\"]?+\{)[^(){}]*?"
    r"\bnum_spec(?:ulative)?_tokens['\"]?[:=] ?+(?P<tokens>\d{1,4})\b"
)
"""A drafter's tokens, inside the drafter's own configuration: the one figure of it that bears on capacity."""
_STEPS = rf"{_QUOTED}|{_UNENDED}|(?P<opens>[(\[{{])|(?P<closes>[)\]}}])"
"""A text to step over, a bracket to count."""
_PAIR = rf"(?<![\w.'\"])(?P<key>[a-z_][a-z_0-9]*+)=(?P<value>{_VALUE})|{_STEPS}"
_ITEM = rf"['\"](?P<key>[a-z_][a-z_0-9]*+)['\"]:\s{{0,2}}(?P<value>{_VALUE})|{_STEPS}"
"""A page that wraps the line may take the blank."""


def pairs(text: str) -> Mapping[str, object]:
    """The known options of `key=repr` pairs: a `Namespace`'s inside, or an engine's banner.

    Each key's first pair of the outermost level counts: those inside a value are another configuration's.
    """
    return _known(_outermost(_PAIR, text, 0))


def dictionary(text: str) -> Mapping[str, object]:
    """The known options of a Python dict, item by item: it may be cut, or hold objects that are no literals."""
    return _known(_outermost(_ITEM, text, 1))


def _outermost(form: str, text: str, level: int) -> dict[str, object]:
    """Each key's first value at this depth of brackets: what stands deeper is another configuration's."""
    if "Path(" in text:
        text = compiled(_PATH).sub(r"\1", text)
    found: dict[str, object] = {}
    if "num_spec" in text and (drafted := compiled(_DRAFTED).search(text)) is not None:
        found["num_speculative_tokens"] = int(drafted["tokens"])
    depth = 0
    for token in compiled(form).finditer(text):
        depth += (token["opens"] is not None) - (token["closes"] is not None)
        if token["key"] in OPTIONS and depth <= level:
            found.setdefault(token["key"], _literal(token["value"]))
    return found


def _known(options: Mapping[str, object]) -> Mapping[str, object]:
    """Only what a report may repeat, and only what is set to a value that means something."""
    idle = () if options.get("enable_lora") is True else OF_ADAPTERS
    return MappingProxyType(
        {key: value for key, value in options.items() if key in OPTIONS and key not in idle and _possible(value)}
    )


def _possible(value: object) -> bool:
    if isinstance(value, int | float):
        return abs(value) <= MAX_NUMBER
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _literal(text: str) -> object:
    """The value that a Python repr stands for, or the text itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if (number := compiled(_NUMBER).fullmatch(text)) is not None:
        return int(text) if number["part"] is None else float(text)
    if text.startswith(("'", '"')) and "\\" not in text:
        return text[1:-1]
    return _evaluated(text) if text.startswith(_OF_LITERALS) else text


def _evaluated(text: str) -> object:
    """The same of a list, a text with escapes or an unusual number."""
    import ast  # which most options do without
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know: the text is somebody's, not ours
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
