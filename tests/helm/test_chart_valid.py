"""What others' tools say of the chart: both Helms, the API's schemas, yamllint; for every values file in ci/."""

import functools
import json
import subprocess
import tarfile
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from kvguard.version import __version__
from tests.helm.conftest import CHART, CI_VALUES, HELMS, KUBE_VERSIONS, ROOT, helm_arguments, objects_of, rendered, run

# the Job's vLLM is a native sidecar: the chart refuses to make it for older clusters
SINCE_1_29 = {"gate-job"}
# kinds of the Prometheus operator, whose schemas no package carries; tests/helm/test_monitoring.py reads their fields
WITHOUT_SCHEMA = {"PodMonitor", "ServiceMonitor", "PrometheusRule"}


def versions_of(values: str) -> list[str]:
    return [version for version in KUBE_VERSIONS if not (values in SINCE_1_29 and version < "1.29")]


@functools.cache
def validate_once(item: str, kube: str) -> None:
    """Many values files make the same object, and each look costs the reading of the whole schema."""
    kubernetes_validate.validate(json.loads(item), kube, strict=True)


CASES = [(values, version) for values in CI_VALUES for version in versions_of(values)]


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("values", CI_VALUES)
def test_helm_lint_has_nothing_to_say(values: str, helm: str) -> None:
    answer = run(helm, "lint", "--strict", CHART, *helm_arguments(values, "1.29", ()))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "[WARNING]" not in answer.stdout


@pytest.mark.parametrize("values", CI_VALUES)
def test_both_helms_make_the_same_objects(values: str) -> None:
    three, four = (objects_of(rendered(values, "1.29", helm, ())) for helm in HELMS)
    assert sorted(map(str, three)) == sorted(map(str, four))


@pytest.mark.parametrize("values,kube", CASES)
def test_every_object_fits_the_api_of_that_version(values: str, kube: str) -> None:
    for item in objects_of(rendered(values, kube, "helm4", ())):
        if item["kind"] not in WITHOUT_SCHEMA:
            validate_once(json.dumps(item), kube)


def test_the_validator_would_have_caught_a_native_sidecar_before_its_time(render) -> None:  # type: ignore[no-untyped-def]
    deployment = next(item for item in render("standalone", kube="1.29") if item["kind"] == "Deployment")
    with pytest.raises(kubernetes_validate.ValidationError, match="restartPolicy"):
        kubernetes_validate.validate(deployment, "1.27", strict=True)


def test_older_clusters_are_told_why_the_gate_job_cannot_be() -> None:
    answer = run("helm4", "template", "osprey", CHART, *helm_arguments("gate-job", "1.28", ()))
    assert answer.returncode != 0
    assert "needs Kubernetes 1.29" in answer.stderr


@pytest.mark.parametrize("values", CI_VALUES)
def test_no_key_stands_twice_in_a_rendered_manifest(values: str) -> None:
    only = "{rules: {key-duplicates: enable}}"
    answer = run("yamllint", "--strict", "-d", only, "-", input=rendered(values, "1.29", "helm4", ()))
    assert (answer.stdout, answer.returncode) == ("", 0)


def test_the_sources_are_tidy_yaml() -> None:
    answer = run("yamllint", "--strict", "-c", "helm/yamllint.yaml", "helm", cwd=ROOT)
    assert (answer.stdout, answer.returncode) == ("", 0)


def test_the_charts_version_is_the_programs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


@pytest.mark.parametrize("helm", HELMS)
def test_the_package_carries_the_component_and_leaves_the_cases_out(helm: str, tmp_path: Path) -> None:
    assert run(helm, "package", CHART, "-d", tmp_path).returncode == 0
    with tarfile.open(next(tmp_path.glob("kvguard-*.tgz"))) as archive:
        names = archive.getnames()
    assert "kvguard/kustomize/tee/kvguard-tee" in names
    assert "kvguard/rules/alerts.yaml" in names
    assert not [name for name in names if name.startswith("kvguard/ci/")]


def test_an_unknown_tool_is_refused_by_name() -> None:
    answer = subprocess.run([ROOT / "scripts/tools", "helmet"], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "unknown tool 'helmet'" in answer.stderr
