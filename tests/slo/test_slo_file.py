"""SLO files: what is read, and that every mistake is one line with file, line, key and the nearest right key."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kvguard.errors import ConfigError
from kvguard.slo.file import json_schema, mistakes_of, read_settings
from kvguard.slo.keys import BY_NAME, KEYS, SECTIONS
from kvguard.slo.marked_yaml import read_marked
from kvguard.slo.objectives import DEFAULT_SEVERITIES, KINDS, GateMode, OnUnknown, Severity
from kvguard.slo.settings import DEFAULT_MAX_DROP, EMPTY, Settings, slo_of
from kvguard.units import GIB

FIXTURES = Path("fixtures/slo")
INVALID = sorted((FIXTURES / "invalid").glob("*.yaml"))
VALID = sorted(path for path in (FIXTURES / "valid").iterdir() if path.is_file())


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_each_mistake_has_its_one_line(path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        read_settings(path.read_text(), path.name)
    assert str(told.value) + "\n" == path.with_suffix(".message").read_text()
    assert "\n" not in str(told.value)


def test_every_message_has_its_file() -> None:
    assert {path.stem for path in (FIXTURES / "invalid").glob("*.message")} == {path.stem for path in INVALID}


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name)
def test_a_valid_file_has_no_mistakes(path: Path) -> None:
    assert mistakes_of(path.read_text(), path.name) == ()


def test_every_key_is_read_in_its_base_unit() -> None:
    settings = read_settings((FIXTURES / "valid/everything.yaml").read_text(), "everything.yaml")
    assert {key.name for key in KEYS} == set(settings.values)
    slo = slo_of(settings, {"architectures": ["X"]}, {"kind": "baseline"})
    assert {objective.kind.key: objective.target for objective in slo.objectives} == {
        "min_concurrency": 2.5,
        "min_total_concurrency": 10,
        "min_kv_cache_tokens": 40_960,
        "min_kv_cache": round(3.4 * GIB),
        "max_weights": round(15.5 * GIB),
        "expect_max_model_len": 16_384,
        "expect_kv_cache_dtype": "fp8",
        "expect_engines": 2,
        "concurrent_requests": 4,
        "max_request_share": 0.5,
        "max_waiting_requests": 10,
        "max_kv_cache_usage": 0.95,
        "max_preemptions": 0,
        "max_drop": 0.05,
    }
    assert (slo.require_ready, slo.ready_within) == (True, 600.0)
    assert slo.workload is not None
    assert (slo.workload.request_tokens, slo.workload.longest_request_tokens) == (8_500, 16_000)
    assert (slo.gate.mode, slo.gate.on_unknown, slo.gate.recheck) == (GateMode.OBSERVE, OnUnknown.ALLOW, True)
    assert slo.severities == {"profiling-skipped": Severity.IGNORE, "engines-missing": Severity.FAIL}
    assert next(o for o in slo.objectives if o.kind.key == "max_weights").severity is Severity.WARN


def test_json_with_tabs_is_read_as_people_write_it() -> None:
    settings = read_settings((FIXTURES / "valid/with-tabs.json").read_text(), "with-tabs.json")
    assert settings.values == {"min_kv_cache": round(3.4 * GIB), "ready_within": 600.0}


def test_all_mistakes_are_listed_in_their_order() -> None:
    text = (FIXTURES / "invalid/two-mistakes.yaml").read_text()
    assert mistakes_of(text, "slo.yaml") == (
        "slo.yaml:2: objectives.min_concurrency: 'many' is not a number from 0 on, as 2.5",
        "slo.yaml:3: objectives.max_weigths: no such key; did you mean max_weights?",
    )


def test_flags_may_complete_a_file() -> None:
    text = "workload: {concurrent_requests: 4}\n"
    flags = Settings({"prompt_tokens": 7500})
    assert read_settings(text, "slo.yaml", flags).values == {"concurrent_requests": 4}


def test_flags_win_over_the_file() -> None:
    file = Settings({"min_concurrency": 2.5, "expect_engines": 2}, {"restarted": Severity.FAIL})
    flags = Settings({"min_concurrency": 3.0}, {"restarted": Severity.IGNORE}, strict=True)
    both = flags.over(file)
    assert both.values == {"min_concurrency": 3.0, "expect_engines": 2}
    assert (both.warnings, both.strict) == ({"restarted": Severity.IGNORE}, True)


def test_a_baseline_alone_allows_the_default_drop() -> None:
    slo = slo_of(Settings({"baseline": "b.json"}), baseline={})
    assert slo.target("max_drop") == DEFAULT_MAX_DROP


def test_the_schema_knows_every_key_and_takes_every_valid_file() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {"version", *SECTIONS, "warnings", "severity"}
    for section in (*SECTIONS, "warnings", "severity"):
        assert schema["$defs"][section]["additionalProperties"] is False
    assert set(schema["$defs"]["warnings"]["properties"]) == set(DEFAULT_SEVERITIES)
    assert set(schema["$defs"]["severity"]["properties"]) == set(KINDS)
    validator = Draft202012Validator(json.loads(json.dumps(schema)))
    document = read_marked((FIXTURES / "valid/everything.yaml").read_text(), "everything.yaml").value
    assert list(validator.iter_errors(document)) == []
    assert list(validator.iter_errors({"objectives": {"min_concurency": 1}}))
    for name, value in EMPTY.items():
        section = BY_NAME[name].section
        assert list(validator.iter_errors({section: {name: value}})), name
    assert list(validator.iter_errors({"runtime": {"max_preemptions": 0}})) == []


@given(st.text(max_size=200))
def test_any_text_is_fine_or_has_mistakes_of_one_line(text: str) -> None:
    for mistake in mistakes_of(text, "slo.yaml"):
        assert mistake.startswith("slo.yaml")
        assert "\n" not in mistake


@pytest.mark.parametrize("text", ["objectives: &a {b: *a}", "objectives: &a {<<: *a}", "a: &a [*a]"])
def test_an_alias_that_contains_itself_is_no_trap(text: str) -> None:
    assert all("\n" not in mistake for mistake in mistakes_of(text, "slo.yaml"))


@pytest.mark.parametrize(
    "value", ["!!timestamp x", "!!bool x", '!!int ""', "!!int x", "!!float x", "2001-99-99", "!!binary x", "!!omap x"]
)
def test_a_value_that_is_not_what_its_tag_says_has_its_line(value: str) -> None:
    (mistake,) = mistakes_of(f"objectives:\n  min_concurrency: {value}\n", "slo.yaml")
    assert mistake.startswith("slo.yaml:2: neither YAML nor JSON: ")


@pytest.mark.parametrize(
    "objectives, target",
    [
        ("{<<: [{min_concurrency: 99}, {min_total_concurrency: 1}]}", 99),
        ("{<<: [{min_concurrency: 99}, {min_concurrency: 1}], min_concurrency: 3}", 3),
        ("{<<: {min_concurrency: 99}, min_concurrency: 3}", 3),
        ("{min_concurrency: 07}", 7),
        ("{min_concurrency: '010'}", 10),
    ],
)
def test_what_every_reader_of_yaml_takes_alike_is_taken(objectives: str, target: float) -> None:
    settings = read_settings(f"objectives: {objectives}", "slo.yaml")
    assert settings.values["min_concurrency"] == target


def test_a_dtype_is_read_as_vllm_spells_it() -> None:
    assert read_settings("objectives: {expect_kv_cache_dtype: FP8_E4M3 }", "slo.yaml").values == {
        "expect_kv_cache_dtype": "fp8_e4m3"
    }


@pytest.mark.parametrize("name", ["min_concurrency", "expect_engines", "max_kv_cache_usage"])
def test_a_flag_that_asks_for_nothing_is_refused_as_well(name: str) -> None:
    with pytest.raises(ConfigError, match="asks for nothing"):
        slo_of(Settings({name: float(name == "max_kv_cache_usage")}))


# --- the documentation ------------------------------------------------------------------------------------------------

DOCS = Path("docs/slo.md").read_text()


def test_the_page_has_a_row_for_every_key_and_no_other() -> None:
    rows = [f"| `{key.name}` | `{key.example}` | `{key.flag}` | {key.help} |" for key in KEYS]
    rows += [f"| `{code}` | {severity.value} |" for code, severity in DEFAULT_SEVERITIES.items()]
    assert [line for line in DOCS.splitlines() if line.startswith("| `")] == rows


def test_the_files_on_the_page_are_valid() -> None:
    blocks = DOCS.split("```yaml\n")[1:]
    assert len(blocks) == 2
    for block in blocks:
        assert mistakes_of(block.split("```")[0], "docs") == ()
