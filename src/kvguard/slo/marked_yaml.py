"""YAML or JSON text to plain values, with the line of every key: what an error message needs to name its place."""

from collections import Counter
from collections.abc import Iterator, Mapping

import yaml

from kvguard.errors import ConfigError
from kvguard.slotted import dataclass

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """The values of a document, and where each key stands."""

    name: str
    value: object
    lines: Mapping[KeyPath, int]
    """Line of each mapping's key, from 1, by the keys that lead to it; the last one of a repeated key."""
    repeated: tuple[KeyPath, ...]
    """Keys written twice in one mapping, which YAML readers would silently take the last of."""

    def at(self, path: KeyPath) -> str:
        """`name:line` of that key, or of the nearest one around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines.get(path, 1)}"


def read_marked(text: str, name: str) -> MarkedDocument:
    """Read a document of either kind; every YAML reader reads JSON, but for its tabs.

    Raises:
        ConfigError: it is neither; the message names the line.
    """
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{name}:{line}: neither YAML nor JSON: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: neither YAML nor JSON: {str(error).splitlines()[0]}") from None
    keys = list(_keys(node, ()))
    repeated = (path for path, count in Counter(path for path, _line in keys).items() if count > 1)
    return MarkedDocument(name, value, dict(keys), tuple(repeated))


def _keys(node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    """Every key of nested mappings; sequences and aliases lead to nothing that an SLO file knows."""
    if not isinstance(node, yaml.MappingNode) or len(path) > 2:
        return
    for key, value in node.value:
        inner = (*path, str(key.value))
        yield inner, key.start_mark.line + 1
        yield from _keys(value, inner)
