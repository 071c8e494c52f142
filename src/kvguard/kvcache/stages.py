"""Pipeline stages: which layers each holds, and what a block id costs there."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.groups import Group, Grouping, Placed, form_groups, stage_bytes
from kvguard.kvcache.options import Serving


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage: the part of each group that lies there, and bytes of one block id on one of its ranks."""

    index: int
    groups: tuple[Group, ...]
    layers: int
    bytes_per_block: int


def split_stages(
    placed: Sequence[Placed], grouping: Grouping, decoder_layers: int, serving: Serving
) -> tuple[Stage, ...]:
    """Project the groups on each stage; before 0.11.0 each stage formed groups of its own layers."""
    stages = []
    for index, held in enumerate(layer_ranges(decoder_layers, serving)):
        if serving.engine == "v1" and serving.release < releases.GROUPS_FORMED_GLOBALLY:
            own = [(layer, spec) for layer, spec in placed if layer.index in held]
            groups = form_groups(own, serving).groups
        else:
            groups = tuple(group.on(held) for group in grouping.groups)
        layers = sum(len(group.layers) for group in groups)
        stages.append(Stage(index, groups, layers, stage_bytes(groups)))
    return tuple(stages)


def layer_ranges(decoder_layers: int, serving: Serving) -> tuple[range, ...]:
    """Which decoder layers each stage holds: as partitioned, else evenly, the rest before the last stage.

    Raises:
        ConfigError: a partition that does not fit.
    """
    counts = serving.pp_layer_partition or _even(decoder_layers, serving.pp)
    if len(counts) != serving.pp or sum(counts) != decoder_layers:
        raise ConfigError(
            f"--pp-layer-partition {','.join(map(str, counts))}: {serving.pp} numbers that add up to "
            f"{decoder_layers} layers are needed"
        )
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))


def _even(decoder_layers: int, stages: int) -> tuple[int, ...]:
    """distributed/utils.py get_pp_indices: a remainder goes to the stages before the last, from behind."""
    counts = [decoder_layers // stages] * stages
    for i in range(2, decoder_layers % stages + 2):
        counts[-i] += 1
    return tuple(counts)
