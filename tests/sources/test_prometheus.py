"""Baselines from Prometheus: the query's spelling, what a real server answers, and every way that it can fail."""

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from threading import Event

import pytest

from kvguard.cli import main
from kvguard.cli.exit_status import MET, MISSED, USAGE
from kvguard.errors import ConfigError
from kvguard.slo.baselines.baseline import Figure
from kvguard.sources.prometheus import Query, baseline_of_query, parse_query
from kvguard.sources.prometheus_query import Sample
from kvguard.startup.report import TokenFigure

# --- the query --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("http://p:9090", Query("http://p:9090", "", "1h")),
        ("http://p:9090/?namespace=prod&range=1d", Query("http://p:9090", '{namespace="prod"}', "1d")),
        (
            "http://p:9090?range=30m&namespace=prod&pod=~vllm-.*",
            Query("http://p:9090", '{namespace="prod",pod=~"vllm-.*"}', "30m"),
        ),
        ('http://p:9090?range=2h&query={a="b",c=~"d&e"}', Query("http://p:9090", '{a="b",c=~"d&e"}', "2h")),
        (
            "http://p:9090?query=min(kvguard_kv_cache_tokens)",
            Query("http://p:9090", "", "1h", "min(kvguard_kv_cache_tokens)"),
        ),
        ('http://p:9090?pod=a"b', Query("http://p:9090", '{pod="a\\"b"}', "1h")),
    ],
)
def test_labels_a_range_and_promql_are_read(text: str, expected: Query) -> None:
    assert parse_query(text) == expected


@pytest.mark.parametrize("text", ["p:9090", "", "http://p?range=soon", "http://p?bad-label=x"])
def test_a_wrong_query_is_told_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_query(text)
    assert "\n" not in str(error.value)


def test_a_password_is_never_named() -> None:
    assert "secret" not in parse_query("http://user:secret@p:9090?pod=a").name


# --- a real server ----------------------------------------------------------------------------------------------------

GAUGES = """\
kvguard_kv_cache_tokens{engine="0",namespace="prod",pod="a"}
kvguard_kv_cache_tokens{engine="1",namespace="prod",pod="a"}
kvguard_max_concurrency{engine="0",namespace="prod",pod="a"}
kvguard_max_model_len_tokens{namespace="prod",pod="a"}
kvguard_vllm_info{model="meta-llama/Llama-3.1-8B-Instruct",version="0.8.1",kv_cache_dtype="auto",tensor_parallel_size="1",quantization="",namespace="prod",pod="a"}
kvguard_max_model_len_tokens{namespace="test",pod="b"}
kvguard_kv_cache_tokens{engine="0",namespace="test",pod="b"}
""".splitlines()
VALUES = [[29_488, 29_472, 29_488], [30_000, 30_000, 30_000], [1.8] * 3, [16_384] * 3, [1] * 3, [8_192] * 3, [64] * 3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Debian's Prometheus over a minute of gauges, as a fleet's sidecars would have left them."""
    for program in ("prometheus", "promtool"):
        assert shutil.which(program), f"{program} is missing: apt-get install prometheus"
    folder = tmp_path_factory.mktemp("prometheus")
    now = time.time()
    samples = [
        f"{series} {value} {now - 90 + 30 * step:.3f}"
        for series, values in zip(GAUGES, VALUES, strict=True)
        for step, value in enumerate(values)
    ]
    families = dict.fromkeys(series.partition("{")[0] for series in GAUGES)
    lines = []
    for family in families:
        lines += [f"# TYPE {family} gauge", *(line for line in samples if line.startswith(family + "{"))]
    (folder / "gauges.om").write_text("\n".join([*lines, "# EOF"]) + "\n")
    (folder / "prometheus.yml").write_text("global: {}\n")
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "gauges.om", "data"]
    subprocess.run(blocks, cwd=folder, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, cwd=folder, stderr=log, stdout=log) as process:
        try:
            _wait_until_ready(f"http://{address}/-/ready", process)
            yield f"http://{address}"
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    pause, deadline = Event(), time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            pause.wait(0.05)
    raise AssertionError("Prometheus did not start")


def test_what_production_holds_now_is_the_smallest_over_range_and_series(server: str) -> None:
    kept = baseline_of_query(f"{server}?namespace=prod&range=10m")
    assert kept.weakest["kv_cache_tokens"] == Figure(29_472, 30_000)
    assert kept.weakest["max_concurrency"] == Figure(1.8, 1.8)
    assert (kept.vllm_version, kept.token_figure) == ("0.8.1", TokenFigure.POOL)
    assert kept.options == {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "kv_cache_dtype": "auto",
        "tensor_parallel_size": 1,
        "max_model_len": 16_384,
    }


def test_a_query_over_one_gauge_gives_that_figure(server: str) -> None:
    expression = 'min(min_over_time(kvguard_kv_cache_tokens{namespace="prod"}[10m]))'
    assert baseline_of_query(f"{server}?query={expression}").weakest == {"kv_cache_tokens": Figure(29_472, 29_472)}


def test_a_check_holds_a_log_against_production(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = "fixtures/logs/story/16k-bf16-cache.log"
    production = f"prometheus:{server}?namespace=prod&range=10m"
    twice = f"prometheus:{server}?query=min(kvguard_kv_cache_tokens{{namespace='prod'}})*2"
    assert main(["check", log, "--baseline", production]) == MET
    assert main(["check", log, "--baseline", twice]) == MISSED
    assert main(["diff", production, log]) == MET
    assert "now     fixtures/logs/story/16k-bf16-cache.log (vLLM 0.8.1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "query, told",
    [
        ("?namespace=nowhere", "no series matches"),
        ("?range=10m", "several max_model_len"),
        ("?query=up", "a query must be over one gauge of"),
        ("?query=kvguard_kv_cache_tokens[5m]", "the query gives a matrix"),
        ("?query=min(kvguard_kv_cache_tokens", "refused the query"),
    ],
)
def test_a_query_that_says_nothing_is_told_in_one_line(
    server: str, query: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["check", "fixtures/logs/story/16k-bf16-cache.log", "--baseline", f"prometheus:{server}{query}"]) == USAGE
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


# --- answers of a test's own ------------------------------------------------------------------------------------------


def test_two_versions_in_production_leave_the_token_figure_open() -> None:
    def ask(server: str, query: str) -> list[Sample]:
        versions = ("0.20.0", "0.21.0") if "vllm_info" in query else ("",)
        return [Sample({"version": version}, 16_384.0) for version in versions]

    kept = baseline_of_query("http://p:9090?pod=a", ask)
    assert (kept.vllm_version, kept.token_figure) == (None, None)


def test_several_models_are_not_one_deployment() -> None:
    def ask(server: str, query: str) -> list[Sample]:
        return [Sample({"version": "0.20.0", "model": model}, 16_384.0) for model in ("a", "b")]

    with pytest.raises(ConfigError, match=r"series of several models match \(a, b\)"):
        baseline_of_query("http://p:9090?pod=a", ask)
