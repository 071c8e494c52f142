"""The dashboard: Grafana's dashboard-linter's rules, asked here, and every query read by a PromQL parser."""

import json

import promql_parser
import pytest

from tests.helm.conftest import CHART, HELMS

DASHBOARD = json.loads((CHART / "dashboards/kvguard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(f"{panel['title']} {target['refId']}", target) for panel in PANELS for target in panel["targets"]]


def filled(expression: str) -> str:
    """A query as Grafana sends it with everything chosen."""
    for variable in ("$job", "$instance", "$model"):
        expression = expression.replace(variable, ".*")
    return expression.replace("$__rate_interval", "5m")


@pytest.mark.parametrize("target", [target for _, target in TARGETS], ids=[name for name, _ in TARGETS])
def test_every_query_is_promql_with_the_variables_data_source(target):
    promql_parser.parse(filled(target["expr"]))
    assert "$" not in filled(target["expr"])
    assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_has_title_description_unit_and_data_source(panel):
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_panels_neither_overlap_nor_leave_the_page():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_counters_are_read_as_rates_over_grafanas_own_interval():
    for _, target in TARGETS:
        if "rate(" in target["expr"]:
            assert "[$__rate_interval]" in target["expr"]


def test_variables_choose_by_job_replica_and_model_and_nobody_edits_in_place():
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "job", "instance", "model"]
    assert all(variable.get("refresh", 2) == 2 for variable in DASHBOARD["templating"]["list"])
    assert DASHBOARD["editable"] is False


def test_budget_panels_are_stacked_in_bytes():
    budget = next(panel for panel in PANELS if panel["title"] == "Memory budget")["fieldConfig"]["defaults"]
    assert budget["unit"] == "bytes"
    assert budget["custom"]["stacking"] == {"mode": "normal"}


@pytest.mark.parametrize("helm", HELMS)
def test_the_configmap_carries_it_unchanged_under_the_label_that_grafana_looks_for(one, helm):
    config = one("ConfigMap", "monitoring", name="-dashboard", helm=helm)
    assert json.loads(config["data"]["kvguard.json"]) == DASHBOARD
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config["metadata"]["annotations"] == {"grafana_folder": "LLM"}
