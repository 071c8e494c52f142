"""The flags of objectives: one a key, in the key's unit, over the file's."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvguard.cli.objective_flags import add_objective_flags, not_asked, slo_from
from kvguard.errors import ConfigError, SourceError
from kvguard.slo.keys import KEYS
from kvguard.slo.objectives import GateMode, Severity, Slo
from kvguard.units import GIB


def slo(*words: str, gate: bool = True) -> Slo:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_objective_flags(parser, gate=gate)
    return slo_from(parser.parse_args(words))


def test_every_key_has_its_flag() -> None:
    parser = argparse.ArgumentParser()
    add_objective_flags(parser, gate=True)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert {key.flag for key in KEYS} <= flags


def test_the_gate_has_flags_only_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        slo("--mode", "observe", gate=False)
    assert slo("--mode", "observe").gate.mode is GateMode.OBSERVE


def test_a_flag_is_read_in_the_unit_of_its_key() -> None:
    asked = slo("--min-kv-cache", "3.4GiB", "--max-kv-cache-usage", "95%", "--ready-within", "10m", "--require-ready")
    assert asked.target("min_kv_cache") == round(3.4 * GIB)
    assert asked.target("max_kv_cache_usage") == 0.95
    assert (asked.ready_within, asked.require_ready) == (600.0, True)


def test_a_wrong_value_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        slo("--min-kv-cache", "3.4")
    assert "argument --min-kv-cache: '3.4' is 3 bytes: write the unit, as 3.4GiB" in capsys.readouterr().err


def test_flags_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text("objectives: {min_concurrency: 2.5, require_ready: true}\nwarnings: {restarted: fail}\n")
    asked = slo("--slo", str(file), "--min-concurrency", "3", "--no-require-ready", "--warnings", "restarted=ignore")
    assert asked.target("min_concurrency") == 3
    assert not asked.require_ready
    assert asked.severities == {"restarted": Severity.IGNORE}


def test_what_a_file_names_is_looked_for_beside_it(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (tmp_path / "slo.yaml").write_text("workload: {prompt_tokens: 10, model_config: model}\n")
    workload = slo("--slo", str(tmp_path / "slo.yaml")).workload
    assert workload is not None
    assert workload.model_config == {"architectures": ["LlamaForCausalLM"]}


@pytest.mark.parametrize(
    "content, told",
    [
        ("{", "config.json:1: not JSON"),
        ("[]", "config.json: a JSON object belongs here"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_model_config_is_told_in_one_line(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigError) as error:
        slo("--prompt-tokens", "10", "--model-config", str(tmp_path / "config.json"))
    assert told in str(error.value)


def test_what_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a directory"):
        slo("--slo", str(tmp_path))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SourceError, match="not a text file"):
        slo("--slo", str(tmp_path / "binary.yaml"))


def test_keys_that_need_each_other_are_named() -> None:
    with pytest.raises(ConfigError, match=r"workload\.concurrent_requests needs workload\.prompt_tokens"):
        slo("--concurrent-requests", "4")


def test_without_a_flag_nothing_is_asked() -> None:
    assert not_asked(slo()) == "no objective is given: the start alone is judged"
    assert not_asked(slo("--require-ready")) is None


def test_strict_and_severities_are_carried() -> None:
    asked = slo("--strict", "--severity", "max_weights=warn", "--max-weights", "15GiB")
    assert asked.strict
    assert asked.objectives[0].severity is Severity.WARN


@pytest.mark.parametrize("words", [("--warnings", "nonsense=fail"), ("--severity", "max_weights=loud")])
def test_a_wrong_severity_lists_what_there_is(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        slo(*words)
    assert " is no" in capsys.readouterr().err


def test_flags_alone_load_neither_pydantic_nor_yaml() -> None:
    program = (
        "import argparse, sys\n"
        "from kvguard.cli.objective_flags import add_objective_flags, slo_from\n"
        "parser = argparse.ArgumentParser(); add_objective_flags(parser)\n"
        "slo_from(parser.parse_args(['--min-concurrency', '2.5']))\n"
        "print(sorted({'pydantic', 'yaml', 'httpx', 'fastapi'} & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"
