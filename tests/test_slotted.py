"""The quick dataclasses are what the standard library's are."""

import copy
import dataclasses
import pickle

import pytest

from kvguard.events import Origin, ServerAnnounced
from kvguard.slotted import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """A class with every kind of field."""

    line: int
    name: str = "log"
    seen: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Place):
    """One that adds to another, by name only."""

    exact: bool = False


def test_it_is_made_compared_and_shown_like_any_dataclass() -> None:
    assert Place(3) == Place(line=3, name="log", seen=[])
    assert Place(3) != Place(4)
    assert Place(3) != Named(3)
    assert repr(Named(3, exact=True)) == "Named(line=3, name='log', seen=[], exact=True)"
    assert hash(Origin(line=1)) == hash(Origin(line=1))


def test_each_instance_has_its_own_made_default() -> None:
    assert Place(1).seen is not Place(1).seen


def test_the_standard_library_knows_it() -> None:
    assert [one.name for one in dataclasses.fields(Named)] == ["line", "name", "seen", "exact"]
    assert dataclasses.replace(Named(3), exact=True) == Named(3, exact=True)
    assert dataclasses.asdict(Place(3)) == {"line": 3, "name": "log", "seen": []}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_it_is_copied_and_stored(again: object) -> None:
    assert again(Named(3, "a", [1], exact=True)) == Named(3, "a", [1], exact=True)  # type: ignore[operator]


def test_it_is_frozen_and_has_slots() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="line"):
        Place(3).line = 4  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="line"):
        del Place(3).line
    assert not hasattr(Place(3), "__dict__")


def test_a_missing_or_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="line"):
        Place()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        Place(3, colour=1)  # type: ignore[call-arg]


def test_a_class_of_the_core_is_one() -> None:
    assert [one.name for one in dataclasses.fields(ServerAnnounced)][:2] == ["format", "origin"]


def test_a_printer_is_told_that_the_repr_is_made_by_the_dataclass() -> None:
    assert Origin.__dataclass_params__.repr is True  # type: ignore[attr-defined]
