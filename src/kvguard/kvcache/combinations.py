"""Combinations of a model and settled flags that vLLM refuses before it lays out a cache."""

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.layers import Attention, LayerKind, ModelLayers
from kvguard.kvcache.serving import Serving


def check_combination(serving: Serving, model: ModelLayers) -> None:
    """Refuse what this release refuses.

    Raises:
        ConfigError: names the flag, the model and what would do.
    """
    _parallelism(serving, model)
    _cross_attention(serving, model)
    _drafts(serving, model)
    _float_cache(serving)


def _float_cache(serving: Serving) -> None:
    """A 16-bit cache is the model's own dtype or none (config/vllm.py)."""
    named, own = serving.kv_cache_dtype, _SAME_DTYPE.get(serving.dtype, serving.dtype)
    if serving.release < releases.FLOAT_CACHE_IS_THE_MODELS or named not in ("float16", "bfloat16") or named == own:
        return
    allowed = f"auto or {own}" if own in ("float16", "bfloat16") else "auto"
    raise ConfigError(
        f"--kv-cache-dtype {named}: vLLM {serving.release} refuses it beside dtype {own}; {allowed} would do"
    )


_SAME_DTYPE = {"half": "float16", "float": "float32"}


def _cross_attention(serving: Serving, model: ModelLayers) -> None:
    if model.encoder_tokens is None or (serving.engine == "v1" and serving.release >= releases.CROSS_ATTENTION_IN_V1):
        return
    raise ConfigError(
        f"{model.architecture}: cross-attention is planned from vLLM {releases.CROSS_ATTENTION_IN_V1} on (V1); "
        "older engines keep its blocks apart"
    )


def _drafts(serving: Serving, model: ModelLayers) -> None:
    """Before 0.17 recurrent layers took no drafts, Qwen3-Next's apart (v1: MambaBase.get_kv_cache_spec)."""
    if not (serving.speculative_tokens and model.keeps_states) or serving.release >= releases.STATES_TAKE_DRAFTS:
        return
    if serving.engine == "v1" and model.architecture != "Qwen3NextForCausalLM":
        raise ConfigError(
            f"--num-speculative-tokens: vLLM {serving.release} refuses it with the recurrent layers of "
            f"{model.architecture}; they take drafts from {releases.STATES_TAKE_DRAFTS} on"
        )
    if serving.mamba_cache_mode == "align":
        raise ConfigError(
            f"--num-speculative-tokens: vLLM {serving.release} refuses it with --mamba-cache-mode align, which prefix "
            f"caching takes here; they go together from {releases.STATES_TAKE_DRAFTS} on"
        )


def _parallelism(serving: Serving, model: ModelLayers) -> None:
    if model.attention_heads and model.attention_heads % serving.tp:
        raise ConfigError(
            f"--tensor-parallel-size {serving.tp}: vLLM refuses it, as {model.architecture} has "
            f"{model.attention_heads} attention heads; use a divisor"
        )
    for layer in model.layers:
        if isinstance(layer, Attention) and layer.kind not in (LayerKind.MLA, LayerKind.MLA_INDEXER):
            _kv_heads(layer.kv_heads, serving, model)
    if serving.dcp > 1 and serving.tp % serving.dcp:
        raise ConfigError(
            f"--decode-context-parallel-size {serving.dcp}: it must divide --tensor-parallel-size ({serving.tp})"
        )


def _kv_heads(heads: int, serving: Serving, model: ModelLayers) -> None:
    if heads % serving.tp and serving.tp % heads:
        raise ConfigError(
            f"--tensor-parallel-size {serving.tp}: vLLM refuses it, as it and the {heads} KV heads of "
            f"{model.architecture} do not divide one another"
        )
    if serving.dcp > 1 and serving.tp // heads < serving.dcp:
        raise ConfigError(
            f"--decode-context-parallel-size {serving.dcp}: with {heads} KV heads and --tensor-parallel-size "
            f"{serving.tp} at most {max(1, serving.tp // heads)} is allowed: only replicated heads are split by tokens"
        )
