"""The status page as a browser shows it: in every state, on a phone, in both schemes, live and without script."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard.render.html import render_html
from tests.browser import Browser, browser
from tests.render.pages import PAGES
from tests.serve.driven import LOADING, READY
from tests.serve.process import served

SCHEMES = ("light", "dark")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each state's page as a saved file."""
    folder = tmp_path_factory.mktemp("pages")
    for name, verdict in PAGES.items():
        (folder / f"{name}.html").write_text(render_html(verdict), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_it_loads_nothing_and_keeps_its_own_policy(name: str, chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages[name])

    assert chromium.complaints() == []
    assert {url.partition(":")[0] for url in chromium.requests() - {pages[name]}} <= {"data"}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_on_a_phone(name: str, chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages[name], width=360)

    assert chromium.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PAGES)
def test_every_text_can_be_read(name: str, scheme: str, chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages[name], scheme=scheme)

    assert chromium.evaluate(CONTRAST) == []


def test_a_screen_reader_hears_the_verdict_first_and_every_drawing(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages["refused"])
    nodes = chromium.call("Accessibility.getFullAXTree")["nodes"]
    heard = [(node["role"]["value"], node["name"]["value"]) for node in nodes if node.get("name", {}).get("value")]

    headings = [name for role, name in heard if role == "heading"]
    assert headings[0].strip().startswith("Fail – The start failed: a context of 131,072 tokens was asked for")
    drawings = [name for role, name in heard if role in ("image", "img")]
    assert drawings == [
        "One request of 131,072 tokens must fit; 28,432 tokens hold 0.22 of it.",
        "weights 14.99 GiB; non-torch 0.12 GiB; activation peak 1.26 GiB; KV cache 3.47 GiB; outside the budget "
        "2.21 GiB",
    ]


def test_the_keyboard_reaches_everything_that_opens(chromium: Browser, pages: dict[str, str]) -> None:
    chromium.open(pages["workload"])
    reached = []
    for _ in range(2):
        chromium.press("Tab", 9)
        reached.append(chromium.evaluate("document.activeElement.parentElement.id"))

    assert reached == ["more-levers", "facts"]


def test_it_follows_a_start_without_a_reload_and_says_when_the_line_is_lost(chromium: Browser, tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_bytes(LOADING)
    with served("--log", str(log), "--min-concurrency", "2.5") as running:
        running.log_line(phase="profiling")
        chromium.open(f"http://127.0.0.1:{running.port}/")
        before = chromium.evaluate("document.getElementById('verdict').textContent")
        chromium.evaluate("document.getElementById('facts').open = true; window.never = 'reloaded'")

        with log.open("ab") as file:
            file.write(READY[len(LOADING) :])
        after = chromium.evaluate(until("document.getElementById('verdict').textContent", "'Pass'"))

        assert before.startswith("? Unknown")
        assert "Maximum concurrency at 4,096 tokens is 256 requests" in after
        assert chromium.evaluate("document.getElementById('announce').textContent") == after
        assert chromium.evaluate("window.never + document.getElementById('facts').open") == "reloadedtrue"
        assert chromium.complaints() == []

        running.end()
        chromium.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as if one came back to the tab
        lost = chromium.evaluate(until("document.getElementById('link').textContent", "'no answer since'"))

        assert lost.endswith("this is the last one")


def test_without_script_it_is_right_as_it_came(chromium: Browser, tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_bytes(READY)
    with served("--log", str(log), "--min-concurrency", "2.5") as running:
        running.log_line(phase="ready")
        chromium.open(f"http://127.0.0.1:{running.port}/", script=False)

        text = chromium.evaluate("document.body.innerText")

        assert "Pass" in text
        assert "reload it for news" in text


def until(expression: str, part: str) -> str:
    """A promise of the expression's value once it holds the part."""
    return (
        "new Promise((done) => { const look = () => { const found = "
        f"{expression}; if (found.includes({part})) {{ watching.disconnect(); done(found); }} }}; "
        "const watching = new MutationObserver(look); "
        "watching.observe(document, { childList: true, subtree: true, characterData: true }); look(); })"
    )
