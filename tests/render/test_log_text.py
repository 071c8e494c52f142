"""What a log can hold never comes out: secrets are masked by form and by name, controls are taken out."""

import json
import time

import pytest

from kvguard.render.log_text import LONGEST, escape_unshown, masked, masked_deep, shown

HF = "hf_" + "a1B2" * 8


@pytest.mark.parametrize(
    "text, expected",
    [
        (f"HF_TOKEN={HF}", "HF_TOKEN=***"),
        (f"loading with {HF} now", "loading with *** now"),
        ("token sk-abcdefghijklmnop1234 rejected", "token *** rejected"),
        ("GET https://bob:hunter2@host/x", "GET https://***@host/x"),
        ("Authorization: Bearer abc.def-123456", "Authorization: ***"),
        ("header bearer abcdefgh12345678", "header bearer ***"),
        ("--api-key first second --port 8000", "--api-key *** --port 8000"),
        ("--api-key=first", "--api-key=***"),
        ("api_key=['first', 'second'], port=8000", "api_key=***, port=8000"),
        ("{'hf_token': 'abc', 'x': 1}", "{'hf_token': ***, 'x': 1}"),
        ("password='my pass word' next", "password=*** next"),
        ('{"password": "x y", "z": 1}', '{"password": ***, "z": 1}'),
        ("AWS AKIAIOSFODNN7EXAMPLE here", "AWS *** here"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=***"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_x", "jwt ***"),
    ],
)
def test_a_secret_is_masked_and_its_name_stays(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "GPU KV cache size: 28,432 tokens",
        "bytes per token: 131,072",
        "max_num_batched_tokens=8192, eos_token_id=2",
        "api_key=None, hf_token=None",
        "Maximum concurrency for 16384 tokens per request: 3.60x",
        "https://docs.vllm.ai/en/latest/configuration/conserving_memory.html",
        "key-value cache, secretary, passwords are checked",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_a_value_under_a_secrets_name_is_masked_whatever_it_looks_like() -> None:
    given = {"api_key": "plain", "nested": {"hf_token": "plain"}, "list": [HF], "max_tokens": 5, "token": None}

    expected = {"api_key": "***", "nested": {"hf_token": "***"}, "list": ["***"], "max_tokens": 5, "token": None}
    assert masked_deep(given) == expected


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


@pytest.mark.parametrize(
    "seed", ["eyJ-", "eyJaaaaaaaa.", "password", "token=", "a://", "--api-key ", "bearer ", "'", "["]
)
def test_masking_takes_a_bounded_time(seed: str) -> None:
    text = seed * (1_000_000 // len(seed))

    began = time.process_time()
    masked(text)

    assert time.process_time() - began < 1.0
