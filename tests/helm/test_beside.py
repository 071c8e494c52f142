"""Ways into pods that other charts make: each carries the container that the chart renders, and changes no more."""

import copy
import json
import shutil
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.helm.conftest import CHART, HELMS, ROOT, objects_of, rendered, run

SNIPPETS = ROOT / "helm/snippets"
# in the shape in which vLLM's production-stack renders an engine (helm/templates/deployment-vllm-multi.yaml there)
ENGINE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "stack-opt125m-deployment-vllm",
        "labels": {"model": "opt125m", "helm-release-name": "stack", "environment": "test", "release": "test"},
    },
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"model": "opt125m", "helm-release-name": "stack"}},
        "template": {
            "metadata": {"labels": {"model": "opt125m", "helm-release-name": "stack"}},
            "spec": {
                "containers": [
                    {
                        "name": "vllm",
                        "image": "vllm/vllm-openai:v0.32.0",
                        "command": ["vllm", "serve", "facebook/opt-125m", "--host", "0.0.0.0", "--port", "8000"],
                        "env": [{"name": "HF_HOME", "value": "/data"}],
                        "volumeMounts": [{"name": "stack-storage", "mountPath": "/data"}],
                    }
                ],
                "volumes": [{"name": "stack-storage", "emptyDir": {}}],
            },
        },
    },
}
ROUTER = copy.deepcopy(ENGINE)
ROUTER["metadata"] = {"name": "stack-deployment-router", "labels": {"environment": "router"}}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of helm/ to build in."""
    return Path(shutil.copytree(ROOT / "helm", tmp_path / "helm"))


def kustomized(folder: Path, *deployments, resource: str = "stack.yaml"):
    (folder / resource).write_text(yaml.safe_dump_all(deployments))
    answer = run("kubectl", "kustomize", folder)
    assert answer.returncode == 0, answer.stderr
    return objects_of(answer.stdout)


def pod_of(objects, name):
    deployment = next(item for item in objects if item["kind"] != "ConfigMap" and item["metadata"]["name"] == name)
    kubernetes_validate.validate(deployment, "1.29", strict=True)
    return deployment["spec"]["template"]["spec"]


def chart_sidecar(port, image="kvguard"):
    """The container of the chart's notes for mode beside, with that port of vLLM and that image."""
    answer = run(
        "helm4",
        *("install", "guard", CHART, "-f", CHART / "ci/beside-values.yaml", "--set", f"vllm.port={port}"),
        "--dry-run=client",
    )
    text = answer.stdout.split("NOTES:\n")[1]
    pasted = yaml.safe_load(text[text.index("initContainers:") : text.index("# in vLLM's container")])
    return {**pasted["initContainers"][0], "image": image}, pasted["volumes"]


def without_image(container):
    return {key: value for key, value in container.items() if key != "image"}


def test_the_component_adds_the_charts_own_sidecar_to_labelled_deployments_only(tree):
    overlay = tree / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [stack.yaml]\ncomponents: [../kvguard/kustomize/logging]\n")
    labelled = copy.deepcopy(ENGINE)
    labelled["metadata"]["labels"]["kvguard"] = "enabled"
    objects = kustomized(overlay, labelled, ROUTER)
    spec = pod_of(objects, "stack-opt125m-deployment-vllm")
    expected, _ = chart_sidecar(8000)
    assert spec["initContainers"] == [expected]
    vllm = spec["containers"][0]
    assert vllm["command"] == ENGINE["spec"]["template"]["spec"]["containers"][0]["command"]
    assert {"name": "VLLM_LOGGING_CONFIG_PATH", "value": "/opt/kvguard/logging.json"} in vllm["env"]
    assert pod_of(objects, "stack-deployment-router") == ROUTER["spec"]["template"]["spec"]


def test_the_component_adds_it_to_a_statefulset_as_well(tree):
    overlay = tree / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [stack.yaml]\ncomponents: [../kvguard/kustomize/tee]\n")
    labelled = copy.deepcopy(ENGINE) | {"kind": "StatefulSet"}
    labelled["metadata"]["labels"]["kvguard"] = "enabled"
    labelled["spec"]["serviceName"] = "engines"
    labelled["spec"]["template"]["spec"]["initContainers"] = [{"name": "fetch", "image": "fetch:1"}]
    spec = pod_of(kustomized(overlay, labelled), "stack-opt125m-deployment-vllm")
    assert [item["name"] for item in spec["initContainers"]] == ["kvguard", "fetch"]
    assert spec["initContainers"][0] == chart_sidecar(8000)[0]
    assert spec["containers"][0]["command"][:3] == ["/bin/sh", "/opt/kvguard/kvguard-tee", "vllm"]
    assert {volume["name"] for volume in spec["volumes"]} >= {"stack-storage", "vllm-log", "kvguard-slo"}


