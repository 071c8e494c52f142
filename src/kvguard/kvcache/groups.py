"""Groups: which layers share a block table, how many layers a block id stands for, and how many layers are padding.

After vLLM's v1/core/kv_cache_utils.py, release by release.
"""

from collections.abc import Callable, Sequence

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.layers import Layer
from kvguard.kvcache.pages import CacheSpec
from kvguard.kvcache.releases import Release
from kvguard.kvcache.serving import Serving
from kvguard.slotted import dataclass, replace

Placed = tuple[Layer, CacheSpec]


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share one block table. `specs` has one entry a layer; they differ only in a group of mixed pages.

    `charged_bytes` stands for the group's bytes where vLLM charges a stage for layers that it does not hold.
    """

    layers: tuple[Layer, ...]
    specs: tuple[CacheSpec, ...]
    mixed: bool = False
    charged_bytes: int | None = None

    @property
    def spec(self) -> CacheSpec:
        """What the group's blocks are counted by."""
        return self.specs[0]

    @property
    def bytes_per_block(self) -> int:
        """Bytes that one block id takes in this group's own layers."""
        return self.charged_bytes if self.charged_bytes is not None else sum(spec.page_bytes for spec in self.specs)

    def on(self, indices: range, release: Release) -> "Group":
        """The part of the group on one pipeline stage; keeps the spec even where no layer is left.

        Before 0.17 a stage is charged for all layers of a group of mixed pages (its spec was not projected).
        """
        kept = [(layer, spec) for layer, spec in zip(self.layers, self.specs, strict=True) if layer.index in indices]
        specs = tuple(spec for _, spec in kept)
        charged = self.bytes_per_block if self.mixed and release < releases.FIT_PER_STAGE else None
        return replace(
            self, layers=tuple(layer for layer, _ in kept), specs=specs or self.specs[:1], charged_bytes=charged
        )


@dataclass(frozen=True, slots=True)
class Bucket:
    """Equal layers before they are cut into groups; `padding` is what the last group lacks."""

    spec: CacheSpec
    groups: tuple[Group, ...]
    layers: int
    padding: int


