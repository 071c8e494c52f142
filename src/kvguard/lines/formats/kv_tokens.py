"""KV cache size in tokens and maximum concurrency: two lines to vLLM 0.27.1, one from 0.28.0; any device's name.

To 0.11.0 the pair is printed once a worker, before the pools are levelled to the smallest. What the token figure means
changed at 0.20.1 with the same words: `startup` tells which it is by the version.
"""

from kvguard.events import KvCacheSize, MaxConcurrency, TokensMultiplied
from kvguard.lines.line_format import COUNT, INTEGER, NUMBER, LineFormat, Scope

DEVICE = r"\w++(?: \+ host)?"
CONCURRENCY = rf"Maximum concurrency for (?P<max_model_len_tokens>{INTEGER}) tokens(?: per request|/request)?: (?P<max_concurrency>{NUMBER})x"

ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="kv-cache-size",
        literal=" KV cache size: ",
        pattern=rf"{DEVICE} KV cache size: (?P<kv_cache_tokens>{INTEGER}) tokens",
        emits=(KvCacheSize,),
        scope=Scope.ENGINE,
        versions=("0.8.0-0.27.1", "vllm-spyre 0.5.0-2.0.0"),
        upstream="v1/core/kv_cache_utils.py; the Spyre plugin prints its own pair beside it",
    ),
    LineFormat(
        name="kv-cache-size-and-concurrency",
        literal=" KV cache size: ",
        pattern=rf"{DEVICE} KV cache size: (?P<kv_cache_tokens>{INTEGER}) tokens, {CONCURRENCY}",
        emits=(KvCacheSize, MaxConcurrency),
        scope=Scope.ENGINE,
        versions=("0.28.0-0.33.0",),
        upstream="v1/core/kv_cache_utils.py",
    ),
    LineFormat(
        name="max-concurrency",
        literal="Maximum concurrency for ",
        pattern=CONCURRENCY,
        emits=(MaxConcurrency,),
        scope=Scope.ENGINE,
        versions=("0.6.3-0.27.1", "vllm-spyre 0.5.0-2.0.0"),
        upstream="executor/executor_base.py (V0), v1/core/kv_cache_utils.py",
    ),
    LineFormat(
        name="kv-cache-size-multiplied",
        literal="Multiplying the GPU KV cache size by the ",
        pattern=rf"Multiplying the GPU KV cache size by the d?+cp_world_size (?P<factor>{COUNT})"
        rf"(?: \(pcp_world_size {COUNT} \* dcp_world_size {COUNT}\))?\.",
        emits=(TokensMultiplied,),
        scope=Scope.ENGINE,
        versions=("0.10.2-0.20.0",),
        upstream="v1/core/kv_cache_utils.py: the token figure that follows is multiplied already",
    ),
    LineFormat(
        name="concurrency-of-hisparse-hosts",
        literal="HiSparse steady-state maximum concurrency for ",
        pattern=rf"HiSparse steady-state maximum concurrency for {INTEGER} tokens per request: {NUMBER}x "
        r"\(running requests reading from host\)\.",
        emits=(),
        scope=Scope.ENGINE,
        versions=("0.32.0-0.33.0",),
        upstream="kv_connector/v1/hisparse/connector.py: of running requests alone; the engine's own line is the figure",
    ),
)
