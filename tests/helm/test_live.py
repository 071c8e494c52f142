"""A real Prometheus with the chart's rules, fed by real sidecars and a real vLLM's metrics, answers every panel."""

import json
import re
import shutil

import pytest

from kvguard.cli import main
from kvguard.serve.metric_rows import METRIC_ROWS
from tests.conftest import FIXTURES
from tests.helm.conftest import CHART
from tests.helm.test_dashboard import TARGETS, filled
from tests.helm.test_rules import FILES, RULES
from tests.live_prometheus import Target, scraping
from tests.serve.driven import READY
from tests.serve.process import served

BASE = FIXTURES / "logs/runs/vllm-0.32.0-cpu-base"
SLO = {
    "version": 1,
    "objectives": {"min_concurrency": 2.5},
    "workload": {"prompt_tokens": 1000, "output_tokens": 200, "concurrent_requests": 4, "layers": "uniform"},
    "regression": {"baseline": "baseline.json"},
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Two sidecars (a server that got ready, and a refused start on a GPU), and the metrics of the first one's vLLM."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "vllm.log").write_bytes(READY)
    (folder / "slo.yaml").write_text(json.dumps(SLO))
    assert main(["baseline", str(folder / "vllm.log"), "-o", str(folder / "baseline.json")]) == 0
    refused = folder / "refused.log"
    shutil.copy(FIXTURES / "logs/story/l4-default-context.log", refused)
    with (
        served("--log", str(folder / "vllm.log"), "--slo", str(folder / "slo.yaml")) as good,
        served("--log", str(refused), "--min-concurrency", "2.5") as bad,
    ):
        targets = [
            Target("guard", {"namespace": "llm", "pod": "a"}, address=f"127.0.0.1:{good.port}"),
            Target("guard", {"namespace": "llm", "pod": "b"}, address=f"127.0.0.1:{bad.port}"),
            Target("vllm", {"namespace": "llm", "pod": "a"}, (BASE / "metrics.txt").read_text()),
        ]
        with scraping(targets, folder, FILES) as server:
            server.wait_for('kvguard_verdict{kvguard_verdict!="unknown"} == 1', 2)
            server.wait_for("model:kvguard_headroom_requests:sum")
            server.wait_for("rate(kvguard_log_bytes_total[5m])", 2)
            server.wait_for("rate(vllm:num_preemptions_total[5m])")  # a rate needs two scrapes of each target
            yield server


def test_every_panel_has_an_answer(prometheus):
    assert [name for name, target in TARGETS if not prometheus.query(filled(target["expr"]))] == []


def test_every_recording_rule_has_a_result(prometheus):
    assert [rule["record"] for rule in RULES if "record" in rule and not prometheus.query(rule["record"])] == []


def test_a_refused_start_raises_its_alert_and_a_good_one_does_not(prometheus):
    prometheus.wait_for('ALERTS{alertname="KvguardCapacityBelowSLO"}')
    assert {one["metric"]["pod"] for one in prometheus.query('ALERTS{alertname=~"Kvguard.*"}')} == {"b"}


def test_headroom_is_what_fits_less_what_runs_and_waits(prometheus):
    (headroom,) = prometheus.query("model:kvguard_headroom_requests:sum")
    (fits,) = prometheus.query("model:kvguard_capacity_requests:sum")
    (demand,) = prometheus.query("model:vllm_requests:sum")
    assert float(headroom["value"][1]) == float(fits["value"][1]) - float(demand["value"][1])
    assert float(fits["value"][1]) > 256  # the workload is shorter than the context of which 256 fit


def test_the_fleet_command_reads_the_same_server(prometheus, capsys):
    assert main(["fleet", "--prometheus", prometheus.url, "--format", "json"]) == 1
    replicas = json.loads(capsys.readouterr().out)["replicas"]
    assert [(one["replica"], one["outcome"]) for one in replicas] == [("llm/b", "fail"), ("llm/a", "pass")]
    assert (replicas[1]["kv_cache_tokens"], replicas[1]["baseline_ratio"]) == (1048576, 1.0)


def test_rules_and_panels_ask_for_no_metric_of_kvguard_that_there_is_not():
    exposed = {row.exposed for row in METRIC_ROWS}
    text = "".join(file.read_text() for file in FILES) + (CHART / "dashboards/kvguard.json").read_text()
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    for name in recorded:
        text = text.replace(name, "")
    assert set(re.findall(r"\bkvguard_[a-z_]+", text)) - exposed - {"kvguard_startup_phase", "kvguard_verdict"} == set()
