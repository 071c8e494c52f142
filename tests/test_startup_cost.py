"""What a command loads: a gate in a pipeline pays for no web stack, and for no reader of files it does not read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES

RAG = str(FIXTURES / "logs/story/rag-24gb.log")
WEB = {"fastapi", "starlette", "uvicorn", "prometheus_client", "httpx", "anyio", "asyncio"}
FILES = {"pydantic", "yaml", "backports", "gzip", "xml"}


def loaded_by(*words: str, cwd: Path | None = None) -> set[str]:
    """The modules of the top level that a command has imported when it ends."""
    program = "import sys; from kvguard.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", program, *words]
    environ = {**os.environ, "PYTHONPATH": str(FIXTURES.parent / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=cwd, check=True)
    return {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    "words",
    [
        ["check", RAG, "--min-concurrency", "2.5"],
        ["check", RAG, "--min-concurrency", "2.5", "--format", "json"],
        ["inspect", RAG],
        ["check", "--help"],
    ],
)
def test_a_plain_log_costs_neither_web_stack_nor_file_formats(words: list[str]) -> None:
    assert loaded_by(*words) & (WEB | FILES) == set()


def test_an_slo_file_costs_its_readers_and_no_web_stack(tmp_path: Path) -> None:
    slo = tmp_path / "slo.yaml"
    slo.write_text("version: 1\nobjectives: {min_concurrency: 1}\n")
    loaded = loaded_by("check", RAG, "--slo", str(slo))

    assert loaded & WEB == set()
    assert "yaml" in loaded


def test_a_check_that_names_no_file_beside_its_log_costs_no_pathlib() -> None:
    assert loaded_by("check", RAG, "--min-concurrency", "2.5") & {"pathlib", "urllib", "ipaddress", "signal"} == set()


def test_the_version_costs_no_parser() -> None:
    loaded = loaded_by("--version")

    assert loaded & {"argparse", "re", "regex", "dataclasses", "typing", "inspect"} == set()


def test_a_log_compiles_only_the_rows_that_its_lines_could_open() -> None:
    program = (
        "import sys; from kvguard.cli import main; main(sys.argv[1:]); from kvguard.lines import patterns; "
        "print(patterns.compiled.cache_info().currsize, *sys.modules, file=sys.stderr)"
    )
    log = str(FIXTURES / "logs/runs/vllm-0.32.0-cpu-base/server.log")
    environ = {**os.environ, "PYTHONPATH": str(FIXTURES.parent / "src")}
    command = [sys.executable, "-c", program, "check", log]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    compiled, *modules = done.stderr.splitlines()[-1].split()

    assert int(compiled) < 70
    # neither what follows a log nor a report that nobody asked for, nor what reads Python, classes or packed files
    assert not {"kvguard.sources.rotated", "kvguard.render.junit", "kvguard.render.github"} & set(modules)
    assert not {"ast", "dataclasses", "inspect", "regex", "shutil", "lzma"} & set(modules)
