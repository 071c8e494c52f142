"""The pages of the documentation: each can be found from its index, and every link in any page leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for folder in ("docs", "helm", "fixtures", "bench", "fuzz") for page in (ROOT / folder).rglob("*.md")),
    ]
)
LINK = re.compile(r"\]\((?![a-z]+:)(?P<target>[^)#\s]*)(?:#(?P<heading>[^)]*))?\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target = page.parent / link["target"] if link["target"] else page
        heading = link["heading"]
        if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            yield link[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    named = {link["target"] for link in LINK.finditer((docs / "README.md").read_text(encoding="utf-8"))}

    assert {page.name for page in docs.glob("*.md")} - {"README.md"} == named - {"runbooks"}
