"""A model's config.json as the readers ask it: the right section, every spelling of a key, a named refusal."""

import json
from collections.abc import Mapping
from typing import Any

from kvguard.errors import ConfigError
from kvguard.kvcache.class_defaults import class_defaults
from kvguard.slotted import dataclass, replace

_TEXT_SECTIONS = ("text_config", "language_config", "llm_config", "thinker_config", "language_model_config")
"""Where multi-modal configs keep the language model; the first that is an object with layers is taken."""

_DTYPE_KEYS = ("dtype", "torch_dtype")
_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A parsed config.json: `whole` as written, `text` the decoder's keys, with its class's where the file is silent.

    `nested`: the decoder has a section of its own, inside a multi-modal model's config.
    """

    whole: Mapping[str, Any]
    text: Mapping[str, Any]
    nested: bool

    @property
    def architecture(self) -> str:
        """The first architecture named."""
        names = self.whole.get("architectures") or self.text.get("architectures")
        if not isinstance(names, list) or not names:
            raise ConfigError('the model config has no "architectures": name the model class as vLLM knows it')
        return str(names[0])

    @property
    def model_type(self) -> str:
        """The decoder's model type, or the whole model's."""
        return str(self.text.get("model_type") or self.whole.get("model_type") or "")

    def get(self, *names: str) -> Any:
        """The first of these keys that is there and not null; None else."""
        return next((self.text[name] for name in names if self.text.get(name) is not None), None)

    def need(self, *names: str) -> Any:
        """The first of these keys.

        Raises:
            ConfigError: none is there; the architecture and the key are named.
        """
        value = self.get(*names)
        if value is None:
            spelt = " or ".join(f'"{name}"' for name in names)
            raise ConfigError(f"{self.architecture}: the model config has no {spelt}, and its layers depend on it")
        return value

    def integer(self, *names: str, least: int = 0) -> int:
        """The first of these keys as a whole number.

        Raises:
            ConfigError: missing, no number, below `least`, or beyond any model's size.
        """
        value = self.need(*names)
        number = not isinstance(value, bool) and isinstance(value, int | float)
        if not number or not least <= value <= _LARGEST or value != int(value):
            name = next(name for name in names if self.text.get(name) is not None)
            wanted = f"a whole number from {least} on"
            raise ConfigError(f'{self.architecture}: "{name}" of the model config is {value!r}, not {wanted}')
        return int(value)

    def optional(self, default: int, *names: str, least: int = 0) -> int:
        """As `integer`, with a default where none of the keys is there."""
        return default if self.get(*names) is None else self.integer(*names, least=least)

    def listed(self, *names: str, of: type = int, length: int = 0) -> list[Any]:
        """The first of these keys as a list of numbers, of words or of objects.

        Raises:
            ConfigError: missing, no such list, or shorter than `length`.
        """
        value = self.need(*names)
        right = isinstance(value, list) and all(isinstance(item, of) for item in value)
        if not right or len(value) < length:
            kind = {int: "numbers", str: "words"}.get(of, "objects")
            raise ConfigError(f'{self.architecture}: "{names[0]}" is no list of {max(length, 1)} {kind} or more')
        return list(value)

    def section(self, name: str, where: Any = None) -> "ModelConfig":
        """An object inside, to be asked in the same way.

        Args:
            name: its key, for the error.
            where: the object, where it is not the value of that key itself.

        Raises:
            ConfigError: no object.
        """
        value = self.need(name) if where is None else where
        if not isinstance(value, Mapping):
            raise ConfigError(f'{self.architecture}: "{name}" of the model config is {value!r}, not an object')
        return replace(self, text=value)

    @property
    def dtype(self) -> str:
        """The checkpoint's dtype; "float32" where the config names none, as vLLM assumes."""
        sections = (self.whole, self.text)
        for section in sections:
            for name in _DTYPE_KEYS:
                if section.get(name):
                    return str(section[name]).removeprefix("torch.")
        return "float32"


def parse_model_config(text: str, source: str) -> ModelConfig:
    """Read a config.json.

    Args:
        text: the file's content.
        source: its name, for the error.

    Raises:
        ConfigError: no JSON object.
    """
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}: not a model config: {error.msg} at line {error.lineno}") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"{source}: not a model config: a number too long, or nested too deeply") from None
    if not isinstance(whole, dict):
        raise ConfigError(f"{source}: not a model config: a JSON object is expected, as a model's config.json")
    return model_config(whole)


def model_config(whole: Mapping[str, Any]) -> ModelConfig:
    """The same from a parsed object."""
    section = _text_section(whole)
    nested = section is not whole
    model_type = section.get("model_type") or whole.get("model_type") or ""
    return ModelConfig(whole=whole, text={**class_defaults(str(model_type), nested), **section}, nested=nested)


def _text_section(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in _TEXT_SECTIONS:
        section = whole.get(name)
        if isinstance(section, Mapping):
            return {**_shared(whole), **_text_section(section)}
    return whole


def _shared(whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keys of the outer object that the decoder inherits: old checkpoints write them once, outside."""
    return {name: whole[name] for name in ("architectures", *_DTYPE_KEYS) if name in whole}
