"""Causes in meaning: figures that are printed differently, or follow from options that changed, over the same pool."""

from kvguard.kvcache import releases
from kvguard.slo.baselines.evidence import NOTABLE, Evidence, arrow, factor
from kvguard.startup.report import TokenFigure


def tokens_redefined(evidence: Evidence) -> str | None:
    pair, moved = evidence.pair, evidence.moved("kv_cache_tokens")
    if (
        moved is None
        or pair.old.token_figure is pair.new.token_figure
        or None in (pair.old.token_figure, pair.new.token_figure)
    ):
        return None
    if evidence.same_bytes:
        return f"tokens {factor(moved)} with not a byte changed: reported differently since 0.20.1"
    if pair.unchanged("max_concurrency") and pair.same("max_model_len"):
        return f"tokens {factor(moved)} at the same concurrency: reported differently since 0.20.1"
    return "tokens cannot be compared: reported differently since 0.20.1"


def tokens_follow_length(evidence: Evidence) -> str | None:
    pair, moved = evidence.pair, evidence.moved("kv_cache_tokens")
    figures = {pair.old.token_figure, pair.new.token_figure}
    if moved is None or figures != {TokenFigure.CONCURRENCY_TIMES_LEN} or pair.same("max_model_len"):
        return None
    if not (pair.same("kv_cache_dtype") and pair.same("num_gpu_blocks_override")):
        return None  # the tokens follow from that as well
    same = " with not a byte changed" if evidence.same_bytes else ""
    old, new = pair.options("max_model_len")
    return (
        f"tokens {factor(moved)}{same}: the figure is concurrency times max_model_len ({arrow(old, new)}), "
        "no size of the pool"
    )


def length_changed(evidence: Evidence) -> str | None:
    pair, moved = evidence.pair, evidence.moved("max_concurrency")
    old, new = pair.old.max_model_len, pair.new.max_model_len
    if moved is None or not old or not new or old == new:
        return None
    pool = "the pool is the same" if evidence.same_pool else "and the pool changed as well"
    return f"concurrency {factor(moved)}: max_model_len {factor(new / old)} ({arrow(old, new)}), {pool}"


def blocks_overridden(evidence: Evidence) -> str | None:
    """An option fixes the pool: the memory that is printed beside it does not tell what fits."""
    if evidence.pair.same("num_gpu_blocks_override"):
        return None
    old, new = evidence.pair.options("num_gpu_blocks_override")
    return f"num_gpu_blocks_override {arrow(old, new)}: the option fixes the pool, whatever the memory would hold"


def default_changed(evidence: Evidence) -> str | None:
    """An option that neither start gives, and that the release itself set otherwise."""
    found = [change for change in evidence.pair.changed_options() if change.by_default]
    if not found:
        return None
    return ", ".join(f"{change.name} {arrow(change.old, change.new)}: the default changed" for change in found)


def dtype(evidence: Evidence) -> str | None:
    if evidence.pair.same("kv_cache_dtype"):
        return None
    ratio = _bytes_a_token(evidence)
    dtypes = arrow(*evidence.pair.options("kv_cache_dtype"))
    moved = evidence.moved("kv_cache_tokens")
    if ratio is not None:
        return f"KV cache dtype {dtypes}: bytes of one token {factor(ratio)}"
    return f"KV cache dtype {dtypes}" + (f": tokens {factor(moved)}" if moved is not None else "")


def _bytes_a_token(evidence: Evidence) -> float | None:
    """How many times the old bytes a token takes now on a rank."""
    tokens, cache = evidence.pair.ratio("kv_cache_tokens"), evidence.budget.cache
    if not tokens or not cache.old or not cache.new or cache.old <= 0 or cache.new <= 0:
        return None
    return cache.new / cache.old / tokens


def sharding(evidence: Evidence) -> str | None:
    """More ranks: whether a token is split over them, or kept whole on each."""
    if evidence.pair.same("tensor_parallel_size"):
        return None
    ranks = f"tensor_parallel_size {arrow(*evidence.pair.options('tensor_parallel_size'))}"
    printed = "memory is printed per rank, tokens per engine"
    ratio = _bytes_a_token(evidence)
    if ratio is None:
        return f"{ranks}: {printed}"
    if abs(ratio - 1) < NOTABLE:
        whole = "a token takes as many bytes on each rank as before (MLA, or more ranks than KV heads)"
        return f"{ranks}: {whole}; {printed}"
    return f"{ranks}: a token's bytes on each rank {factor(ratio)}; {printed}"


def generation(evidence: Evidence) -> str | None:
    old, new = evidence.pair.old.generation, evidence.pair.new.generation
    if old is None or new is None or old == new:
        return None
    return f"engine {arrow(old, new)}: another profile run and other defaults: approve its capacity anew"


def lines_a_rank(evidence: Evidence) -> str | None:
    ranks = evidence.pair.options("tensor_parallel_size")[0]
    if not evidence.pair.crossed(releases.TOKENS_PER_ENGINE) or not isinstance(ranks, int) or ranks < 2:
        return None
    return "to 0.11.0 each rank printed its own figure, of which the smallest is taken; since then one an engine"


def latent_counted_twice(evidence: Evidence) -> str | None:
    moved = evidence.moved("kv_cache_tokens") or evidence.moved("gpu_blocks")
    if not evidence.pair.crossed(releases.MLA_COUNTED_ONCE_IN_V1) or moved is None or abs(moved - 2) > 0.05:
        return None
    return "before 0.8.0 V1 counted MLA's latent twice: the doubling is real"


def declared(evidence: Evidence) -> str | None:
    bases = {evidence.pair.old.basis, evidence.pair.new.basis}
    if "declared" not in bases or (len(bases) == 1 and evidence.same_bytes):
        return None
    which = (
        "both starts'"
        if bases == {"declared"}
        else "the new start's"
        if evidence.pair.new.basis == "declared"
        else "the old start's"
    )
    return f"{which} KV cache is declared by an option, not measured"


def engines(evidence: Evidence) -> str | None:
    counts = evidence.pair.engines
    return None if counts is None or len(set(counts)) == 1 else f"engines {arrow(*counts)}: each has a pool of its own"


def seqs(evidence: Evidence) -> str | None:
    if evidence.pair.same("max_num_seqs") or not evidence.same_pool or evidence.moved("max_concurrency") is not None:
        return None
    seqs = arrow(*evidence.pair.options("max_num_seqs"))
    return f"max_num_seqs {seqs}, the pool is the same: maximum concurrency is what memory holds, not what is admitted"


def unlike_without_cause(evidence: Evidence) -> str | None:
    """A change that neither parts nor options explain: at least the versions are named."""
    pair = evidence.pair
    figure = next((name for name in _LABELS if evidence.moved(name) is not None), None)
    if figure is None or evidence.budget.cache.change is not None or any(pair.changed_options()):
        return None
    versions = {pair.old.vllm_version, pair.new.vllm_version}
    ran = "on a version that no line names" if None in versions else "on the same version"
    if len(versions) == 2 and None not in versions:
        ran = f"from vLLM {arrow(pair.old.vllm_version, pair.new.vllm_version)}"
    moved = factor(evidence.moved(figure) or 1.0)
    return f"{_LABELS[figure]} {moved} {ran}, with the same options: the logs tell no part of the memory"


_LABELS = {"gpu_blocks": "blocks", "kv_cache_tokens": "tokens", "max_concurrency": "concurrency"}
