"""Text of a log as it is shown: controls are taken out, its length is bounded, and secrets are masked first."""

import json

import pytest

from kvguard.render.log_text import LONGEST, escape_unshown, shown

HF = "hf_" + "a1B2" * 8


@pytest.mark.parametrize(
    "text, expected",
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\nc\td", "a�b�c d"),
        ("\x9b31m", "�31m"),
        ("exe.\u202egnp", "exe.�gnp"),
        ("\x1b", "�"),
        ("\x1b[", "�["),
        ("\ud800", "�"),
        ("##[error]x ##vso[task] ##teamcity[x] ## heading", "# #[error]x # #vso[task] # #teamcity[x] ## heading"),
        ("中文模型-7B", "中文模型-7B"),
    ],
)
def test_no_character_that_a_terminal_obeys_passes(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_a_text_is_cut_behind_its_masks() -> None:
    text = "x" * (LONGEST - 10) + " " + HF

    assert shown(text) == "x" * (LONGEST - 10) + " ***"
    assert shown("x" * 5000) == "x" * (LONGEST - 1) + "…"


def test_json_text_has_no_raw_control_and_reads_the_same() -> None:
    value = {"a": "\u202e \x9b \u2028 \x1b \ud800 é ×"}

    text = escape_unshown(json.dumps(value, ensure_ascii=False, indent=1))

    assert json.loads(text) == value
    assert text == '{\n "a": "\\u202e \\u009b \\u2028 \\u001b \\ud800 é ×"\n}'
