"""The serving flags that bear on the cache: checked against the release, with vLLM's defaults filled in."""

from collections.abc import Iterator

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.combinations import check_combination
from kvguard.kvcache.engines import Wants, engine_of
from kvguard.kvcache.layers import LayerKind, ModelLayers, State
from kvguard.kvcache.releases import Release
from kvguard.kvcache.serving import Serving
from kvguard.slotted import dataclass, replace
from kvguard.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags as the user gave them; None where not given. Names are vLLM's own, sizes in bytes or tokens."""

    vllm_version: Release = releases.NEWEST_COMPUTED
    engine: str | None = None
    max_model_len: int | None = None
    auto_max_model_len: bool = False
    dtype: str | None = None
    block_size: int | None = None
    kv_cache_dtype: str = "auto"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    pp_layer_partition: tuple[int, ...] | None = None
    decode_context_parallel_size: int = 1
    prefill_context_parallel_size: int = 1
    data_parallel_size: int = 1
    max_num_batched_tokens: int | None = None
    max_num_encoder_input_tokens: int | None = None
    max_num_seqs: int | None = None
    async_scheduling: bool | None = None
    enable_prefix_caching: bool | None = None
    disable_hybrid_kv_cache_manager: bool = False
    mamba_cache_mode: str | None = None
    mamba_block_size: int | None = None
    mamba_cache_dtype: str | None = None
    mamba_ssm_cache_dtype: str | None = None
    gdn_prefill_backend: str | None = None
    kernel_block_alignment: int | None = None
    num_speculative_tokens: int = 0
    draft_layers: int = 0


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that nobody gave: the option, the value taken and why."""

    option: str
    value: int | str | bool
    why: str


_SINCE: dict[str, Release] = {
    "decode_context_parallel_size": releases.DCP_EXISTS,
    "prefill_context_parallel_size": releases.PCP_EXISTS,
    "async_scheduling": Release(0, 10, 0),
    "disable_hybrid_kv_cache_manager": releases.KV_HYBRID_MANAGER,
    "mamba_cache_mode": releases.STATE_CACHE_MODES,
    "mamba_block_size": releases.STATES_BY_BLOCK,
    "mamba_cache_dtype": releases.STATES_HAVE_DTYPES,
    "mamba_ssm_cache_dtype": releases.STATES_HAVE_DTYPES,
    "auto_max_model_len": releases.AUTO_MAX_MODEL_LEN,
    "data_parallel_size": Release(0, 8, 3),
}
"""Since when vLLM's engine/arg_utils.py has a flag; the others are older than any release planned for."""

_SSM_DTYPE_SINCE = {LayerKind.GDN: Release(0, 17, 0), LayerKind.KDA: Release(0, 30, 0)}
_FIRST = Release(0, 0, 0)
_LONG_IN_V0 = 32768

_Default = tuple[int, str]

_DEFAULTS = Options()


def check_release(options: Options) -> None:
    """Refuse flags that this release does not have.

    Raises:
        ConfigError: names the flag and the release that brought it.
    """
    release = options.vllm_version
    if release < releases.OLDEST:
        raise ConfigError(
            f"--vllm-version {release}: older than {releases.OLDEST}, where vLLM prints no concurrency yet"
        )
    for name, since in _SINCE.items():
        if getattr(options, name) != getattr(_DEFAULTS, name) and release < since:
            flag = "--max-model-len auto" if name == "auto_max_model_len" else f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag}: vLLM {release} does not have it; it came with {since}")
    if options.mamba_cache_mode == "all" and release >= releases.ALL_MODE_GONE:
        raise ConfigError(
            f"--mamba-cache-mode all: vLLM {release} does not have it; it went with {releases.ALL_MODE_GONE}"
        )
    if options.engine == "v0" and release >= releases.V0_GONE:
        raise ConfigError(f"--engine v0: vLLM {release} does not have it; the last release with it is 0.10.2")
    if options.engine == "v1" and release < releases.V1_EXISTS:
        raise ConfigError(
            f"--engine v1: vLLM {release} prints nothing to plan for with it; use {releases.V1_EXISTS} or newer"
        )


