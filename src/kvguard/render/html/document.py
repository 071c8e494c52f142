"""The document around the page: one file that loads nothing, its style, its script and its policy in it."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from kvguard.render.html.markup import Markup, element, fragment

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect x='1' y='3' width='14' height='10' rx='2' fill='none' stroke='%23808890' stroke-width='1.5'/%3E"
    "%3Crect x='3' y='5' width='{width}' height='6' rx='1' fill='%23{color}'/%3E%3C/svg%3E"
)
_ICONS = {
    "pass": ICON.format(width=10, color="12805c"),
    "fail": ICON.format(width=3, color="c6362f"),
    "unknown": ICON.format(width=6, color="8a6a00"),
}
"""A tank that is full, nearly empty or in between, so that a row of tabs tells the states apart."""


def document(title: str, state: str, body: Markup) -> str:
    """The whole page as one self-contained text; `state` is the outcome that its icon shows."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", title),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="referrer", content="no-referrer"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{content_security_policy(framed=None)}">'),
        Markup(f'<link rel="icon" href="{_ICONS.get(state, _ICONS["unknown"])}">'),
        Markup(f"<style>{_asset('page.css')}</style>"),
    )
    script = Markup(f"<script>{_asset('live.js')}</script>")
    body = fragment(_hatches(), body)
    whole = element("html", head, element("body", fragment(body, script)), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _hatches() -> Markup:
    """The patterns that drawings fill with, for what is not settled, not named, or not whole."""
    patterns = [
        element(
            "pattern",
            element("rect", width=8, height=8),
            element("path", d="M0 8L8 0M-2 2L2 -2M6 10L10 6"),
            id=name,
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for name in ("hatch", "partial", "maybe")
    ]
    return element("svg", element("defs", patterns), class_="hatches", aria_hidden="true")


@cache
def content_security_policy(framed: str | None = "'none'") -> str:
    """What the page may do: its own style, its own script, and asking the server that it came from; nothing else.

    Args:
        framed: who may show it in a frame; a `meta` element can't say that, so there it is left out.
    """
    rules = [
        "default-src 'none'",
        f"style-src '{_hash('page.css')}'",
        f"script-src '{_hash('live.js')}'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*rules, f"frame-ancestors {framed}"] if framed else rules)


def _hash(name: str) -> str:
    return "sha256-" + b64encode(sha256(_asset(name).encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return files("kvguard.render.html").joinpath(name).read_text(encoding="utf-8")
