"""A report read back is the report that was written; what is none is refused in one line."""

import json
from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.render.json_report import render_json, report_document, verdict_document
from kvguard.render.stored_report import report_from
from kvguard.startup.report import CapacityReport
from tests.render.pages import judged, log
from tests.render.verdicts import EMPTY, PASSED, REFUSED, VERDICTS, WEAK_ENGINE


@pytest.mark.parametrize("name", [name for name in VERDICTS if name != "hostile"])
def test_a_report_survives_being_written_and_read(name: str) -> None:
    report = VERDICTS[name].report

    assert report_from(json.loads(render_json(report_document(report))), "report.json") == report


def test_the_lines_of_a_real_start_are_quoted_after_it_was_read_as_before() -> None:
    report = judged(log("story/16k-fp8-cache.log")).report
    read = report_from(json.loads(render_json(report_document(report))), "report.json")

    assert report.start is not None
    assert read.start is not None
    told = {place for place in report.start.lines.values() if place in report.start.quotes}
    assert len(told) > 3
    assert {place: read.start.quotes[place] for place in told} == {place: report.start.quotes[place] for place in told}


def test_a_judged_report_is_read_the_same() -> None:
    assert report_from(verdict_document(PASSED), "report.json") == PASSED.report


def test_secrets_stay_masked() -> None:
    read = report_from(verdict_document(VERDICTS["hostile"]), "report.json")

    assert "hunter2" not in repr(read)


def test_what_is_left_out_is_not_known() -> None:
    assert report_from({"kind": "report", "schema_version": 1}, "report.json") == CapacityReport()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kind": "baseline"}, 'not a kvguard report: it has no "kind": "report"; write one with --format json'),
        ({"schema_version": 2}, "schema_version 2 is not 1: write it anew"),
        ({"history": {}}, "history is no list"),
        ({"lines": []}, "lines is no object"),
        ({"start": {"index": "1", "phase": "ready"}}, "index is '1', which is of the wrong type"),
        ({"start": {"index": True, "phase": "ready"}}, "index is True, which is of the wrong type"),
        ({"start": {"index": 1, "phase": "soon"}}, "phase is 'soon', which is of the wrong type"),
        ({"start": 5}, "start is 5, which is of the wrong type"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        report_from(verdict_document(EMPTY) | change, "report.json")

    assert str(raised.value) == f"report.json: {message}"


def test_an_incomplete_start_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"report\.json: Start is not complete: .*'phase'"):
        report_from(verdict_document(EMPTY) | {"start": {"index": 1}}, "report.json")


def test_a_list_that_is_no_document_is_refused() -> None:
    with pytest.raises(ConfigError):
        report_from([], "report.json")


def test_the_contract_has_its_keys() -> None:
    document = verdict_document(WEAK_ENGINE)

    assert list(document)[:5] == ["kind", "schema_version", "kvguard_version", "sources", "verdict"]
    assert document["verdict"]["reasons"][0] == {
        "code": "objective-missed",
        "message": "maximum concurrency of engine 1 is 2.496, below the 2.5 asked for",
        "remedy": None,
        "source": "node-1.log",
        "line": 81,
    }
    assert [item["outcome"] for item in document["history"]] == ["fail", "fail", "fail", "fail"]
    assert verdict_document(REFUSED)["start"]["failure"]["kv_cache_tokens"] == 28432
    assert report_document(PASSED.report)["verdict"] is None
