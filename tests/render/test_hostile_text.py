"""Text that tries to break out of its place, and secrets, through every format, read by somebody else's readers."""

import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from markdown_it import MarkdownIt

from kvguard.render.formats import RENDERERS, REPORT_RENDERERS
from kvguard.render.layout import Terminal
from kvguard.render.markdown import escape
from kvguard.slo.verdict import Outcome
from tests.render.verdicts import HOSTILE, SPITEFUL, VERDICTS, WEAK_ENGINE

SECRETS = ("hf_abcdefgh", "sk-abcdefgh", "hunter2")
PLAIN = Terminal()
PAGES = {
    **{form: render(HOSTILE, PLAIN) for form, render in RENDERERS.items()},
    **{f"inspect-{form}": render(HOSTILE, PLAIN) for form, render in REPORT_RENDERERS.items()},
    "text-in-color": RENDERERS["text"](HOSTILE, Terminal(color=True)),
    "text-in-ascii": RENDERERS["text"](HOSTILE, Terminal(unicode=False)),
    "text-narrow": RENDERERS["text"](HOSTILE, Terminal(width=40)),
}
OWN_COLOR = re.compile(r"\x1b\[(?:0|1|2|36|1;3[123])m")


@pytest.mark.parametrize("page", PAGES)
def test_no_secret_comes_out(page: str) -> None:
    assert [secret for secret in SECRETS if secret in PAGES[page]] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_control_character_comes_out(page: str) -> None:
    text = OWN_COLOR.sub("", PAGES[page])

    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} <= {"\n"}


@pytest.mark.parametrize("page", [page for page in PAGES if page != "github"])
def test_no_line_is_a_workflow_command(page: str) -> None:
    assert [line for line in PAGES[page].splitlines() if line.strip().startswith("::") or "##[" in line] == []


def test_a_line_that_begins_with_two_colons_is_made_inert() -> None:
    assert Terminal().finish(["  ::stop-commands::x", "a ::b"]) == "  : :stop-commands::x\na ::b\n"


def test_each_annotation_is_one_command_with_its_file_and_line() -> None:
    commands = [
        re.fullmatch(r"::(error|warning|notice) ((?:[a-z]+=[^,:]*,?)+)::(.*)", line)
        for line in PAGES["github"].splitlines()
    ]

    assert [command and command[1] for command in commands] == ["error", "warning"]
    assert commands[0] is not None
    assert dict(pair.split("=", 1) for pair in commands[0][2].split(",")) == {
        "file": "a%2Cb%3Ac�%25.log",
        "line": "3",
        "title": "kvguard%3A expect_kv_cache_dtype fail",
    }


def test_markdown_holds_nothing_active_but_its_own_table() -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(PAGES["markdown"])
    flat = [leaf for token in tokens for leaf in (token.children or [token])]

    own = {"<br>", "<details><summary>Where the GPU's memory went</summary>\n", "</details>\n"}
    assert {t.content for t in flat if t.type.startswith("html")} <= own
    assert [t for t in flat if t.type in ("link_open", "image", "code_block")] == []
    assert {t.content for t in flat if t.type == "code_inline"} == {"expect_kv_cache_dtype"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("max_model_len at 0.92", "max_model_len at 0.92"),
        ("_x_ *y* `z`", "&#95;x&#95; &#42;y&#42; &#96;z&#96;"),
        ("# heading", "&#35; heading"),
        ("- item", "&#45; item"),
        ("1. item", "&#49;. item"),
        ("29) item", "&#50;9) item"),
        ("---", "&#45;--"),
        ("- - -", "&#45; - -"),
        ("1.80", "1.80"),
        ("--max-model-len 11763", "--max-model-len 11763"),
        ("see #12 and @me", "see &#35;12 and &#64;me"),
        ("http://x www.x.y", "http&#58;//x www&#46;x.y"),
        (":tada: node-1.log:81", "&#58;tada: node-1.log:81"),
    ],
)
def test_markdown_text_reads_the_same_and_does_nothing(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_junit_is_read_by_another_reader(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(RENDERERS["junit"](WEAK_ENGINE, PLAIN), encoding="utf-8")

    suite = next(iter(JUnitXml.fromfile(str(path))))
    results = {case.name: [type(result) for result in case.result] for case in suite}

    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (7, 3, 2, 1)
    assert results == {
        "start": [],
        "min_concurrency": [Failure],
        "concurrent_requests": [Error],
        "max_waiting_requests": [Failure],
        "max_kv_cache_usage": [Skipped],
        "max_drop": [Error],
        "restart-loop": [Failure],
    }


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_that_is_no_pass_is_no_green_suite(name: str) -> None:
    root = ElementTree.fromstring(RENDERERS["junit"](VERDICTS[name], PLAIN))

    red = root.findall(".//failure") + root.findall(".//error")
    assert bool(red) == (VERDICTS[name].outcome is not Outcome.PASS)


def test_junit_keeps_the_text_as_text() -> None:
    root = ElementTree.fromstring(PAGES["junit"])

    message = root.findall(".//failure")[1].attrib["message"]
    assert "<script>alert(1)</script> & ]]>" in message
    assert SPITEFUL not in message
