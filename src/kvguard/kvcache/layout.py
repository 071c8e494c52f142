"""The layout: a model under its flags, joined: groups, stages, block sizes, bytes."""

from math import lcm

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.block_sizes import block_sizes, cache_specs
from kvguard.kvcache.groups import Group, Grouping, form_groups
from kvguard.kvcache.layers import LayerKind, ModelLayers
from kvguard.kvcache.serving import Serving
from kvguard.kvcache.stages import Stage, in_stage_order, split_stages
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """How one deployment lays out its cache. Bytes are per rank; `bytes_per_block` is the widest stage's."""

    model: ModelLayers
    serving: Serving
    block_size: int
    grouping: Grouping
    stages: tuple[Stage, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, as the scheduler sees them: before 0.11.0 those that the first stage formed of its own layers."""
        alone = len(self.stages) == 1 or self.serving.release >= releases.GROUPS_FORMED_GLOBALLY
        return self.grouping.groups if alone or self.serving.engine == "v0" else self.stages[0].groups

    @property
    def bytes_per_block(self) -> int:
        """Bytes of one block id on the stage where it costs most."""
        return max((stage.bytes_per_block for stage in self.stages), default=0)

    @property
    def bytes_per_token(self) -> int | None:
        """Bytes a token on a rank; None where it is no constant (several groups, or states)."""
        if len(self.groups) != 1 or self.groups[0].spec.is_state or self.groups[0].spec.window is not None:
            return None
        return self.bytes_per_block // self.groups[0].spec.block_size

    @property
    def hash_block(self) -> int:
        """Tokens in which a shared prefix is counted: the least common multiple of the attention blocks."""
        shards = self.serving.length_shards
        sizes = [
            group.spec.block_size * (shards if group.spec.splits_tokens else 1)
            for group in self.groups
            if not group.spec.is_state and group.spec.kind != LayerKind.CROSS.value
        ]
        return lcm(*sizes) if sizes else 1


def lay_out(model: ModelLayers, serving: Serving) -> Layout:
    """Compute the layout.

    Raises:
        ConfigError: a combination that vLLM refuses, with the reason.
    """
    placed = in_stage_order(cache_specs(model, serving), model.decoder_layers, serving)
    _check_windows(model, serving)
    grouping = form_groups(placed, serving)
    stages = split_stages(placed, grouping, model.decoder_layers, serving)
    return Layout(model, serving, block_sizes(model, serving).attention, grouping, stages)


def _check_windows(model: ModelLayers, serving: Serving) -> None:
    if serving.dcp > 1 and any(layer.kind is LayerKind.SLIDING for layer in model.layers):
        raise ConfigError("--decode-context-parallel-size: sliding-window layers do not support it")