def resolve(
    options: Options, model: ModelLayers, total_gpu_bytes: float | None = None
) -> tuple[Serving, list[Assumption]]:
    """Fill in what vLLM would, and list what was assumed.

    Args:
        options: the flags as given.
        model: the model's layers.
        total_gpu_bytes: the card's memory where known: it decides vLLM's default batch sizes.

    Raises:
        ConfigError: flags that contradict the release, the model or one another.
    """
    check_release(options)
    assumed: list[Assumption] = []
    release = options.vllm_version
    if options.vllm_version is _DEFAULTS.vllm_version:
        assumed.append(Assumption("vllm_version", str(release), "the newest that was tested"))
    elif release > releases.NEWEST_COMPUTED:
        why = f"by the rules of {releases.NEWEST_COMPUTED}, the newest that was tested"
        assumed.append(Assumption("vllm_version", str(release), why))
    serving = _serving(options, model, total_gpu_bytes, assumed)
    check_combination(serving, model)
    return serving, assumed


def _serving(options: Options, model: ModelLayers, total: float | None, assumed: list[Assumption]) -> Serving:
    release, engine = options.vllm_version, _engine(options, model, assumed)
    length = _max_model_len(options, model, assumed)
    batched, seqs = _batch(options, engine, length, any(layer.kind is LayerKind.MLA for layer in model.layers), total)
    max_num_batched_tokens = _given("max_num_batched_tokens", options.max_num_batched_tokens, batched, assumed)
    max_num_seqs = _given("max_num_seqs", options.max_num_seqs, seqs, assumed)
    prefix_caching = _prefix_caching(options, model, engine)
    mode = _state_mode(options, model, prefix_caching)
    assumed.extend(_assumed_of_states(options, model, mode))
    return Serving(
        release=release,
        engine=engine,
        max_model_len=length,
        dtype=_dtype(options, model),
        block_size=_block_size(options, model, assumed),
        kv_cache_dtype=_kv_cache_dtype(options, model, assumed),
        tp=options.tensor_parallel_size,
        pp=options.pipeline_parallel_size,
        pp_layer_partition=options.pp_layer_partition,
        dcp=options.decode_context_parallel_size,
        pcp=options.prefill_context_parallel_size,
        dp=options.data_parallel_size,
        max_num_batched_tokens=max_num_batched_tokens,
        encoder_budget=options.max_num_encoder_input_tokens or _encoder_budget(release, model, max_num_batched_tokens),
        max_num_seqs=max_num_seqs,
        async_scheduling=_async_scheduling(options),
        new_runner=_new_runner(release, model),
        prefix_caching=prefix_caching and not (mode == "none" and model.keeps_states),
        hybrid_manager=_hybrid_manager(options, model, engine),
        mamba_cache_mode=mode,
        mamba_block_size=options.mamba_block_size,
        mamba_cache_dtype=options.mamba_cache_dtype or "auto",
        mamba_ssm_cache_dtype=_ssm_dtype(options, model),
        kernel_block_alignment=options.kernel_block_alignment,
        speculative_tokens=options.num_speculative_tokens,
    )


def _given(option: str, value: int | None, default: _Default, assumed: list[Assumption]) -> int:
    if value:
        return value
    assumed.append(Assumption(option, *default))
    return default[0]


def _engine(options: Options, model: ModelLayers, assumed: list[Assumption]) -> str:
    wants = Wants(
        stages=options.pipeline_parallel_size,
        drafts=bool(options.num_speculative_tokens or options.draft_layers),
        fp8=options.kv_cache_dtype.startswith("fp8"),
    )
    engine, why = engine_of(options.engine, options.vllm_version, model, wants)
    if why is not None:
        assumed.append(Assumption("engine", engine, why))
    return engine


def with_max_model_len(serving: Serving, max_model_len: int) -> Serving:
    """The same deployment at another context length."""
    return replace(serving, max_model_len=max_model_len)


