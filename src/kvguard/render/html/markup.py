"""HTML that is escaped by construction: text becomes markup only through `element`, never by joining strings."""

import re
from collections.abc import Iterable
from html import escape

from kvguard.render.log_text import shown


class Markup(str):
    """HTML that is safe to stand where an element may; anything else is text and gets escaped."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
"""What an element may hold: markup, text, nothing, or several of them."""
Attribute = str | int | float | bool | None
"""`True` gives a bare attribute, `False` and `None` leave it out."""

_VOID = frozenset({"link", "meta"})
_EMPTY_DRAWN = frozenset({"rect", "line", "path"})
"""Elements of SVG that never hold text; unlike HTML's void ones they have to be closed."""


def element(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """One element; `class_` and `for_` name what Python reserves, `aria_label` stands for `aria-label`."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    if name in _EMPTY_DRAWN:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{fragment(*children)}</{name}>")


def fragment(*children: Child) -> Markup:
    """Several children without an element around them."""
    return Markup("".join(_written(child) for child in children))


_FLAG = re.compile(r"(--[a-z][a-z0-9-]*)")


def prose(text: str, name: str = "code") -> Markup:
    """Text in which each option is an element of its own, of one line: copied as it is typed, broken nowhere."""
    # masked as a whole: a secret is known by the option before it
    pieces = _FLAG.split(shown(text, 2000))
    return fragment(*(element(name, piece, class_="flag") if i % 2 else piece for i, piece in enumerate(pieces)))


def _written(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return escape(shown(str(child), 2000), quote=False)
    return fragment(*child)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else shown(str(value), 2000)
    return f' {name}="{escape(text, quote=True)}"'
