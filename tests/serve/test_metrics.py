"""The metrics: against every run's report, against promtool and the OpenMetrics parser, and against their page."""

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from kvguard.serve.metric_rows import METRIC_ROWS
from kvguard.serve.metrics import exposition
from kvguard.slo.objectives import Severity
from kvguard.sources.documents import read_slo
from kvguard.sources.source import State
from tests.conftest import FIXTURES, Golden
from tests.serve.driven import LOADING, NOON, READY, RUNS, Driven, run, slo

PROMTOOL = "promtool is missing: apt-get install -y prometheus"
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(driven: Driven, accept: str = "") -> tuple[str, str]:
    body, content_type = exposition(lambda: driven.snapshot)(accept)
    return body.decode(), content_type


def samples(driven: Driven) -> Samples:
    return {
        (sample.name.removeprefix("kvguard_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_families(scrape(driven)[0])
        for sample in family.samples
    }


def of_engine(name: str, engine: str = "0") -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, (("engine", engine),)


@pytest.fixture(scope="module")
def ready() -> Driven:
    return Driven(slo(min_concurrency=300, expect_kv_cache_dtype="auto", max_waiting_requests=10)).read(READY)


def test_the_capacity_is_what_vllm_printed(ready: Driven) -> None:
    found = samples(ready)

    assert found[of_engine("kv_cache_tokens")] == 1_048_576
    assert found[of_engine("kv_cache_bytes")] == 2**30
    assert found[of_engine("max_concurrency")] == 256.0
    assert found["max_model_len_tokens", ()] == 4096
    assert found["engines_reported", ()] == found["engines_expected", ()] == 1


def test_the_workload_is_the_whole_servers_and_the_baseline_ratio_what_is_left(tmp_path: Path) -> None:
    """Two engines of 256 requests of 4,096 tokens, against one start that held four times as much in each."""
    log = (RUNS / "vllm-0.32.0-cpu-dp2/server.log").read_bytes()
    larger = log.replace(b"1,048,576 tokens", b"4,194,304 tokens").replace(b"256.00x", b"1024.00x")
    (tmp_path / "larger.log").write_bytes(larger)
    (tmp_path / "slo.yaml").write_text(
        "workload: {prompt_tokens: 4000, output_tokens: 96, concurrent_requests: 4, layers: uniform}\n"
        "regression: {baseline: larger.log, max_drop: 5%}\n"
    )
    found = samples(Driven(read_slo(tmp_path / "slo.yaml")).read(log))

    assert found["workload_concurrency", ()] == 510
    assert found["baseline_ratio", ()] == 0.25


def test_a_fact_that_is_not_known_has_no_series(ready: Driven) -> None:
    assert [
        name for name, _ in samples(ready) if name.startswith(("weights", "gpu_blocks", "workload", "baseline"))
    ] == []


def test_the_verdict_is_a_state_set_that_is_always_there(ready: Driven) -> None:
    def states(driven: Driven) -> dict[str, float]:
        return {labels[0][1]: value for (name, labels), value in samples(driven).items() if name == "verdict"}

    assert states(ready) == {"pass": 0, "fail": 1, "unknown": 0}
    assert states(Driven()) == {"pass": 0, "fail": 0, "unknown": 1}


def test_met_is_absent_while_unknown(ready: Driven) -> None:
    assert samples(ready)["slo_met", ()] == 0
    assert ("slo_met", ()) not in samples(Driven().read(LOADING))


def test_objectives_have_outcome_target_and_ratio_where_they_are_known(ready: Driven) -> None:
    found = {
        (name, labels[0][1]): value for (name, labels), value in samples(ready).items() if name.startswith("objective_")
    }

    assert found == {
        ("objective_met", "min_concurrency"): 0,
        ("objective_met", "expect_kv_cache_dtype"): 1,
        ("objective_target", "min_concurrency"): 300,
        ("objective_target", "max_waiting_requests"): 10,
        ("objective_ratio", "min_concurrency"): pytest.approx(256 / 300),
    }


def test_counters_stand_at_zero_before_anything_was_read() -> None:
    found = samples(Driven())
    counters = ("starts", "log_bytes", "log_lines", "log_lines_matched", "log_lines_unrecognized")
    counters += ("log_rotations", "log_truncations", "log_read_errors")

    assert {name: found[f"{name}_total", ()] for name in counters} == dict.fromkeys(counters, 0)


def test_every_warning_code_has_a_series(ready: Driven) -> None:
    codes = {labels[0][1]: value for (name, labels), value in samples(ready).items() if name == "warning"}

    assert set(codes.values()) <= {0, 1}
    assert {"context-auto-reduced", "restart-loop"} <= set(codes)


def test_an_ignored_warning_is_not_raised() -> None:
    asked = slo(min_concurrency=2.5)
    driven = Driven(asked).read((RUNS / "vllm-0.32.0-cpu-auto-maxlen-reduced/server.log").read_bytes())
    code = ("warning", (("code", "context-auto-reduced"),))
    before = samples(driven)[code]

    driven.judge_by(type(asked)(asked.objectives, severities={"context-auto-reduced": Severity.IGNORE}))

    assert (before, samples(driven)[code]) == (1, 0)


def test_the_log_is_fresh_while_it_can_be_looked_at(ready: Driven) -> None:
    assert samples(ready)["log_last_read_timestamp_seconds", ()] == NOON


def test_a_failing_source_shows(ready: Driven) -> None:
    driven = Driven().change(State.FAILING, "vllm.log: permission denied")

    assert samples(driven)["log_source_state", (("kvguard_log_source_state", "failing"),)] == 1


def test_openmetrics_is_given_where_it_is_asked_for_and_parses(ready: Driven) -> None:
    body, content_type = scrape(ready, OPENMETRICS)

    families = {family.name: family.type for family in openmetrics_families(body)}
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert families["kvguard_verdict"] == "stateset"
    assert families["kvguard_vllm"] == "info"
    assert families["kvguard_starts"] == "counter"


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "\x00", "application/json;q=x"])
def test_plain_text_is_given_to_everybody_else(accept: str, ready: Driven) -> None:
    assert scrape(ready, accept)[1] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize(
    "version",
    ["zzz", "3", "9.9.9.9.9", "", "-1", "1.0.0\xff", "99999999999999999999", "1.0.0\tx", "1.0.0 x=y", '"1.0.0"'],
)
def test_a_version_that_nobody_knows_does_no_harm(version: str, ready: Driven) -> None:
    for kind in ("application/openmetrics-text", "text/plain"):
        body, content_type = scrape(ready, f"{kind};version={version}")

        assert "kvguard_max_concurrency" in body
        assert version == "" or version not in content_type


