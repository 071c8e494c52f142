"""Readers: one a family of architectures, from its config.json to the layers that keep something.

A reader is a function `(ModelConfig, Shards) -> tuple[Layer, ...]`; `architectures.py` says which architecture
is read by which. What a reader does not know it refuses by name.
"""

from collections.abc import Callable

from kvguard.kvcache.layers import Layer
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.releases import Release
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Shards:
    """What of the deployment decides the shape of a recurrent state, and which release's rules hold.

    `gdn_exports`: Gated DeltaNet's prefill kernel is one that can export a state from inside a prefill.
    """

    tp: int
    speculative_tokens: int
    release: Release
    gdn_exports: bool = True


Reader = Callable[[ModelConfig, Shards], tuple[Layer, ...]]