def _dtype(options: Options, model: ModelLayers) -> str:
    if options.dtype in (None, "auto"):
        if model.dtype != "float32":
            return model.dtype
        return "bfloat16" if options.vllm_version >= releases.FLOAT32_BECOMES_BFLOAT16 else "float16"
    return str(options.dtype)


def _ssm_dtype(options: Options, model: ModelLayers) -> str:
    """What the recurrent matrix is kept in; GDN and KDA did not ask the flag at first (mamba_utils.py)."""
    fixed = any(options.vllm_version < _SSM_DTYPE_SINCE.get(layer.kind, _FIRST) for layer in model.layers)
    asked = None if fixed else options.mamba_ssm_cache_dtype
    return asked or model.ssm_dtype or "auto"


def _max_model_len(options: Options, model: ModelLayers, assumed: list[Assumption]) -> int:
    if options.max_model_len is not None:
        return options.max_model_len
    if options.auto_max_model_len:
        return model.context.default
    why = "the model config's own length" if model.context.longest else "vLLM's default: the config names no length"
    assumed.append(Assumption("max_model_len", model.context.default, why))
    return model.context.default


def _block_size(options: Options, model: ModelLayers, assumed: list[Assumption]) -> int:
    if options.block_size is not None:
        return options.block_size
    size = model.default_block_size or 16
    assumed.append(
        Assumption("block_size", size, "vLLM's default on CUDA; some attention backends choose 32, 64 or 128")
    )
    return size


def _kv_cache_dtype(options: Options, model: ModelLayers, assumed: list[Assumption]) -> str:
    """Sparse MLA keeps FP8 in rows of its own (config.py of 0.11.1; 0.11.0 did so even for "auto")."""
    if not any(layer.kind is LayerKind.MLA_INDEXER for layer in model.layers):
        return options.kv_cache_dtype
    packed = options.kv_cache_dtype.startswith("fp8")
    if options.vllm_version < releases.PACKED_LATENTS_BY_FLAG:
        packed = packed or options.kv_cache_dtype == "auto"
    if packed and options.kv_cache_dtype != "fp8_ds_mla":
        assumed.append(
            Assumption(
                "kv_cache_dtype", "fp8_ds_mla", "FlashMLA's rows of sparse MLA; FlashInfer's plain FP8 is smaller"
            )
        )
    return "fp8_ds_mla" if packed else options.kv_cache_dtype


def _batch(options: Options, engine: str, length: int, latent: bool, total: float | None) -> tuple[_Default, _Default]:
    """max_num_batched_tokens and max_num_seqs of `vllm serve` (engine/arg_utils.py), each with why."""
    release = options.vllm_version
    if engine == "v0":  # chunked prefill from 32k on, never with latents; else a prompt is computed at once
        chunk = 2048 if release >= releases.V0_CHUNKS_2048 else 512
        batched = chunk if length > _LONG_IN_V0 and not latent else max(length, 2048)
        return (batched, "the default of the V0 engine"), (256, "the default of the V0 engine")
    large = total is not None and total >= 70 * GIB
    on_large = "the default of `vllm serve` on a card of 70 GiB and more"
    seqs: _Default = (1024, on_large) if large else (256, "the default of `vllm serve`; 1024 from 70 GiB")
    if release < releases.SEQUENCES_BY_CARD:
        seqs = (1024, "the default of the first releases of V1")
    if large and total is not None and _is_gb10(release, total):
        why = "the default on a DGX Spark, which a GPU of this memory is taken for"
        return (2048, why), (256, why)
    if not large:
        return (2048, "the default of `vllm serve`; 8192 from 70 GiB"), seqs
    huge = total is not None and total >= 160 * GIB and release >= releases.BATCH_OF_HUGE_CARDS
    return (16384 if huge else 8192, on_large), seqs


def _is_gb10(release: Release, total: float) -> bool:
    """DGX Spark has the memory of a large card (119.6 to 119.7 GiB) and, by now, the defaults of a small one."""
    return release >= releases.GB10_IS_SMALL and 119.5 * GIB <= total < 119.8 * GIB  # 128 GB are 119.2


