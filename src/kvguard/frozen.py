"""Frozen dataclasses whose methods are written when the first instance is made: a short command makes few kinds.

The standard library writes and compiles six methods a class as it is defined, and for a hundred classes that takes
longer than reading a start-up log. What these classes are and can do is the same, `fields` and `replace` included.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["dataclass"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen, slots, kw_only=False):
        """`dataclasses.dataclass` of a frozen class with slots."""
        assert frozen, slots

        def made(cls):
            for name, method in _METHODS.items():
                if name not in cls.__dict__:
                    setattr(cls, name, method)
            plain = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)
            return plain(cls)

        return made


def _first_init(self: object, *values: object, **named: object) -> None:
    written = _written_init(type(self))
    setattr(type(self), "__init__", written)  # noqa: B010  # in place of this one, which no type checker lets be assigned
    written(self, *values, **named)


def _written_init(kind: type) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_unset": dataclasses.MISSING}
    parameters: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(kind):
        name, value, default = field.name, field.name, ""
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            default, value = "=_unset", f"_make_{name}() if {name} is _unset else {name}"
        (by_name if field.kw_only else parameters).append(name + default)
        body.append(f"    _set(self, {name!r}, {value})\n")
    if by_name:
        by_name.insert(0, "*")
    exec(f"def __init__({', '.join(['self', *parameters, *by_name])}):\n{''.join(body) or '    pass'}", scope)
    written: Callable[..., None] = scope["__init__"]
    return written


def _values(self: object) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in _names(self))


def _names(self: object) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self))
    return f"{type(self).__qualname__}({shown})"


def _equal(self: object, other: object) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _set_state(self: object, state: list[object]) -> None:
    for name, value in zip(_names(self), state, strict=True):
        object.__setattr__(self, name, value)


_METHODS = {
    "__init__": _first_init,
    "__repr__": _repr,
    "__eq__": _equal,
    "__hash__": lambda self: hash(_values(self)),
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": lambda self: list(_values(self)),
    "__setstate__": _set_state,
}
