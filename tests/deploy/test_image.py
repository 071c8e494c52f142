"""The image's recipe, its lock and the shell beside it, as far as they can be judged without building."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.helm.conftest import ROOT, run

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCK = (ROOT / "requirements.lock").read_text()
SHELL = [
    *("scripts/tools", "scripts/e2e-pod", "deploy/kvguard", "helm/kvguard/kustomize/tee/kvguard-tee"),
]


def locked():
    """Name and version of every pinned package, and its markers."""
    return {found[1]: found[2] for found in re.finditer(r"^([a-z0-9.-]+)==([^ ;]+)", LOCK, re.MULTILINE)}


def dependencies():
    return [
        Requirement(text) for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ]


def test_hadolint_has_nothing_to_say():
    answer = run("hadolint", ROOT / "Dockerfile")
    assert (answer.stdout, answer.returncode) == ("", 0)


@pytest.mark.parametrize("path", SHELL)
def test_shellcheck_has_nothing_to_say(path):
    answer = run("shellcheck", ROOT / path)
    assert (answer.stdout, answer.returncode) == ("", 0)


def test_the_image_runs_as_a_number_and_without_a_shell():
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == ["65532:65532"]
    assert re.findall(r"^ENTRYPOINT (.+)$", DOCKERFILE, re.MULTILINE) == ['["python3", "-m", "kvguard"]']
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE_IMAGE}", "${BASE_IMAGE}"]


@pytest.mark.parametrize("label", ["title", "description", "licenses", "version", "revision", "created", "base.name"])
def test_the_image_says_what_it_is(label):
    assert f"org.opencontainers.image.{label}=" in DOCKERFILE


def test_what_the_recipe_copies_is_what_the_context_holds():
    copied = re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, re.MULTILINE)
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert copied == [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert all((ROOT / path).exists() for path in copied)


@pytest.mark.parametrize("requirement", dependencies(), ids=lambda requirement: requirement.name)
def test_the_lock_holds_every_dependency_in_a_version_that_the_project_takes(requirement):
    name = requirement.name.lower().replace(".", "-").replace("_", "-")
    assert locked()[name] in requirement.specifier, "uv pip compile again, as docs/kubernetes.md says"


def test_the_lock_names_no_host_and_pins_every_package_by_hash():
    assert "://" not in LOCK
    assert "--index" not in LOCK
    for block in re.split(r"\n(?=[a-z0-9])", LOCK):
        assert "--hash=sha256:" in block, block
