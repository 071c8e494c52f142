"""What `kvguard plan` reads: the model config by file, folder, stdin or name, and a checkpoint's size in its folder."""

import json
import struct
from pathlib import Path

from kvguard.cli.standard_streams import take
from kvguard.errors import ConfigError, SourceError
from kvguard.kvcache.model_config import ModelConfig, parse_model_config
from kvguard.kvcache.models import named_config, unknown_model
from kvguard.slotted import dataclass
from kvguard.sources.documents import read_json, read_text

_LONGEST_HEADER = 100 << 20


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A model's config, its name for people, and its checkpoint's bytes (all ranks together) where they are at hand."""

    config: ModelConfig
    name: str
    checkpoint_bytes: int | None


def read_model_input(argument: str) -> ModelInput:
    """Read CONFIG: a config.json, a model folder, "-", or the name of a public model.

    Raises:
        ConfigError: neither a file nor a known name, or no model config.
        SourceError: it cannot be read.
    """
    if argument == "-":
        return ModelInput(parse_model_config(take(), "stdin"), "stdin", None)
    path = Path(argument)
    if path.is_dir():
        text = read_text(path / "config.json")
        return ModelInput(parse_model_config(text, str(path / "config.json")), path.name, _checkpoint_bytes(path))
    if path.exists():
        text = read_text(path)
        if not text.lstrip().startswith("{"):
            raise ConfigError(f"{argument}: not a model's config.json, which is JSON; a log goes behind --from-log")
        return ModelInput(parse_model_config(text, argument), argument, None)
    named = named_config(argument)
    if named is None:
        raise ConfigError(unknown_model(argument))
    return ModelInput(named, argument, None)


def _checkpoint_bytes(folder: Path) -> int | None:
    """Bytes of all tensors: from the index, else from the safetensors headers."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        metadata = read_json(index).get("metadata")
        total = metadata.get("total_size") if isinstance(metadata, dict) else None
        if isinstance(total, int | float) and total > 0:
            return int(total)
    files = sorted(folder.glob("*.safetensors"))
    return sum(_tensor_bytes(file) for file in files) if files else None


def _tensor_bytes(file: Path) -> int:
    """Bytes of one file's tensors: an eight-byte length, then JSON with each tensor's place."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _LONGEST_HEADER:
                raise SourceError(f"{file}: not a safetensors file: its header claims {length} bytes")
            header = json.loads(stream.read(length))
        places = [place["data_offsets"] for name, place in header.items() if name != "__metadata__"]
        return sum(int(end) - int(start) for start, end in places)
    except (OSError, struct.error, ValueError, RecursionError) as error:
        raise SourceError(f"{file}: not a safetensors file: {error}") from None
    except (AttributeError, KeyError, TypeError):
        raise SourceError(f"{file}: not a safetensors file: its header names no places of tensors") from None
