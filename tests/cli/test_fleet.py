"""`kvguard fleet` against a real Prometheus: which replica stands where, what is odd about it, and the exit status."""

import json

import pytest

from kvguard.cli import exit_status, main
from tests.conftest import FIXTURES
from tests.live_prometheus import Target, scraping, serving

GOOD = {"tokens": 100000, "concurrency": 6.1, "verdict": "pass", "version": "0.32.0"}


def page(tokens=None, concurrency=None, verdict="unknown", version="", model="acme/osprey", warning=None, ratio=None):
    """What the sidecar exposes of one server, as far as the fleet reads it."""
    lines = [f'kvguard_verdict{{kvguard_verdict="{state}"}} {int(state == verdict)}' for state in OUTCOMES]
    lines.append(f'kvguard_vllm_info{{model="{model}",served_model_name="",version="{version}"}} 1')
    lines += [f'kvguard_warning{{code="{code}"}} {int(code == warning)}' for code in ("restart-loop", "thin-margin")]
    if tokens is not None:
        lines.append(f'kvguard_kv_cache_tokens{{engine="0"}} {tokens}')
    if concurrency is not None:
        lines.append(f'kvguard_max_concurrency{{engine="0"}} {concurrency}')
    if ratio is not None:
        lines.append(f"kvguard_baseline_ratio {ratio}")
    return "\n".join(lines) + "\n"


OUTCOMES = ("pass", "fail", "unknown")


def guard(pod, text, namespace="llm", **labels):
    return Target("guard", {"namespace": namespace, "pod": pod, **labels}, text)


FLEET = (
    guard("osprey-a", page(**GOOD, ratio=1.0)),
    guard("osprey-b", page(**GOOD, ratio=0.99)),
    guard("osprey-c", page(**{**GOOD, "tokens": 60000}, ratio=0.6)),
    guard("osprey-d", page(**{**GOOD, "version": "0.33.0"})),
    guard("osprey-e", page(**{**GOOD, "verdict": "fail"}, warning="restart-loop")),
    guard("osprey-f", page()),
    guard("outside", page(9000, 1.5, "pass", "0.20.2", "wren"), namespace="lab", kvguard_reads="wren-0"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with scraping(FLEET, tmp_path_factory.mktemp("fleet")) as prometheus:
        prometheus.wait_for("kvguard_vllm_info", len(FLEET))
        yield prometheus


def test_the_odd_ones_come_first_each_with_what_is_odd(server, capsys):
    assert main(["fleet", "--prometheus", server.url, "--format", "json"]) == exit_status.MISSED
    replicas = json.loads(capsys.readouterr().out)["replicas"]
    assert [(one["replica"], one["outcome"], one["oddities"]) for one in replicas] == [
        ("llm/osprey-e", "fail", ["restart loop"]),
        ("llm/osprey-f", "unknown", []),
        ("llm/osprey-c", "pass", ["60% of its peers", "below its baseline"]),
        ("llm/osprey-d", "pass", ["not 0.32.0 as the others"]),
        ("lab/wren-0", "pass", []),
        ("llm/osprey-a", "pass", []),
        ("llm/osprey-b", "pass", []),
    ]
    odd = replicas[2]
    assert (odd["kv_cache_tokens"], odd["max_concurrency"], odd["baseline_ratio"]) == (60000, 6.1, 0.6)
    assert (odd["model"], odd["vllm_version"], odd["peer_ratio"]) == ("acme/osprey", "0.32.0", 0.6)
    assert replicas[1]["kv_cache_tokens"] is None


def test_the_table_can_be_read_and_is_summed_up(server, capsys):
    main(["fleet", "--prometheus", server.url])
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[0].split()) == "replica model vLLM KV cache concurrency SLO baseline what is odd"
    assert " ".join(lines[1].split()) == "llm/osprey-e acme/osprey 0.32.0 100,000 tokens 6.10x fail – restart loop"
    assert " ".join(lines[2].split()) == "llm/osprey-f acme/osprey – – – unknown –"
    assert lines[-3:] == [
        "acme/osprey: 5 replicas with 460,000 tokens of KV cache; the weakest, llm/osprey-c, 60,000",
        "wren: 1 replica with 9,000 tokens of KV cache",
        "7 replicas: 5 pass, 1 fail, 1 unknown",
    ]


@pytest.mark.parametrize(
    "selector,status",
    [
        ('pod=~"osprey-[ab]"', exit_status.MET),
        ('pod=~"osprey-[ae]"', exit_status.MISSED),
        ('pod=~"osprey-[af]"', exit_status.UNKNOWN),
        ('pod=~"osprey-[ef]"', exit_status.MISSED),
        ('namespace="nobody"', exit_status.UNKNOWN),
    ],
)
def test_the_status_is_the_worst_replicas(server, selector, status):
    assert main(["fleet", "--prometheus", server.url, "--selector", selector]) == status


def test_a_selector_that_is_none_is_told_in_prometheus_own_words(server, capsys):
    assert main(["fleet", "--prometheus", server.url, "--selector", "pod=osprey"]) == exit_status.USAGE
    assert "refused the query: " in capsys.readouterr().err


def test_a_server_that_is_not_there_is_one_line_without_its_password(capsys):
    assert main(["fleet", "--prometheus", "http://user:hunter2@127.0.0.1:9"]) == exit_status.USAGE
    error = capsys.readouterr().err
    assert error.startswith("kvguard: http://127.0.0.1:9: no answer (")
    assert error.count("\n") == 1
    assert "hunter2" not in error


def test_a_server_that_is_something_else_is_one_line(capsys):
    with serving(["hello"]) as port:
        assert main(["fleet", "--prometheus", f"http://127.0.0.1:{port}"]) == exit_status.USAGE
    assert "no Prometheus API: give the server's base URL" in capsys.readouterr().err


def test_the_page_on_kubernetes_shows_this_very_table(server, capsys):
    main(["fleet", "--prometheus", server.url])
    shown = "".join(f"    {line}\n" if line else "\n" for line in capsys.readouterr().out.splitlines())
    assert shown in (FIXTURES.parent / "docs/kubernetes.md").read_text()