def _async_scheduling(options: Options) -> bool:
    """On by default from 0.14; where the old runner leaves it for pipeline stages, as many steps are in flight."""
    if options.async_scheduling is not None:
        return options.async_scheduling
    return options.vllm_version >= releases.ASYNC_BY_DEFAULT


def _encoder_budget(release: Release, model: ModelLayers, batched: int) -> int:
    """What cross-attention reserves: the scheduler's budget; in 0.10.2 the longest input of the model itself."""
    own = model.encoder_tokens if release < releases.ENCODER_INPUT_IS_THE_BUDGET else None
    return own or batched


def _new_runner(release: Release, model: ModelLayers) -> bool:
    """Model Runner V2: for all from 0.29, before only for dense models without states (config/vllm.py)."""
    return release >= releases.NEW_RUNNER or not (model.is_moe or model.keeps_states)


def _prefix_caching(options: Options, model: ModelLayers, engine: str) -> bool:
    if options.enable_prefix_caching is not None:
        return options.enable_prefix_caching
    if engine == "v0" or model.encoder_tokens is not None:
        return False
    if model.keeps_states:
        return model.keeps_tokens and options.vllm_version >= releases.STATES_SHARE_PREFIXES
    return True


def _state_mode(options: Options, model: ModelLayers, prefix_caching: bool) -> str:
    """--mamba-cache-mode as MambaModelConfig settles it (model_executor/models/config.py)."""
    release = options.vllm_version
    if not prefix_caching or not model.keeps_states:
        return "none"
    if release < releases.STATES_BY_BLOCK:
        return "none"  # prefix caching is switched off for recurrent models
    if release < releases.STATE_CACHE_MODES:
        return "all" if model.caches_states_in_full else "none"
    mode = "none" if release >= releases.MODE_FOLLOWS_PREFIX_CACHING else options.mamba_cache_mode or "none"
    if mode == "none":
        return _default_state_mode(options, model)
    return "align" if mode == "all" and not model.caches_states_in_full else mode


def _assumed_of_states(options: Options, model: ModelLayers, mode: str) -> Iterator[Assumption]:
    """What the card decides of recurrent layers, and a flag that no longer decides anything."""
    exports = any(
        isinstance(layer, State) and layer.kind is LayerKind.GDN and layer.checkpoints for layer in model.layers
    )
    if exports and mode == "align" and options.gdn_prefill_backend in (None, "auto"):
        why = (
            "vLLM's choice on Hopper and, with CUDA 13, on Blackwell; triton elsewhere, which keeps one state less of "
            "each request"
        )
        yield Assumption("gdn_prefill_backend", "flashinfer", why)
    if options.mamba_cache_mode not in (None, mode) and options.vllm_version >= releases.MODE_FOLLOWS_PREFIX_CACHING:
        yield Assumption("mamba_cache_mode", mode, "the flag has no effect any more: it follows prefix caching")


def _default_state_mode(options: Options, model: ModelLayers) -> str:
    release = options.vllm_version
    if not model.caches_states_in_full or release >= releases.STATES_ALIGN_BY_DEFAULT:
        return "align"
    drafts = options.num_speculative_tokens > 0
    return (
        "align" if drafts and releases.DRAFTS_ALIGN_STATES <= release < releases.DRAFTS_ALIGN_STATES_NO_MORE else "all"
    )


def _hybrid_manager(options: Options, model: ModelLayers, engine: str) -> bool:
    """Whether layers of several kinds get groups of their own, or all keep every token."""
    release = options.vllm_version
    if engine == "v0" or release < releases.KV_HYBRID_MANAGER or options.disable_hybrid_kv_cache_manager:
        return False
    if any(layer.kind is LayerKind.CHUNKED for layer in model.layers):
        kept = releases.CHUNKED_LAYERS_KEPT_IN_FULL <= release < releases.CHUNKED_LAYERS_FREED
        return not kept and not options.num_speculative_tokens
    return True