@dataclass(frozen=True, slots=True)
class Grouping:
    """All groups of a model, bucket by bucket in the order of their first layers."""

    buckets: tuple[Bucket, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in vLLM's order."""
        return tuple(group for bucket in self.buckets for group in bucket.groups)

    @property
    def padding_layers(self) -> int:
        """Layers that exist only to make groups equal."""
        return sum(bucket.padding for bucket in self.buckets)

    @property
    def bytes_per_block(self) -> int:
        """Bytes of one block id with all layers on one rank: the widest group's."""
        return stage_bytes(self.groups)


def stage_bytes(groups: Sequence[Group]) -> int:
    """Bytes that one block id takes on a stage that holds these parts of the groups: the pool aliases the groups."""
    return max((group.bytes_per_block for group in groups if group.layers), default=0)


def form_groups(placed: Sequence[Placed], serving: Serving) -> Grouping:
    """Split layers into groups as this release does.

    Raises:
        ConfigError: a mixture that this release refuses.
    """
    if not placed:
        return Grouping(())
    if serving.engine == "v0":
        return Grouping((_one_group(placed),))
    if not serving.hybrid_manager:
        placed = _kept_in_full(placed, serving.release)
    if _uniform(placed, serving.release):
        return Grouping((_one_group(placed),))
    if not serving.hybrid_manager:
        raise ConfigError("without the hybrid KV-cache manager vLLM refuses this mixture of layers and block sizes")
    try:
        unified = _unify_pages(placed, serving.release)
    except ConfigError:
        fallback = _full_fallback(placed, serving.release)
        if fallback is None:
            raise
        return Grouping((_one_group(fallback),))
    return Grouping(_cut(_buckets(unified), serving.release))


def _one_group(placed: Sequence[Placed]) -> Bucket:
    specs = tuple(spec for _, spec in placed)
    mixed = len({spec.page_bytes for spec in specs}) > 1
    main = max(specs, key=lambda spec: spec.page_bytes) if mixed else specs[0]
    group = Group(tuple(layer for layer, _ in placed), specs, mixed)
    return Bucket(main, (group,), len(placed), 0)


def _uniform(placed: Sequence[Placed], release: Release) -> bool:
    """Whether all layers need the same blocks: alike, or (from 0.11.0) alike but for their pages."""
    first = placed[0][1]
    if len({spec.family for _, spec in placed}) > 1 or len({spec.block_size for _, spec in placed}) > 1:
        return False
    same_pages = len({spec.page_bytes for _, spec in placed}) == 1
    if release >= releases.MIXED_PAGES_IN_ONE_GROUP or same_pages:
        return first.family != "mamba" or same_pages
    raise ConfigError(
        f"vLLM {release} refuses layers with different page sizes; {releases.MIXED_PAGES_IN_ONE_GROUP} takes them"
    )


def _kept_in_full(placed: Sequence[Placed], release: Release) -> Sequence[Placed]:
    """Without the hybrid manager, sliding and chunked layers beside full ones keep every token.

    From 0.27 they take the full layers' block size too.
    """
    families = {spec.family for _, spec in placed}
    if "full" not in families or len(families) == 1:
        return placed
    block = next(spec.block_size for _, spec in placed if spec.family == "full")

    def promote(spec: CacheSpec) -> CacheSpec:
        if spec.family == "full" or spec.window is None:
            return spec
        same = spec.resized(block) if release >= releases.FULL_FALLBACK else _with_values_as_keys(spec, release)
        return replace(same, kind="full_attention", window=None, family="full", splits_tokens=True)

    return [(layer, promote(spec)) for layer, spec in placed]


def _with_values_as_keys(spec: CacheSpec, release: Release) -> CacheSpec:
    """0.20 alone counted values of their own size in sliding layers and forgot it where they keep every token."""
    _, size, size_v, _ = spec.shape
    if not releases.V_HEAD_SIZE_COUNTED_IN_WINDOWS <= release < releases.V_HEAD_SIZE_KEPT or size == size_v:
        return spec
    page = spec.page_bytes * 2 * int(size) // (int(size) + int(size_v))
    return replace(spec, page_bytes=page, raw_bytes=page, shape=(spec.shape[0], size, size, spec.shape[3]))


def _unify_pages(placed: Sequence[Placed], release: Release) -> Sequence[Placed]:
    """Give all layers one page size: by more tokens a block, else (later releases) by padding."""
    largest = max(spec.page_bytes for _, spec in placed)
    return [(layer, _unified(spec, largest, release)) for layer, spec in placed]


def _unified(spec: CacheSpec, largest: int, release: Release) -> CacheSpec:
    if spec.page_bytes == largest:
        return spec
    if release < releases.PAGES_UNIFIED:
        raise ConfigError(
            f"vLLM {release} refuses groups with different page sizes; {releases.PAGES_UNIFIED} unifies them"
        )
    if spec.is_state:
        if release < releases.STATE_PAGES_PADDED and largest % spec.page_bytes:
            raise ConfigError(f"vLLM {release} refuses a state page that does not divide {largest} bytes")
        return spec.padded(largest)
    if largest % spec.page_bytes == 0:
        return spec.resized(spec.block_size * (largest // spec.page_bytes))
    if release < releases.PAGES_PADDED or spec.is_latent:
        raise ConfigError(
            f"vLLM {release} refuses this mixture: a page of {spec.page_bytes} bytes does not divide one of {largest}"
        )
    return spec.padded(largest)


def _full_fallback(placed: Sequence[Placed], release: Release) -> Sequence[Placed] | None:
    """From 0.27: latents beside sliding layers whose pages cannot be unified all keep every token."""
    latent = any(spec.is_latent for _, spec in placed)
    sliding = any(spec.kind == "sliding_window" for _, spec in placed)
    if release < releases.FULL_FALLBACK or not (latent and sliding):
        return None
    kept = _kept_in_full(placed, release)
    return kept if _uniform(kept, release) else None


def _buckets(placed: Sequence[Placed]) -> list[list[Placed]]:
    found: dict[tuple[object, ...], list[Placed]] = {}
    for layer, spec in placed:
        key = (spec.kind, spec.block_size, spec.page_bytes, spec.window, spec.shape)
        found.setdefault(key, []).append((layer, spec))
    return list(found.values())


def _cut(buckets: list[list[Placed]], release: Release) -> tuple[Bucket, ...]:
    size = group_size([len(bucket) for bucket in buckets], release)
    return tuple(_bucket(bucket, size, release) for bucket in buckets)


def group_size(counts: Sequence[int], release: Release) -> int:
    """Layers of each group: the smallest bucket's, or the largest's where the two are close."""
    smallest, largest = min(counts), max(counts)
    if release >= releases.LARGEST_BUCKET_150:
        return largest if largest < smallest * 1.5 else smallest
    if release >= releases.LARGEST_BUCKET_125:
        return largest if largest < smallest * 1.25 else smallest
    return smallest


def _bucket(placed: list[Placed], size: int, release: Release) -> Bucket:
    count = -(-len(placed) // size)
    cut: Callable[[int], list[Placed]] = (
        (lambda i: placed[i::count])
        if release >= releases.GROUPS_FORMED_GLOBALLY
        else (lambda i: placed[i * size : (i + 1) * size])
    )
    groups = []
    for i in range(count):
        part = cut(i)
        groups.append(Group(tuple(layer for layer, _ in part), tuple(spec for _, spec in part)))
    return Bucket(placed[0][1], tuple(groups), len(placed), count * size - len(placed))
