"""Where reports go, and what a terminal is taken to show."""

import io
import json
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.output import terminal_of
from kvguard.render.formats import RENDERERS
from tests.conftest import FIXTURES

RAG = str(FIXTURES / "logs/story/rag-24gb.log")
MISSED = ["check", RAG, "--min-concurrency", "2.5"]

Capture = pytest.CaptureFixture[str]


def test_every_format_goes_to_its_place(tmp_path: Path, capsys: Capture) -> None:
    files = {form: tmp_path / f"report.{form}" for form in RENDERERS if form != "text"}
    flags = [word for form, path in files.items() for word in ("--format", f"{form}={path}")]

    assert main([*MISSED, "--format", "text", *flags]) == 1
    assert capsys.readouterr().out.startswith("FAIL  ")
    assert {form: path.read_text()[:8] for form, path in files.items()} == {
        "json": '{\n  "kin',
        "markdown": "### ❌ kv",
        "junit": "<?xml ve",
        "github": "::error ",
        "html": "<!doctyp",
    }


@pytest.mark.parametrize("flag", ["--output", "--record", "--format"])
def test_a_log_is_not_replaced_by_its_report(flag: str, tmp_path: Path, capsys: Capture) -> None:
    log, link = tmp_path / "vllm.log", tmp_path / "link.log"
    log.write_bytes(Path(RAG).read_bytes())
    link.symlink_to(log)
    named = f"json={link}" if flag == "--format" else str(link)

    assert main(["check", str(log), flag, named]) == 2
    assert "is read by this very command: name another file to write to" in capsys.readouterr().err
    assert log.read_bytes() == Path(RAG).read_bytes()


def test_output_is_where_the_format_without_a_file_goes(tmp_path: Path, capsys: Capture) -> None:
    page, report = tmp_path / "page.txt", tmp_path / "report.json"

    main([*MISSED, "--format", "text", "--format", f"json={report}", "--output", str(page)])

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kvguard: fail: maximum concurrency")
    assert page.read_text().startswith("FAIL  ")
    assert json.loads(report.read_text())["verdict"]["outcome"] == "fail"


def test_a_steps_summary_is_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    main([*MISSED, "--format", f"markdown={summary}"])

    assert summary.read_text().startswith("before\n### ❌ kvguard: fail")


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--format", "yaml"], "--format yaml: no such format; there are text, json, markdown, junit, github, html"),
        (["--format", "json="], "--format json=: a file name belongs behind the ="),
        (["--format", "text", "--format", "json"], "--format json: two formats go to stdout: write --format json=FILE"),
        (["--format", "json=/nowhere/x.json"], "/nowhere/x.json: its folder does not exist: make it first"),
        (["--format", "json=/dev/full", "--output", "x"], "--output x: every --format names its own file already"),
        (["--format", "json=/dev/full"], "/dev/full: cannot be written (no space left on device): name another file"),
    ],
)
def test_a_mistake_is_one_line(flags: list[str], message: str, capsys: Capture) -> None:
    assert main([*MISSED, *flags]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"kvguard: {message}\n"
    assert captured.out == ""


class Screen(io.TextIOWrapper):
    """A stream of that encoding, a terminal or not."""

    def __init__(self, encoding: str, interactive: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.interactive = interactive

    def isatty(self) -> bool:
        return self.interactive


@pytest.mark.parametrize(
    "interactive, environ, color",
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(interactive: bool, environ: dict[str, str], color: bool) -> None:
    assert terminal_of(Screen("utf-8", interactive), environ).color is color


@pytest.mark.parametrize("encoding, shows", [("utf-8", True), ("ascii", False), ("latin-1", False), ("cp1252", False)])
def test_bars_are_for_streams_that_have_them(encoding: str, shows: bool) -> None:
    assert terminal_of(Screen(encoding, interactive=False), {}).unicode is shows


def test_the_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = {}
    for columns in ("72", "100", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        widths[columns] = terminal_of(Screen("utf-8", interactive=True), {"COLUMNS": columns}).width

    assert widths == {"72": 72, "100": 100, "400": 120}
    assert terminal_of(Screen("utf-8", interactive=False), {}).width == 100
