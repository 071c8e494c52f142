"""Secrets are masked by their form and by their names; what is none stays as it is."""

import time

import pytest

from kvguard.lines.secrets import MAX_TEXT, mask, mask_deep, redact

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
        ("use github_pat_" + "a" * 22 + "_" + "b" * 59, "use ***"),
        ("use ya29." + "a" * 32, "use ***"),
        ("use sk_live_" + "x" * 30, "use ***"),
        ("pwd=foo123", "pwd=***"),
        ("AWS AKIAIOSFODNN7EXAMPLE here", "AWS *** here"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=***"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_x", "jwt ***"),
    ],
)
def test_a_secret_is_masked_and_its_name_stays(text: str, expected: str) -> None:
    assert mask(text) == expected


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
    assert mask(text) == text


def test_a_value_under_a_secrets_name_is_masked_whatever_it_looks_like() -> None:
    given = {"api_key": "plain", "nested": {"hf_token": "plain"}, "list": [HF], "max_tokens": 5, "token": None}

    expected = {"api_key": "***", "nested": {"hf_token": "***"}, "list": ["***"], "max_tokens": 5, "token": None}
    assert mask_deep(given) == expected


@pytest.mark.parametrize(
    "seed", ["eyJ-", "eyJaaaaaaaa.", "password", "token=", "a://", "--api-key ", "bearer ", "'", "["]
)
def test_masking_takes_a_bounded_time(seed: str) -> None:
    text = seed * (1_000_000 // len(seed))

    began = time.process_time()
    mask(text)

    assert time.process_time() - began < 1.0


def test_a_repeated_line_is_one_line_of_bounded_length() -> None:
    assert redact(f"a\tb\nc\x1b[0m {HF}") == "a b c [0m ***"
    assert redact("x" * 5000) == "x" * (MAX_TEXT - 1) + "…"