def test_production_stack_gets_the_guard_by_kustomize_without_a_changed_value(tree):
    objects = kustomized(tree / "snippets/production-stack", ENGINE, ROUTER)
    spec = pod_of(objects, "stack-opt125m-deployment-vllm")
    vllm = spec["containers"][0]
    assert vllm["command"][:5] == ["/bin/sh", "/opt/kvguard/kvguard-tee", "vllm", "serve", "facebook/opt-125m"]
    assert {"name": "stack-storage", "mountPath": "/data"} in vllm["volumeMounts"]
    assert spec["initContainers"][0]["image"] == "registry.test/kvguard:0.1.0"
    assert pod_of(objects, "stack-deployment-router") == ROUTER["spec"]["template"]["spec"]
    config = {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}
    assert yaml.safe_load(config["kvguard-slo"]["slo.yaml"])["objectives"] == {"min_concurrency": 2.5}
    assert config["kvguard-log-way"]["kvguard-tee"] == (CHART / "kustomize/tee/kvguard-tee").read_text()


def test_the_llm_d_snippet_carries_the_charts_own_sidecar_and_volumes():
    decode = yaml.safe_load((SNIPPETS / "llm-d-modelservice-values.yaml").read_text())["decode"]
    expected, volumes = chart_sidecar(8200, "registry.test/kvguard:0.1.0")
    assert decode["initContainers"] == [expected]
    assert decode["volumes"] == volumes
    mounts = {mount["name"] for mount in decode["containers"][0]["volumeMounts"]}
    assert mounts == {"vllm-log", "kvguard-log-way"}


@pytest.mark.parametrize("helm", HELMS)
def test_the_release_beside_llm_d_has_what_its_snippet_names(helm, tmp_path):
    file = SNIPPETS / "llm-d-modelservice-guard-values.yaml"
    answer = run(
        helm, "template", "guard", CHART, "-f", file, "--set", "image.repository=r", "--kube-version", "1.29.0"
    )
    names = {item["metadata"]["name"] for item in objects_of(answer.stdout) if item["kind"] == "ConfigMap"}
    assert names == {"guard-kvguard-slo", "guard-kvguard-log-way"}


def test_the_kserve_example_carries_the_same_sidecar_and_says_that_it_was_not_tried():
    text = (SNIPPETS / "kserve-inferenceservice.yaml").read_text()
    assert "NOT TESTED" in text
    predictor = yaml.safe_load(text)["spec"]["predictor"]
    expected, volumes = chart_sidecar(8080, "registry.test/kvguard:0.1.0")
    assert predictor["initContainers"] == [expected]
    assert predictor["volumes"] == volumes


PARENT = """
apiVersion: v1
kind: Pod
metadata:
  name: theirs
spec:
  initContainers:
    {{- include "kvguard.container" .Subcharts.kvguard | nindent 4 }}
  containers:
    - name: vllm
      image: theirs
      {{- $wrapper := include "kvguard.vllm.wrapper" .Subcharts.kvguard | fromJsonArray }}
      command: {{ concat $wrapper (list "vllm" "serve") | toJson }}
      env:
        {{- include "kvguard.vllm.env" .Subcharts.kvguard | nindent 8 }}
      volumeMounts:
        {{- include "kvguard.vllm.mounts" .Subcharts.kvguard | nindent 8 }}
  volumes:
    {{- include "kvguard.volumes" .Subcharts.kvguard | nindent 4 }}
"""


@pytest.mark.parametrize("helm", HELMS)
def test_a_chart_that_depends_on_this_one_builds_its_pods_with_the_named_templates(helm, tmp_path):
    parent = tmp_path / "theirs"
    (parent / "templates").mkdir(parents=True)
    shutil.copytree(CHART, parent / "charts/kvguard")
    (parent / "Chart.yaml").write_text("apiVersion: v2\nname: theirs\nversion: 1.0.0\n")
    (parent / "templates/pod.yaml").write_text(PARENT)
    settings = {"mode": "beside", "image": {"repository": "kvguard"}, "beside": {"podSelector": {"app": "theirs"}}}
    (parent / "values.yaml").write_text(json.dumps({"kvguard": settings}))
    answer = run(helm, "template", "osprey", parent, "--kube-version", "1.29.0")
    assert answer.returncode == 0, answer.stderr
    pod = next(
        item for item in objects_of(answer.stdout) if item["kind"] == "Pod" and item["metadata"]["name"] == "theirs"
    )
    kubernetes_validate.validate(pod, "1.29", strict=True)
    assert pod["spec"]["initContainers"][0]["restartPolicy"] == "Always"
    assert pod["spec"]["containers"][0]["command"] == ["/bin/sh", "/opt/kvguard/kvguard-tee", "vllm", "serve"]
    beside = {item["metadata"]["name"] for item in objects_of(rendered("beside", "1.29", helm, ()))}
    assert {"osprey-kvguard-slo", "osprey-kvguard-log-way"} <= beside
