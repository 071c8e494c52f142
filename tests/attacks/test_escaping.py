"""Text of a log stays text, wherever it is shown: no face gives it a tag, a command, an escape or a line of its own."""

import json
import unicodedata
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.attacks.faces import reports, served
from tests.attacks.secrets_in_logs import PLACES

SPITEFUL = (
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> ' onmouseover=alert(1)",
    "]]> <!-- --> &#0; <!DOCTYPE x [<!ENTITY a 'b'>]>",
    "::error file=x::y",
    "##[set-output name=x] ##vso[task.setvariable] ##teamcity[x]",
    "%0A::stop-commands::x%0D",
    "\x1b]0;title\x07 \x1b[2J \x1b]8;;http://x\x1b\\ \x9b31m \x08\x08",
    "\u202eevil\u2066 \u200b \ufeff \u2028 \u2029 \x85 \x0b \x0c \x00",
    "](javascript:alert(1)) ![x](http://x) | a | b | `x` **y** @me #1",
    '"} 1\nkvguard_slo_met 1\n# HELP x',
    "{{7*7}} ${jndi:ldap://x} $(id) `id` ; rm -rf /",
)


class Tags(HTMLParser):
    """The tags of a page and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attrs)}


def faces(place: str, text: str) -> Iterator[tuple[str, str]]:
    log = "".join(f"{line}\n" for line in PLACES[place](text)).encode("utf-8", "surrogatepass")
    yield from reports(log)
    yield from served(log)


@cache
def tags_of_harmless_pages() -> frozenset[str]:
    pages = (page for place in PLACES for text in ("short", "long " * 99) for _, page in faces(place, text))
    return frozenset().union(*(Tags(page).found for page in pages if page.startswith("<!doctype html>")))


@pytest.mark.parametrize("place", PLACES)
def test_text_stays_text(place: str) -> None:
    for text in SPITEFUL:
        for face, page in faces(place, text):
            assert controls(page) <= {"\n"}, (face, text)
            if "github" not in face:
                assert not any(line.lstrip().startswith("::") for line in page.splitlines()), (face, text)
            assert "##[" not in page, (face, text)
            if page.startswith("<!doctype html>"):
                assert Tags(page).found <= tags_of_harmless_pages(), (face, text)
            elif page.startswith("<?xml"):
                ElementTree.fromstring(page)
            elif page.startswith("{"):
                json.loads(page)
            elif face == "serve, /metrics":
                names = {family.name for family in text_string_to_metric_families(page)}
                assert all(name.startswith("kvguard_") for name in names)


def controls(page: str) -> set[str]:
    return {character for character in page if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
