"""A declared workload on a pool: blocks a request, what a shared prefix saves, requests that run without preemption."""

from math import floor

from kvguard.kvcache import releases
from kvguard.kvcache.groups import Group
from kvguard.kvcache.layers import LayerKind
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.load import Request
from kvguard.kvcache.requests import held_blocks
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class RequestBlocks:
    """Blocks that each request adds, and blocks that all of them share, once an engine."""

    each: int
    shared: int


@dataclass(frozen=True, slots=True)
class Service:
    """What the pool of one engine makes of the load.

    `concurrency` is unrounded and divides the usable blocks (one id is the null block); `requests` is what runs at
    once, whole, with max_num_seqs, and none where one is longer than max_model_len; `share` is the part of the usable
    blocks that one more request takes.
    """

    blocks: RequestBlocks
    concurrency: float
    share: float
    requests: int
    limited_by: str


def request_blocks(layout: Layout, workload: Request) -> RequestBlocks:
    """Blocks of one request of the load once it has generated all its tokens."""
    each = shared = 0
    for group in layout.groups:
        held = held_blocks(group.spec, workload.stored_tokens, layout.serving, layout.model.encoder_tokens)
        saved, paid_once = _shared(group, layout, workload)
        each += held - min(saved, held)
        shared += paid_once
    return RequestBlocks(each, shared)


def serve(layout: Layout, blocks: int, workload: Request) -> Service:
    """The load on a pool of so many blocks.

    Args:
        layout: the deployment's layout.
        blocks: the pool, the null block included.
        workload: one request.
    """
    need = request_blocks(layout, workload)
    usable = max(0, blocks - 1)
    room = max(0, usable - need.shared)
    concurrency = room / need.each if need.each else float(layout.serving.max_num_seqs)
    share = need.each / usable if usable else float("inf")
    limit = _limit(layout, workload, concurrency)
    requests = 0 if limit == "max_model_len" else min(floor(concurrency), layout.serving.max_num_seqs)
    return Service(need, concurrency, share, requests, limit)


def _limit(layout: Layout, workload: Request, concurrency: float) -> str:
    longest = layout.serving.max_model_len
    if workload.request_tokens > longest:
        return "max_model_len"
    if concurrency < 1:
        return "request_exceeds_pool"
    return "max_num_seqs" if concurrency >= layout.serving.max_num_seqs else "kv_cache"


def _shared(group: Group, layout: Layout, workload: Request) -> tuple[int, int]:
    """Blocks of one group that a request saves by the shared prefix, and blocks that the prefix itself keeps.

    Only whole blocks are shared, in the unit in which all groups' blocks end together.
    """
    serving, spec = layout.serving, group.spec
    if not serving.prefix_caching or spec.kind == LayerKind.CROSS.value:
        return 0, 0
    usable = workload.shareable_tokens // layout.hash_block * layout.hash_block
    if not usable:
        return 0, 0
    if spec.is_state:
        return _shared_states(layout, usable, spec.block_size)
    shards = serving.length_shards if spec.splits_tokens else 1
    whole = usable // (spec.block_size * shards)
    if spec.window is None or spec.kind not in _PASSING:
        return whole, whole
    first_kept = max(0, workload.stored_tokens - spec.window + 1) // spec.block_size
    inside = max(0, whole - first_kept)
    return inside, inside


def _shared_states(layout: Layout, usable: int, block_size: int) -> tuple[int, int]:
    """A recurrent group keeps the state at the prefix's end; each request still has states of its own.

    In mode "all" every block's state is kept and shared.
    """
    serving = layout.serving
    if serving.mamba_cache_mode == "all" or serving.release < releases.STATE_CACHE_MODES:
        whole = usable // block_size
        return whole, whole
    return 0, 1


_PASSING = (LayerKind.SLIDING.value, LayerKind.CHUNKED.value)
