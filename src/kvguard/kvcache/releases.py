"""vLLM releases as comparable values, and the turning points at which the arithmetic changed."""

import re
from typing import NamedTuple

from kvguard.errors import ConfigError

_RELEASE = re.compile(r"v?(?!0\.1\.dev|0\.0\.0)(\d{1,2})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[.+-]?[A-Za-z].*|[.+].*)?")


class Release(NamedTuple):
    """One vLLM release; post, rc and local parts are dropped, as no rule depends on them."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def parse_release(text: str) -> Release:
    """Read "0.10.2.post2" or "v0.32.0+cpu".

    Raises:
        ConfigError: not a version, or what names no release: the "0.1.dev…" of a shallow checkout, a placeholder.
    """
    match = _RELEASE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--vllm-version {text}: not a vLLM version; write it as 0.32.0")
    return Release(int(match[1]), int(match[2]), int(match[3] or 0))


NEWEST_COMPUTED = Release(0, 33, 0)
"""The newest release whose own functions came to the same figures."""

OLDEST = Release(0, 6, 3)
"""The first release that prints a concurrency (engine/llm_engine.py); older ones say too little to plan for."""

# In the order of releases. Each name says what holds from that one on, and is asked for that alone: another fact of the
# same release has a name of its own. Where vLLM's own source shows it, the file is named.
V0_CHUNKS_2048 = Release(0, 6, 5)
V1_EXISTS = Release(0, 7, 0)
LATENTS_ALIGNED_IN_V0 = Release(0, 7, 2)
DEVICE_IN_SMALL_LETTERS = Release(0, 7, 3)  # executor_base.py: "# cuda blocks"
V1_BY_DEFAULT = Release(0, 8, 0)
LATENTS_NOT_ALIGNED_IN_V0 = Release(0, 8, 0)
REMAINDER_BEFORE_THE_LAST = Release(0, 8, 0)
V0_DIVIDES_BY_STAGES = Release(0, 8, 0)  # worker/worker.py raise_if_cache_size_invalid
MLA_COUNTED_ONCE_IN_V1 = Release(0, 8, 0)  # V1 counted the latent twice up to 0.7.3 (vllm#14462)
TOKENS_PRINTED = Release(0, 8, 0)  # V1 tells tokens instead of blocks
WINDOWS_IN_V1 = Release(0, 8, 3)  # v1/kv_cache_interface.py: SlidingWindowSpec
GIB_NAMED = Release(0, 8, 3)  # the refusal says GiB for what it had called GB
SEQUENCES_BY_CARD = Release(0, 8, 4)  # engine/arg_utils.py: 256 of a small card
ESTIMATE_BEGUN = Release(0, 8, 4)  # the refusal begins to say what would fit, and loses the number
FLOAT32_BECOMES_BFLOAT16 = Release(0, 9, 0)  # config.py _resolve_auto_dtype: the card's preferred dtype
KV_HYBRID_MANAGER = Release(0, 9, 1)  # v1/core/kv_cache_utils.py: groups; before, sliding layers kept every token
OVERRIDE_LOST = Release(0, 9, 1)  # only there: get_num_blocks logs the override and keeps its own count
CONCURRENCY_IN_BLOCKS = Release(0, 9, 1)
ESTIMATE_PRINTED = Release(0, 9, 1)
BLOCK_RAISED_FOR_STATES = Release(0, 10, 0)  # model_executor/models/config.py
CHUNKED_LAYERS_KNOWN = Release(0, 10, 0)
STATES_HAVE_DTYPES = Release(0, 10, 1)
CHUNKED_LAYERS_KEPT_IN_FULL = Release(0, 10, 1)  # VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE defaults to 0
DCP_EXISTS = Release(0, 10, 2)
CROSS_ATTENTION_IN_V1 = Release(0, 10, 2)
V0_GONE = Release(0, 11, 0)
MIXED_PAGES_IN_ONE_GROUP = Release(0, 11, 0)  # UniformTypeKVCacheSpecs
GROUPS_FORMED_GLOBALLY = Release(0, 11, 0)  # before, each pipeline stage formed its own
ENCODER_INPUT_IS_THE_BUDGET = Release(0, 11, 0)  # before, a model's own longest input
TOKENS_IN_SMALLEST_BLOCKS = Release(0, 11, 0)  # and multiplied by DCP whatever the groups
STATES_BY_BLOCK = Release(0, 11, 1)  # MambaSpec.max_memory_usage_bytes: ceil(L / mamba block), no speculative states
TOKENS_PER_ENGINE = Release(0, 11, 1)  # the token line is printed after the ranks have been levelled
PACKED_LATENTS_BY_FLAG = Release(0, 11, 1)  # config.py: before, "auto" packed sparse latents as well
STATE_BLOCK_FOLLOWS = Release(0, 12, 0)  # with prefix caching a purely recurrent model's state takes --block-size
PAGES_UNIFIED = Release(0, 12, 0)
LARGEST_BUCKET_125 = Release(0, 12, 0)
PCP_EXISTS = Release(0, 12, 0)
URL_IN_REFUSAL = Release(0, 13, 0)
CHUNKED_LAYERS_FREED = Release(0, 14, 0)  # the same defaults to 1
V_HEAD_SIZE_COUNTED = Release(0, 14, 0)  # by FullAttentionSpec
AUTO_MAX_MODEL_LEN = Release(0, 14, 0)
FIT_AGAINST_ALL_LAYERS = Release(0, 14, 0)
GIB_TRIMMED = Release(0, 14, 0)  # format_gib: trailing zeros dropped
ASYNC_BY_DEFAULT = Release(0, 14, 0)
STATE_CACHE_MODES = Release(0, 15, 0)
FIT_PER_STAGE = Release(0, 17, 0)
STATES_TAKE_DRAFTS = Release(0, 17, 0)
LARGEST_BUCKET_150 = Release(0, 18, 0)
FIT_COUNTS_ALL_GROUPS = Release(0, 19, 0)
V_HEAD_SIZE_COUNTED_IN_WINDOWS = Release(0, 20, 0)  # by SlidingWindowSpec as well
BLOCK_SIZE_ALIGNS = Release(0, 20, 0)  # platforms/interface.py: alignment = max(kernel minimum, block_size)
GRAPHS_TAKEN_OFF = Release(0, 20, 0)
UTILIZATION_92 = Release(0, 20, 0)
DRAFTS_ALIGN_STATES = Release(0, 20, 0)
TOKENS_FROM_CONCURRENCY = Release(0, 20, 1)
OVERRIDE_IN_FIT = Release(0, 20, 1)
V_HEAD_SIZE_KEPT = Release(0, 21, 0)  # unify_hybrid_kv_cache_specs: a promoted layer keeps its values' size
REFUSAL_REWORDED = Release(0, 22, 0)
ALL_MODE_COUNTS_SPECULATION = Release(0, 22, 0)
DRAFTS_ALIGN_STATES_NO_MORE = Release(0, 22, 0)
PAGES_PADDED = Release(0, 24, 0)
SLIDING_PICKS_ITS_BLOCK = Release(0, 25, 0)  # attention.py: _largest_kernel_block_within
STATE_PAGES_PADDED = Release(0, 26, 0)
IN_FLIGHT_TOKENS = Release(0, 26, 0)
PCP_GONE = Release(0, 26, 0)
STATES_SHARE_PREFIXES = Release(0, 26, 0)  # prefix caching becomes the default of hybrid models
FULL_FALLBACK = Release(0, 27, 0)
LATENT_BLOCK_128 = Release(0, 27, 0)
ONE_CAPACITY_LINE = Release(0, 28, 0)
STATES_ALIGN_BY_DEFAULT = Release(0, 28, 0)
BATCH_OF_HUGE_CARDS = Release(0, 28, 0)
NULL_BLOCK_IN_FIT = Release(0, 29, 0)
NEW_RUNNER = Release(0, 29, 0)
SLIDING_FILLS_THE_BLOCK = Release(0, 30, 0)
CHECKPOINTS_KDA = Release(0, 31, 0)
CHECKPOINTS_MAMBA2 = Release(0, 32, 0)
ALL_MODE_GONE = Release(0, 32, 0)
MODE_FOLLOWS_PREFIX_CACHING = Release(0, 33, 0)  # engine/arg_utils.py: --mamba-cache-mode has no effect any more
CHECKPOINTS_GDN = Release(0, 33, 0)  # mamba/gdn/qwen_gdn_linear_attn.py, under FlashInfer's prefill kernel
GB10_IS_SMALL = Release(0, 33, 0)  # engine/arg_utils.py: compute capability 12.1
FLOAT_CACHE_IS_THE_MODELS = Release(0, 33, 0)  # config/vllm.py _reject_mismatched_float_kv_cache


def default_utilization(release: Release) -> float:
    """The share of the card that vLLM uses where --gpu-memory-utilization is not given (config/cache.py)."""
    return 0.9 if release < UTILIZATION_92 else 0.92
