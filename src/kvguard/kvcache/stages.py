"""Pipeline stages: which layers each holds, and what a block id costs there."""

from collections.abc import Sequence

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.groups import Group, Grouping, Placed, form_groups, stage_bytes
from kvguard.kvcache.pages import CacheSpec
from kvguard.kvcache.serving import Serving
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage: the part of each group that lies there, and bytes of one block id on one of its ranks.

    `specs` are its layers' caches before any grouping.
    """

    index: int
    groups: tuple[Group, ...]
    specs: tuple[CacheSpec, ...]
    bytes_per_block: int

    @property
    def layers(self) -> int:
        """Layers with a cache of their own."""
        return len(self.specs)


def split_stages(
    placed: Sequence[Placed], grouping: Grouping, decoder_layers: int, serving: Serving
) -> tuple[Stage, ...]:
    """Project the groups on each stage; before 0.11.0 each stage formed groups of its own layers.

    Raises:
        ConfigError: a stage without any cache, or (before 0.11.0) stages whose groups differ.
    """
    stages = []
    for index, held in enumerate(layer_ranges(decoder_layers, serving)):
        own = [(layer, spec) for layer, spec in placed if layer.index in held]
        if serving.engine == "v1" and serving.release < releases.GROUPS_FORMED_GLOBALLY:
            groups = form_groups(own, serving).groups
        else:
            groups = tuple(group.on(held, serving.release) for group in grouping.groups)
        if placed and not own:
            raise ConfigError(
                f"--pipeline-parallel-size {serving.pp}: stage {index} would hold no layer with a cache of its own, "
                "which vLLM refuses"
            )
        stages.append(Stage(index, groups, tuple(spec for _, spec in own), stage_bytes(groups)))
    _check_alike(stages, serving)
    return tuple(stages)


def _check_alike(stages: Sequence[Stage], serving: Serving) -> None:
    """Where each stage forms its own groups, they must agree one by one as far as both have them."""
    if serving.engine == "v0" or serving.release >= releases.GROUPS_FORMED_GLOBALLY:
        return
    kinds = [sorted((group.spec.kind, group.spec.block_size) for group in stage.groups) for stage in stages]
    if any(one != other for own in kinds[1:] for one, other in zip(kinds[0], own, strict=False)):
        raise ConfigError(f"--pipeline-parallel-size {serving.pp}: vLLM {serving.release} refuses stages so unlike")


def in_stage_order(placed: Sequence[Placed], decoder_layers: int, serving: Serving) -> Sequence[Placed]:
    """The layers as vLLM merges them: stage by stage, each in the order of registration."""
    ranges = layer_ranges(decoder_layers, serving)
    return [one for held in ranges for one in placed if one[0].index in held]


def layer_ranges(decoder_layers: int, serving: Serving) -> tuple[range, ...]:
    """Which decoder layers each stage holds: as partitioned, else evenly, the rest before the last stage.

    Raises:
        ConfigError: a partition that does not fit.
    """
    if serving.pp > decoder_layers:
        raise ConfigError(f"--pipeline-parallel-size {serving.pp}: more stages than the model has layers")
    counts = serving.pp_layer_partition or _even(decoder_layers, serving)
    if len(counts) != serving.pp or sum(counts) != decoder_layers:
        raise ConfigError(
            f"--pp-layer-partition {','.join(map(str, counts))}: {serving.pp} numbers that add up to "
            f"{decoder_layers} layers are needed"
        )
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))


def _even(decoder_layers: int, serving: Serving) -> tuple[int, ...]:
    """distributed/utils.py get_pp_indices: a remainder goes to the stages before the last, from behind; at first all of
    it went to the last.
    """
    counts = [decoder_layers // serving.pp] * serving.pp
    remainder = decoder_layers % serving.pp
    if serving.release < releases.REMAINDER_BEFORE_THE_LAST:
        counts[-1] += remainder
        return tuple(counts)
    for i in range(2, remainder + 2):
        counts[-i] += 1
    return tuple(counts)
