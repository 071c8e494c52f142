"""Bytes of a cache element: model dtypes, KV-cache dtypes with their scales, and since when vLLM takes them."""

from kvguard.errors import ConfigError
from kvguard.kvcache.releases import Release
from kvguard.slotted import dataclass

_TORCH_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "half": 2, "float": 4}


def torch_bytes(dtype: str, where: str) -> int:
    """Bytes of one element of a torch dtype.

    Raises:
        ConfigError: unknown; `where` names the flag or the key.
    """
    if dtype not in _TORCH_BYTES:
        raise ConfigError(f"{where} {dtype}: unknown; known are {', '.join(sorted(_TORCH_BYTES))}")
    return _TORCH_BYTES[dtype]


@dataclass(frozen=True, slots=True)
class KvDtype:
    """A KV-cache dtype: bytes of one head's row of `head_size` elements are
    `head_size × numerator ÷ denominator`, plus one scale every `scale_group` elements, plus `scale_a_token` bytes.
    """

    numerator: int
    denominator: int
    scale_group: int | None
    scale_a_token: int
    since: Release

    def row_bytes(self, head_size: int) -> int:
        """Bytes that one token's K (or V) of one head takes, scales included."""
        grouped = head_size // self.scale_group if self.scale_group else 0
        return head_size * self.numerator // self.denominator + grouped + self.scale_a_token


_FIRST = Release(0, 0, 0)
_SIXTEEN = KvDtype(2, 1, None, 0, Release(0, 11, 0))
_FP8 = KvDtype(1, 1, None, 0, _FIRST)
_FP4 = KvDtype(1, 2, 16, 0, Release(0, 20, 0))

KV_DTYPES: dict[str, KvDtype] = {
    "bfloat16": _SIXTEEN,
    "float16": KvDtype(2, 1, None, 0, Release(0, 18, 0)),
    "fp8": _FP8,
    "fp8_e4m3": _FP8,
    "fp8_e5m2": _FP8,
    "fp8_inc": KvDtype(1, 1, None, 0, Release(0, 10, 0)),
    "fp8_ds_mla": KvDtype(1, 1, None, 0, Release(0, 11, 0)),
    # one fp32 scale for K and one for V of each token and head (v1/kv_cache_interface.py)
    "fp8_per_token_head": KvDtype(1, 1, None, 4, Release(0, 20, 0)),
    "int8_per_token_head": KvDtype(1, 1, None, 4, Release(0, 20, 0)),
    "int4_per_token_head": KvDtype(1, 2, None, 4, Release(0, 25, 0)),
    # two values a byte and one fp8 scale every 16 values
    "nvfp4": _FP4,
    "nvfp4_4over6": KvDtype(1, 2, 16, 0, Release(0, 28, 0)),
    "nvfp4_ds_mla": KvDtype(1, 2, None, 0, Release(0, 32, 0)),
}
"""Each value of --kv-cache-dtype whose layout is known; "auto" is the model's own dtype."""

PACKED_MLA_ROWS = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
"""Bytes of one token of sparse MLA in its packed rows (v1/attention/backends/mla/flashmla_sparse.py)."""


def kv_dtype(name: str, model_dtype: str, release: Release) -> KvDtype:
    """The dtype that `--kv-cache-dtype NAME` selects for a model of `model_dtype`.

    Raises:
        ConfigError: a dtype whose layout is not known, or one that the release does not have.
    """
    if name == "auto":
        return KvDtype(torch_bytes(model_dtype, "the model's dtype"), 1, None, 0, _FIRST)
    known = KV_DTYPES.get(name)
    if known is None:
        raise ConfigError(f"--kv-cache-dtype {name}: its layout is not known; known are auto, {', '.join(KV_DTYPES)}")
    if release < known.since:
        raise ConfigError(f"--kv-cache-dtype {name}: vLLM {release} does not have it; it came with {known.since}")
    return known
