"""values.schema.json refuses every wrong value and every unknown key, under Helm 3.17 as well as under Helm 4."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helm.generate import generated

from kvguard.slo.file import read_settings
from kvguard.slo.keys import BY_NAME, KEYS
from kvguard.slo.settings import EMPTY
from tests.helm.conftest import CHART, CI_VALUES, HELMS, ROOT, run

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
GOOD = {"image": {"repository": "registry.test/kvguard"}, "vllm": {"model": "acme/osprey-8b"}}
# what no key of this kind takes
WRONG_SLO_VALUES: dict[str, list[Any]] = {
    "requests": ["2,5", "many", -1, True],
    "tokens": ["16k", 1.5, -1, "1,00"],
    "engines": ["two", 1.5, -1],
    "bytes": [3.4, "3.4", "3.4 Gib/s", 1024, "-1GiB"],
    "ratio": ["150%", 1.5, "half", -0.1],
    "seconds": ["10 minutes", "ten", -1],
    "switch": ["yes", 1],
    "layers": ["hybrid", 1],
    "mode": ["enforced", "off", True],
    "on_unknown": ["deny"],
    "text": ["", 1],
    "": ["", 8],
}
# what asks for nothing, as a text
AS_TEXTS: dict[str, dict[float, list[str]]] = {
    "requests": {0: ["0", "0.0", "0x"]},
    "tokens": {0: ["0", "0,000"]},
    "engines": {0: ["0"]},
    "bytes": {0: ["0GiB", "0.0 MB"]},
    "ratio": {1: ["100%", "100.0 %", "1", "1.0"]},
}
WRONG_VALUES = [
    ("mode", "sidecar"),
    ("mode", None),
    ("image.repository", ""),
    ("image.digest", "sha256:12"),
    ("image.pullPolicy", "always"),
    ("log.from", "stdout"),
    ("log.maxMiB", 0),
    ("guard.port", 70000),
    ("guard.native", True),
    ("guard.vllmUrl", "127.0.0.1:8000"),
    ("guard.readinessProbe.periodSeconds", 0),
    ("vllm.model", ""),
    ("vllm.command", []),
    ("vllm.args", "--max-model-len 16384"),
    ("vllm.args", [16384]),
    ("vllm.replicas", "2"),
    ("vllm.rollout.maxSurge", "25%"),
    ("vllm.rollout.progressDeadlineSeconds", "30m"),
    ("vllm.shmSize", "2 GB"),
    ("vllm.cache.accessModes", ["RWX"]),
    ("vllm.cache.mountPath", "cache"),
    ("gateJob.timeoutSeconds", "30m"),
    ("monitoring.podMonitor.interval", "30"),
    ("monitoring.rules.runbookBaseUrl", "https://runbooks.test"),
    ("monitoring.rules.disabled", ["KvguardNoSuchAlert"]),
    ("monitoring.rules.severities", {"KvguardNoSuchAlert": "page"}),
    ("outside.pods", ["Osprey_0"]),
    ("networkPolicy.guardFrom", {"namespaceSelector": {}}),
]


def with_value(path: str, value: Any) -> dict[str, Any]:
    """Good values with one more."""
    values = json.loads(json.dumps(GOOD))
    at = values
    *way, last = path.split(".")
    for key in way:
        at = at.setdefault(key, {})
    at[last] = value
    return values


def closed_objects(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of all objects that list their keys."""
    if schema.get("additionalProperties") is False:
        yield path
    for key, part in schema.get("properties", {}).items():
        yield from closed_objects(part, f"{path}.{key}".lstrip("."))


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, part in schema.get("properties", {}).items():
        here = f"{path}.{key}".lstrip(".")
        if part.get("additionalProperties") is False:
            yield from leaves(part, here)
        elif here != "global":
            yield here


