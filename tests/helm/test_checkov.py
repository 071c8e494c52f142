"""checkov's opinion of all rendered manifests: it finds what the chart's README admits, and no more."""

import json

from tests.helm.conftest import CHART, CI_VALUES, rendered, run

# what it may say, of which kinds of object
ADMITTED = {
    "CKV2_K8S_6": {"Deployment", "Job", "Pod"},
    "CKV_K8S_8": {"Job", "Pod"},
    "CKV_K8S_9": {"Job", "Pod"},
    "CKV_K8S_10": {"Deployment", "Job"},
    "CKV_K8S_11": {"Deployment", "Job", "Pod"},
    "CKV_K8S_12": {"Deployment", "Job"},
    "CKV_K8S_13": {"Deployment", "Job"},
    "CKV_K8S_15": {"Deployment", "Job", "Pod"},
    "CKV_K8S_21": None,
    "CKV_K8S_35": {"Deployment", "Job", "Pod"},
    "CKV_K8S_43": {"Deployment", "Job", "Pod"},
}


def test_checkov_finds_nothing_but_what_the_readme_admits(tmp_path):
    for values in CI_VALUES:
        (tmp_path / f"{values}.yaml").write_text(rendered(values, "1.29", "helm4", ()))
    answer = run("checkov", "-d", tmp_path, "--framework", "kubernetes", "--skip-download", "-o", "json")
    results = json.loads(answer.stdout)["results"]
    assert len(results["passed_checks"]) > 500
    found = {(check["check_id"], check["resource"].split(".")[0]) for check in results["failed_checks"]}
    unexpected = {(check, kind) for check, kind in found if kind not in (ADMITTED.get(check, set()) or {kind})}
    assert not unexpected
    assert {check for check, _ in found} == set(ADMITTED), "an admission that nothing needs any more"


def test_every_admission_has_its_reason_in_the_readme():
    text = (CHART / "README.md").read_text()
    assert [check for check in ADMITTED if f"| {check} |" not in text] == []
