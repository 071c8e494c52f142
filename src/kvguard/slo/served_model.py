"""The config of the model that is served, as a value: equal configs are one, so that their arithmetic is done once."""

import json
from collections.abc import Mapping
from functools import lru_cache

from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.layers import ModelLayers
from kvguard.kvcache.model_config import ModelConfig, parse_model_config
from kvguard.kvcache.options import Options
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model by its config's text; called with serving flags it gives the layers."""

    text: str

    @classmethod
    def of(cls, config: Mapping[str, object]) -> "ServedModel":
        """The model of that config."""
        return cls(json.dumps(config, sort_keys=True))

    @property
    def config(self) -> ModelConfig:
        """The parsed config."""
        return _parsed(self.text)

    def __call__(self, options: Options) -> ModelLayers:
        """The layers under those flags.

        Raises:
            ConfigError: an architecture or a key that is not known.
        """
        return read_model(self.config, options)


@lru_cache(maxsize=8)
def _parsed(text: str) -> ModelConfig:
    return parse_model_config(text, "the model config")
