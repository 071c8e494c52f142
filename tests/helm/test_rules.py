"""The alerts and recording rules: checked and tried by promtool, and the same in the PrometheusRule as in the files."""

from pathlib import Path

import promql_parser
import pytest
import yaml

from tests.helm.conftest import CHART, HELMS, ROOT, run

FILES = [CHART / "rules/recording.yaml", CHART / "rules/alerts.yaml"]
TRIALS = sorted((Path(__file__).parent / "rules").glob("*_test.yaml"))
GROUPS = [group for file in FILES for group in yaml.safe_load(file.read_text())["groups"]]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}


def test_promtool_has_nothing_to_say_of_the_files():
    answer = run("promtool", "check", "rules", *FILES)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("trial", TRIALS, ids=lambda path: path.stem)
def test_the_rules_fire_and_keep_silent_as_promtool_tries_them(trial):
    answer = run("promtool", "test", "rules", trial)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_is_tried_firing_and_silent(alert):
    trials = [
        trial
        for file in TRIALS
        for test in yaml.safe_load(file.read_text())["tests"]
        for trial in test.get("alert_rule_test", [])
        if trial["alertname"] == alert
    ]
    assert {bool(trial["exp_alerts"]) for trial in trials} == {True, False}


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_says_what_it_is_how_bad_and_where_to_read_on(alert):
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"]["summary"].endswith(".")
    assert "{{" not in rule["annotations"]["summary"]
    assert "$value" not in str(rule["labels"])
    page = ROOT / rule["annotations"]["runbook_url"]
    text = page.read_text()
    assert text.startswith(f"# {alert}\n")
    assert "**Says:**" in text
    assert "## Look at" in text
    assert "## Do" in text


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_looks_back_so_that_one_missed_scrape_neither_hides_nor_resets_it(alert):
    names = ("max_over_time(", "min_over_time(", "increase(")
    assert any(name in ALERTS[alert]["expr"] for name in names)
    assert "for" in ALERTS[alert]


def test_the_runbooks_index_names_every_alert_and_no_page_is_left_over():
    index = (ROOT / "docs/runbooks/README.md").read_text()
    pages = {path.stem for path in (ROOT / "docs/runbooks").glob("Kvguard*.md")}
    assert pages == set(ALERTS)
    assert all(f"[{alert}]({alert}.md)" in index for alert in ALERTS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_every_expression_is_promql_by_another_parser_too(rule):
    promql_parser.parse(rule["expr"])


@pytest.mark.parametrize("helm", HELMS)
def test_the_prometheusrule_holds_the_files_as_they_are(one, helm):
    rule = one("PrometheusRule", "standalone", "monitoring.rules.enabled=true", helm=helm)
    assert rule["spec"]["groups"] == GROUPS


@pytest.mark.parametrize("helm", HELMS)
def test_the_values_can_drop_an_alert_and_change_severity_labels_and_runbooks(one, helm, tmp_path):
    spec = one("PrometheusRule", "monitoring", helm=helm)["spec"]
    alerts = {rule["alert"]: rule for group in spec["groups"] for rule in group["rules"] if "alert" in rule}
    assert set(alerts) == set(ALERTS) - {"KvguardFleetUneven"}
    below = alerts["KvguardCapacityBelowSLO"]
    assert below["labels"] == {"severity": "page", "team": "inference"}
    assert below["annotations"]["runbook_url"] == "https://runbooks.test/kvguard/KvguardCapacityBelowSLO.md"
    assert alerts["KvguardPreemptions"]["labels"] == {"severity": "warning", "team": "inference"}
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(spec))
    assert run("promtool", "check", "rules", file).returncode == 0


@pytest.mark.parametrize("kind,endpoints", [("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")])
def test_the_monitors_scrape_the_guard_and_vllm_by_named_ports(render, one, kind, endpoints):
    monitor = one(kind, "monitoring")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert [endpoint["port"] for endpoint in monitor["spec"][endpoints]] == ["kvguard", "http"]
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    of_kind = "Deployment" if kind == "PodMonitor" else "Service"
    for item in render("monitoring"):
        if item["kind"] == of_kind:
            labels = (
                item["spec"]["template"]["metadata"]["labels"]
                if of_kind == "Deployment"
                else item["metadata"]["labels"]
            )
            assert chosen <= labels.items()
