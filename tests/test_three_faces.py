"""One verdict, three faces: the command line's JSON, the sidecar's report and its gauges never drift apart."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kvguard.cli import main
from kvguard.slo.verdict import Outcome
from tests.conftest import FIXTURES, Golden
from tests.serve.driven import RUNS, Driven, slo

NAMES = sorted(folder.name for folder in RUNS.iterdir())
STATUS_OF = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.UNKNOWN: 3}
GAUGES = {
    "kv_cache_tokens": "kvguard_kv_cache_tokens",
    "kv_cache_bytes": "kvguard_kv_cache_bytes",
    "gpu_blocks": "kvguard_gpu_blocks",
    "max_concurrency": "kvguard_max_concurrency",
    "weights_bytes": "kvguard_weights_bytes",
}
"""A fact of an engine in the report, and the gauge of the same."""


def from_the_command_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict[str, Any]]:
    monkeypatch.chdir(RUNS / name)
    written = tmp_path / "report.json"
    status = main(["check", "server.log", "--min-concurrency", "2.5", "--format", f"json={written}", "--quiet"])
    return status, json.loads(written.read_text())


def sidecar(name: str) -> Driven:
    return Driven(slo(min_concurrency=2.5)).read((RUNS / name / "server.log").read_bytes())


def gauges(text: str) -> dict[tuple[str, str | None], float]:
    return {
        (sample.name, sample.labels.get("engine")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if set(sample.labels) <= {"engine"}
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_faces_agree(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, told = from_the_command_line(name, tmp_path, monkeypatch)
    driven = sidecar(name)
    served = json.loads(driven.get("/v1/report").body)
    found = gauges(driven.get("/metrics").text)
    start = told["start"]

    assert STATUS_OF[Outcome(told["verdict"]["outcome"])] == status
    assert served["verdict"]["outcome"] == told["verdict"]["outcome"]
    for part in ("capacity", "engines", "memory", "phase", "vllm_version", "max_model_len"):
        assert served["start"][part] == start[part]
    for fact, gauge in GAUGES.items():
        expected = {engine["engine"]: engine[fact] for engine in start["engines"] if engine[fact] is not None}
        assert {engine: value for (sample, engine), value in found.items() if sample == gauge} == expected
    met = {0: 1.0, 1: 0.0}.get(status)
    assert found.get(("kvguard_slo_met", None)) == met
    assert found["kvguard_starts_total", None] == told["starts"]


def test_one_golden_holds_all_three(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "vllm-0.32.0-cpu-dp2"
    status, told = from_the_command_line(name, tmp_path, monkeypatch)
    driven = sidecar(name)
    facts = "\n".join(
        line
        for line in driven.get("/metrics").text.splitlines()
        if line.startswith(
            ("kvguard_kv_cache", "kvguard_max_", "kvguard_engines", "kvguard_slo_met", "kvguard_verdict")
        )
    )
    checked = json.dumps(told["start"]["capacity"], indent=2)
    served = json.dumps(json.loads(driven.get("/v1/report").body)["start"]["capacity"], indent=2)

    golden(
        FIXTURES / "cases-of-three-faces" / f"{name}.txt",
        f"exit status {status}\n\ncheck --format json, start.capacity\n{checked}\n"
        f"\n/readyz {driven.get('/readyz').status}\n\n/v1/report, start.capacity\n{served}\n"
        f"\n/metrics\n{facts}\n",
    )