def test_no_created_series(ready: Driven) -> None:
    assert "_created" not in scrape(ready, OPENMETRICS)[0]


@pytest.mark.parametrize("name", sorted(folder.name for folder in RUNS.iterdir()))
def test_promtool_finds_nothing(name: str) -> None:
    assert shutil.which("promtool"), PROMTOOL
    done = subprocess.run(["promtool", "check", "metrics"], input=scrape(run(name))[0], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


NEEDS_MORE_THAN_A_LOG = {
    "kvguard_log_unread_bytes",
    "kvguard_workload_concurrency",
    "kvguard_baseline_ratio",
    "kvguard_slo_reload_successful",
    "kvguard_slo_reload_success_timestamp_seconds",
    "kvguard_slo_reload_failures_total",
}
"""A file that is followed, a workload, a baseline, an SLO file."""


def test_every_row_is_seen_in_some_log() -> None:
    unseen = {row.exposed for row in METRIC_ROWS}
    for path in sorted((FIXTURES / "logs").rglob("*.log"), key=lambda path: (RUNS not in path.parents, path)):
        if unseen == NEEDS_MORE_THAN_A_LOG:
            break
        driven = Driven(slo(min_concurrency=2.5)).read(path.read_bytes())
        unseen -= {f"kvguard_{name}" for name, _ in samples(driven)}

    assert unseen == NEEDS_MORE_THAN_A_LOG


def test_the_page_of_the_metrics_is_the_table(golden: Golden) -> None:
    page = FIXTURES.parent / "docs/metrics.md"
    before, head, rest = page.read_text(encoding="utf-8").partition(
        "| metric | type | labels | what it says |\n|---|---|---|---|\n"
    )
    behind = rest[rest.index("\n\n") + 1 :]

    labels = {row.exposed: ", ".join(f"`{label}`" for label in row.labels) for row in METRIC_ROWS}
    rows = [f"| `{row.exposed}` | {row.kind} | {labels[row.exposed]} | {row.help} |\n" for row in METRIC_ROWS]
    golden(page, before + head + "".join(rows) + behind)
