"""The status page as a document: sound, sealed, escaped, to scale, and complete for every state."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from kvguard.render.html import Live, render_html, render_html_report
from kvguard.render.html.document import content_security_policy
from kvguard.render.html.evidence import _value
from kvguard.render.html.markup import Markup, element, fragment, prose
from kvguard.slo.verdict import Reason
from kvguard.slotted import replace
from kvguard.startup.report import MEMORY_BYTES, MEMORY_SHARES, Memory, Phase
from tests.render.pages import PAGES
from tests.render.verdicts import VERDICTS

VOID = {"link", "meta"}
ALL = {**PAGES, **VERDICTS}


class Tree(HTMLParser):
    """Elements in order with their attributes and the text right inside them; strict about what is left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(name: str) -> str:
    return render_html(ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_every_element_is_closed_and_every_id_is_its_own(name: str) -> None:
    tree = Tree(page(name))
    ids = [attributes["id"] for _, attributes in tree.elements if "id" in attributes]

    assert tree.open == []
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_loaded_and_nothing_acts_but_its_own_script(name: str) -> None:
    tree = Tree(page(name))
    addresses = {attributes.get(key) or "" for _, attributes in tree.elements for key in ("src", "href", "action")}
    attributes = {key for _, found in tree.elements for key in found}

    assert {address for address in addresses if not address.startswith("data:image/svg+xml")} == {""}
    assert {key for key in attributes if key.startswith("on") or key == "style"} == set()
    assert len(tree.all("script")) == len(tree.all("style")) == 1
    assert {"iframe", "object", "form", "base"} & {tag for tag, _ in tree.elements} == set()


@pytest.mark.parametrize("name", ALL)
def test_every_drawing_says_what_it_shows_and_every_section_has_a_name(name: str) -> None:
    tree = Tree(page(name))
    ids = {attributes.get("id") for _, attributes in tree.elements}

    for drawing in tree.all("svg"):
        if "bar" in (drawing.get("class") or ""):
            assert (drawing.get("role"), "aria-label" in drawing) == ("img", True) or drawing["aria-hidden"] == "true"
    assert {section["aria-labelledby"] for section in tree.all("section")} <= ids


def test_the_policy_allows_exactly_the_style_and_the_script_of_the_page() -> None:
    text = page("refused")

    for kind in ("style", "script"):
        inside = re.search(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert inside is not None
        digest = b64encode(sha256(inside[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in content_security_policy()
    assert f'content="{content_security_policy(framed=None)}"' in text


@pytest.mark.parametrize(
    "name, word", [("starting", "Unknown"), ("pass", "Pass"), ("refused", "Fail"), ("empty", "Unknown")]
)
def test_the_verdict_is_a_word_in_title_and_headline(name: str, word: str) -> None:
    tree = Tree(page(name))

    assert ("title", next(text for tag, text in tree.texts if tag == "title")) in tree.texts
    assert next(text for tag, text in tree.texts if tag == "title").startswith(word)
    assert any(word in text for _, text in tree.texts)


def widths(text: str) -> list[float]:
    """The widths of the stretches of the first bar, in percent."""
    bar = text[text.index('class="bar"') :]
    bar = bar[: bar.index("</div>")] if "</div>" in bar else bar
    return [float(width) for width in re.findall(r'<svg x="[\d.]+%" y="\d+" width="([\d.]+)%"', bar)]


def section(text: str, name: str) -> str:
    begin = text.index(f'aria-labelledby="{name}"')
    return text[begin : text.index("</section>", begin)]


def test_the_memory_is_drawn_to_scale() -> None:
    drawn = widths(section(page("refused"), "memory"))

    # 14.99, 0.12, 1.26, 3.47 GiB, and what lies outside the budget, of 22.05 GiB
    assert drawn == pytest.approx([67.98, 0.54, 5.71, 15.74, 10.02], abs=0.03)


def test_each_request_that_fits_is_a_box() -> None:
    drawn = widths(section(page("pass"), "pool"))

    assert len(drawn) == 4
    assert drawn[3] / drawn[0] == pytest.approx(0.6, abs=0.01)


def test_what_is_asked_for_and_does_not_fit_is_drawn() -> None:
    text = section(page("fail"), "pool")

    assert text.count('class="request"') == 1
    assert text.count('class="partial"') == 1
    assert text.count('class="missing"') == 2


def test_engines_share_one_scale() -> None:
    text = section(page("weak-engine"), "pool")
    strong, weak, _workload = (widths('class="bar"' + part) for part in text.split('class="bar"')[1:])

    assert strong[0] == weak[0]


def test_a_pool_of_hundreds_is_one_box() -> None:
    assert section(page("two-engines"), "pool").count('class="request"') == 2


def test_the_lines_that_prove_it_are_quoted() -> None:
    text = section(page("pass"), "evidence")

    assert "Maximum concurrency for 16384 tokens per request: 3.60x" in text
    assert "# cuda blocks: 3686, # CPU blocks: 4096" in text


def test_a_failure_is_quoted_first() -> None:
    quotes = re.findall(r"<code>(.*?)</code>", section(page("two-starts"), "evidence"))

    assert quotes[1].startswith("ValueError: To serve at least one request")


@pytest.mark.parametrize("name", ALL)
def test_no_text_of_a_log_becomes_an_element(name: str) -> None:
    assert "alert(1)</script>" not in page(name)
    assert "javascript:" not in [value for _, attributes in Tree(page(name)).elements for value in attributes.values()]


LIVE = Live(
    gate_open=False,
    gate_why="",
    source="reading /var/log/vllm/vllm.log",
    source_fine=True,
    as_of="2026-11-29T03:12:09Z",
    slo_problem="slo.yaml:1: objectives.min_concurency: no such key",
    revision="7",
)


def test_a_running_sidecar_adds_gate_source_and_links() -> None:
    text = render_html(PAGES["refused"], LIVE)

    for part in (
        "<b>Gate closed: /readyz answers 503</b>",
        "reading /var/log/vllm/vllm.log",
        "objectives.min_concurency: no such key",
        'data-revision="7"',
        'href="v1/report"',
    ):
        assert part in text


def test_a_start_under_way_is_asked_for_more_often_than_a_settled_one() -> None:
    assert 'data-every="2"' in render_html(PAGES["starting"], LIVE)
    assert 'data-every="5"' in render_html(PAGES["pass"], LIVE)


def test_a_report_that_nobody_judged_shows_no_verdict() -> None:
    text = render_html_report(PAGES["pass"].report)

    assert "What the log says of this start." in text
    assert "asked for" not in text


def test_text_is_escaped_and_markup_is_not_escaped_twice() -> None:
    inner = element("b", "<&>")

    assert inner == "<b>&lt;&amp;&gt;</b>"
    assert element("p", inner, " ", None, [1, "x"]) == "<p><b>&lt;&amp;&gt;</b> 1x</p>"
    assert element("a", "x", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;">x</a>'
    assert isinstance(fragment("<"), Markup)


def test_an_option_is_of_one_piece_and_its_secret_no_less_masked() -> None:
    told = prose("<b> lower --max-model-len, not --api-key sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaa")

    assert told == (
        '&lt;b&gt; lower <code class="flag">--max-model-len</code>, not <code class="flag">--api-key</code> ***'
    )


def test_our_own_name_is_written_small_where_a_sentence_begins_with_it() -> None:
    reason = Reason("ready_within", "ready after 51 s; 10 s are allowed", None, "kvguard inspect LOG shows why")

    assert "Do this: </b>kvguard inspect LOG" in render_html(replace(VERDICTS["refused"], reasons=(reason,)))


@pytest.mark.parametrize("phase, word, icon", [(Phase.STOPPED, "fail", "c6362f"), (Phase.READY, "unknown", "8a6a00")])
def test_a_gate_that_is_closed_after_a_pass_gives_the_page_its_colour(phase: Phase, word: str, icon: str) -> None:
    start = VERDICTS["passed"].report.start
    assert start is not None
    verdict = replace(VERDICTS["passed"], report=replace(VERDICTS["passed"].report, start=replace(start, phase=phase)))
    live = Live(False, "the server has ended: its next start is judged anew", "reading", True, "now", None, "1")
    page = render_html(verdict, live)

    assert f'class="hero {word}"' in page
    assert page.index("The server has ended: its next start is judged anew.") < page.index(
        verdict.reasons[0].message[1:]
    )
    assert icon in page
    assert "<title>Closed · " in page
    assert 'class="hero pass"' in render_html(verdict, replace(live, gate_open=True))


def test_a_share_of_the_memory_is_no_size() -> None:
    start = VERDICTS["passed"].report.start
    assert start is not None
    names = (*MEMORY_SHARES, *MEMORY_BYTES)
    memory = Memory(**dict.fromkeys(MEMORY_SHARES, 0.94), **dict.fromkeys(MEMORY_BYTES, 2**30))
    told = {name: _value(replace(start, memory=memory), f"memory.{name}") for name in names}

    assert told == {name: "94 %" if name in MEMORY_SHARES else "1.00 GiB" for name in names}
