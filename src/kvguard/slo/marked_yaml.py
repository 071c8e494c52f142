"""YAML or JSON text to plain values, with the line of every key: what an error message needs to name its place."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

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
    mistakes: tuple[tuple[KeyPath, str], ...]
    """What YAML readers do not take alike: the key, and what is wrong, in words that its name stands before."""

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
    node = None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = load_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{name}:{line}: neither YAML nor JSON: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        node = None if isinstance(error, RecursionError) else node
        place = "".join(f":{line}" for line in islice(_misread(node, set()), 1))
        raise ConfigError(f"{name}{place}: neither YAML nor JSON: {str(error).splitlines()[0]}") from None
    keys = list(_keys(node, ()))
    repeated = ((path, "written twice") for path, count in Counter(path for path, _line in keys).items() if count > 1)
    return MarkedDocument(name, value, dict(keys), (*repeated, *_read_in_two_ways(node, (), set())))


def load_yaml(text: str) -> object:
    """The values of a YAML text.

    Raises:
        yaml.YAMLError, ValueError, RecursionError: it is none, or one of its values is not what its tag says.
    """
    try:
        return yaml.safe_load(text)
    except _SLIPS:
        raise yaml.YAMLError("a value is not what its tag (!!…) says") from None


_SLIPS = (AttributeError, LookupError, TypeError, OverflowError)
"""What PyYAML's constructors raise beside its own errors, as for `!!timestamp x`."""


def _misread(node: yaml.Node | None, seen: set[int]) -> Iterator[int]:
    """Lines of the values that cannot be read as what they are said to be."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        try:
            yaml.SafeLoader("").construct_object(node)
        except (*_SLIPS, ValueError, yaml.YAMLError):
            yield node.start_mark.line + 1
    for child in node.value if isinstance(node, yaml.CollectionNode) else ():
        for inner in child if isinstance(child, tuple) else (child,):
            yield from _misread(inner, seen)


def _keys(node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    """Every key of nested mappings; sequences and aliases lead to nothing that an SLO file knows."""
    if not isinstance(node, yaml.MappingNode) or len(path) > 2:
        return
    for key, value in node.value:
        inner = (*path, str(key.value))
        yield inner, key.start_mark.line + 1
        yield from _keys(value, inner)


def _read_in_two_ways(node: yaml.Node | None, path: KeyPath, seen: set[int]) -> Iterator[tuple[KeyPath, str]]:
    """Keys that two merged mappings bring, and numbers that mean one thing in YAML 1.1 and another in YAML 1.2."""
    if not isinstance(node, yaml.MappingNode) or len(path) > 2:
        return
    for name in _merged_twice(node):
        yield (*path, name), "merged from two mappings: write it beside them, where it counts"
    for key, value in node.value:
        inner = (*path, str(key.value))
        if isinstance(value, yaml.ScalarNode) and (other := _other_reading(value)) is not None:
            yield inner, other
        if key.tag != _MERGE:
            yield from _read_in_two_ways(value, inner, seen)
            continue
        for merged in _mappings(value):
            if id(merged) not in seen:  # a mapping may merge itself
                seen.add(id(merged))
                yield from _read_in_two_ways(merged, path, seen)


_MERGE = "tag:yaml.org,2002:merge"


def _merged_twice(node: yaml.MappingNode) -> list[str]:
    """Keys that several of the mappings merged into this one bring, but for those that it writes itself.

    Readers of YAML do not take the same one: the first by the specification, the last by some.
    """
    merged = {id(one): one for key, value in node.value if key.tag == _MERGE for one in _mappings(value)}
    known: dict[int, set[str]] = {}
    brought = Counter(name for one in merged.values() for name in _brought(one, known))
    own = {str(key.value) for key, _value in node.value}
    return [name for name, times in brought.items() if times > 1 and name not in own]


def _brought(node: yaml.MappingNode, known: dict[int, set[str]]) -> set[str]:
    """Every key of a mapping, those that are merged into it included."""
    if id(node) not in known:
        names = known[id(node)] = {str(key.value) for key, _value in node.value if key.tag != _MERGE}
        for key, value in node.value:
            if key.tag == _MERGE:
                names |= {name for one in _mappings(value) for name in _brought(one, known)}
    return known[id(node)]


def _mappings(node: yaml.Node) -> list[yaml.MappingNode]:
    """What a merge key merges: one mapping, or a list of them."""
    found = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [mapping for mapping in found if isinstance(mapping, yaml.MappingNode)]


def _other_reading(node: yaml.ScalarNode) -> str | None:
    """Why a plain number is not the same number to every reader of YAML; `None` where it is."""
    text = node.value.replace("_", "")
    if node.style is not None or not node.tag.endswith((":int", ":float")):
        return None
    if ":" in text:
        return f"{node.value} counts sixties in YAML 1.1 and is a text in YAML 1.2: write 90, or a time as 1m30s"
    if re.fullmatch("[-+]?0[0-7]+", text) and int(text, 8) != int(text):
        octal, decimal = int(text, 8), int(text)
        return f"{node.value} is {octal} in YAML 1.1 and {decimal} in YAML 1.2: write {octal} or {decimal}"
    return None
