"""Slotted dataclasses without generated code: a short command pays for no module and no method that it does not use.

The standard library loads a tokenizer of Python and compiles six functions a class: for the hundred classes of a check
that takes longer than reading a start-up log. What these classes are and can do is the same, and `dataclasses` knows
them: its own `fields`, `replace` and `asdict` take them as well.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, replace
else:

    def dataclass(*, slots, frozen=False, kw_only=False):
        """`dataclasses.dataclass` of a class with slots."""
        assert slots

        def made(cls):
            content = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
            inherited = getattr(cls, "__slotted__", {})
            own = {name: content.pop(name, _MISSING) for name in cls.__annotations__}
            every = content["__slotted__"] = inherited | own
            content["__names__"] = every.keys()
            content["__slots__"] = tuple([name for name in own if name not in inherited])
            content["__match_args__"] = getattr(cls, "__match_args__", ()) + (() if kw_only else content["__slots__"])
            content["__defaults__"] = {name: default for name, default in every.items() if default is not _MISSING}
            content["__made__"] = [name for name, default in every.items() if isinstance(default, _Made)]
            content["__dataclass_fields__"] = _ForTheStandardLibrary()
            content["__dataclass_params__"] = _Parameters
            methods = _METHODS | (_FROZEN if frozen else {"__hash__": None})
            return type(cls)(cls.__name__, cls.__bases__, methods | content)

        return made

    def field(*, default_factory):
        """A default that is made anew for each instance."""
        return _Made(default_factory)

    def fields(kind):
        """The fields of a class or of an instance, those of its bases first; each has a `name` and a `default`."""
        return tuple(_Field(*one) for one in kind.__slotted__.items())

    def replace(old, **changes):
        """The same, with other values in some fields."""
        return type(old)(**{name: getattr(old, name) for name in old.__names__} | changes)


__all__ = ["dataclass", "field", "fields", "replace"]

_MISSING = object()


class _Made:
    __slots__ = ("make",)

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


class _Field:
    __slots__ = ("default", "name")

    def __init__(self, name: str, default: object) -> None:
        self.name = name
        self.default = default


class _Parameters:
    """What printers ask of a dataclass: whether its `__repr__` is the one that was made for it."""

    repr = True


class _ForTheStandardLibrary:
    """What `dataclasses` looks for in a class, written when it does."""

    def __get__(self, instance: object, owner: Any) -> dict[str, Any]:
        import dataclasses

        described: list[tuple[str, type, Any]] = []
        for name, default in owner.__slotted__.items():
            settings: dict[str, Any] = {"kw_only": name not in owner.__match_args__}
            if isinstance(default, _Made):
                settings["default_factory"] = default.make
            elif default is not _MISSING:
                settings["default"] = default
            described.append((name, object, dataclasses.field(**settings)))
        found: dict[str, Any] = vars(dataclasses.make_dataclass(owner.__name__, described))["__dataclass_fields__"]
        owner.__dataclass_fields__ = found
        return found


def _init(self: Any, *values: object, **named: object) -> None:
    given = {**self.__defaults__, **named}
    if values:
        by_place = dict(zip(self.__match_args__, values, strict=False))
        if len(by_place) < len(values) or not by_place.keys().isdisjoint(named):
            raise TypeError(f"{type(self).__qualname__} has fewer fields to fill by place, or a field is given twice")
        given.update(by_place)
    for name in self.__made__:
        if isinstance(given[name], _Made):
            given[name] = given[name].make()
    if given.keys() != self.__names__:
        wrong = ", ".join(map(repr, sorted(given.keys() ^ self.__names__)))
        raise TypeError(f"{type(self).__qualname__} misses, or has no field {wrong}")
    for name, value in given.items():
        object.__setattr__(self, name, value)


def _values(self: Any) -> tuple[object, ...]:
    return tuple([getattr(self, name) for name in self.__names__])


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(self.__names__, _values(self), strict=True))
    return f"{type(self).__qualname__}({shown})"


def _equal(self: object, other: object) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _refuse_to_set(self: object, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _set_state(self: Any, state: list[object]) -> None:
    for name, value in zip(self.__names__, state, strict=True):
        object.__setattr__(self, name, value)


_METHODS = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _equal,
    "__getstate__": lambda self: list(_values(self)),
    "__setstate__": _set_state,
}
_FROZEN = {
    "__hash__": lambda self: hash(_values(self)),
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
}