def wrong_slo_values() -> Iterator[tuple[str, Any]]:
    for key in KEYS:
        for value in WRONG_SLO_VALUES[key.unit]:
            yield f"slo.{key.section}.{key.name}", value
    for name, value in EMPTY.items():
        for written in (value, *AS_TEXTS[BY_NAME[name].unit][value]):
            yield f"slo.{BY_NAME[name].section}.{name}", written
    yield "slo.version", 2
    yield "slo.warnings.engines-missing", "error"
    yield "slo.severity.min_concurrency", "critical"


REFUSED = [
    *WRONG_VALUES,
    *wrong_slo_values(),
    *((f"{path}.typo".lstrip("."), 1) for path in closed_objects(SCHEMA)),
    *((path, [[0]]) for path in leaves(SCHEMA)),
]


def accepted_by(helm: str, values: dict[str, Any], folder: Path) -> tuple[bool, str]:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    answer = run(helm, "template", "osprey", CHART, "-f", file, "--kube-version", "1.29.0")
    return answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    "path,value", REFUSED, ids=lambda item: json.dumps(item) if not isinstance(item, str) else item
)
def test_the_schema_refuses(path: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(merged(VALUES, with_value(path, value)))


@pytest.mark.parametrize("helm", HELMS)
def test_each_helm_refuses_every_wrong_value(helm: str, tmp_path: Path) -> None:
    """All mistakes at a time: a Helm names each; then none is left and the values pass."""
    wanted = {path for path, value in REFUSED if value is not None}
    while wanted:
        values = json.loads(json.dumps(GOOD))
        tried = set()
        for path, value in REFUSED:
            if path in wanted and not any(path.startswith(f"{other}.") for other in tried):
                values = merged(values, with_value(path, value))
                tried.add(path)
        passed, told = accepted_by(helm, values, tmp_path)
        assert not passed
        named = {path for path in tried if is_named(path, told)}
        assert named, told
        wanted -= named


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    result = dict(one)
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def is_named(path: str, told: str) -> bool:
    """Helm 3 says `vllm.rollout.maxSurge: Invalid type`, Helm 4 `at '/vllm/rollout/maxSurge': got …`."""
    parent, _, key = path.rpartition(".")
    return any(
        sign in told
        for sign in (
            f"- {path}: ",
            f"- {path}.",
            f"'/{path.replace('.', '/')}'",
            f"'/{path.replace('.', '/')}/",
            f"- {parent or '(root)'}: Additional property {key} is not allowed",
            f"'/{parent.replace('.', '/')}': additional properties '{key}' not allowed"
            if parent
            else f"additional properties '{key}'",
        )
    )


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    "values,missing",
    [
        ({"vllm": {"model": "x"}}, "repository"),
        ({"image": {"repository": "r"}}, "model"),
        ({"image": {"repository": "r"}, "mode": "outside"}, "pods"),
        ({"image": {"repository": "r"}, "mode": "beside"}, "podSelector"),
    ],
    ids=["image", "model", "pods", "podSelector"],
)
def test_each_helm_asks_for_what_it_cannot_do_without(
    helm: str, values: dict[str, Any], missing: str, tmp_path: Path
) -> None:
    passed, told = accepted_by(helm, values, tmp_path)
    assert not passed
    assert missing in told


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_example_of_an_slo_key_is_accepted(key: Any) -> None:
    values = with_value(f"slo.{key.section}.{key.name}", yaml.safe_load(key.example))
    jsonschema.Draft7Validator(SCHEMA).validate(merged(VALUES, values))


@pytest.mark.parametrize("values", CI_VALUES)
def test_the_slo_in_the_values_files_is_one_that_kvguard_reads(values: str) -> None:
    given = yaml.safe_load((CHART / f"ci/{values}-values.yaml").read_text())
    read_settings(yaml.safe_dump(merged(VALUES, given)["slo"]), values)


def test_keywords_are_those_that_helm_3_knows() -> None:
    text = json.dumps(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    for newer in ("$defs", "unevaluatedProperties", "dependentRequired", "prefixItems", "dependentSchemas"):
        assert newer not in text
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_derived_files_are_what_their_sources_make(path: Path) -> None:
    assert path.read_text() == generated()[path], f"run: python helm/generate.py ({path.relative_to(ROOT)})"
