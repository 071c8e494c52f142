"""What somebody tried who had read only the documentation: pass a bad server, fail a good one, end the program."""

import gzip
import os
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.exit_status import MISSED, USAGE
from kvguard.sources import documents
from tests.attacks.strangers import RUNS

LOG = RUNS / "vllm-0.32.0-cpu-base" / "server.log"
"""One engine of 256 requests."""


@pytest.fixture
def other_name(tmp_path: Path) -> Path:
    link = tmp_path / "current.log"
    link.symlink_to(LOG)
    return link


def test_a_node_does_not_count_twice(other_name: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two nodes of 256 requests would meet 500; a glob over a folder with `current.log` in it names one log twice."""
    for names in ([str(LOG), str(LOG)], [str(LOG), str(other_name)], [str(LOG), os.path.relpath(LOG)]):
        assert main(["check", *names, "--min-total-concurrency", "500"]) == USAGE
        assert "the same log as" in capsys.readouterr().err


def test_a_copy_is_no_node_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two nodes never print the same lines to the byte: their pids, stamps and durations differ."""
    copy, packed = tmp_path / "a.log", tmp_path / "a.log.gz"
    copy.write_bytes(LOG.read_bytes())
    packed.write_bytes(gzip.compress(LOG.read_bytes()))

    for other in (copy, packed):
        assert main(["check", str(LOG), str(other), "--min-total-concurrency", "500"]) == USAGE
        assert f"the same lines as in {LOG}" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["nan", "inf", "-1", "1e999", "9" * 400, "", "0x10", "２.５.1"])
def test_no_target_is_met_by_being_no_number(target: str) -> None:
    assert main(["check", str(LOG), f"--min-concurrency={target}", "-q"]) in (USAGE, MISSED)


@pytest.mark.parametrize(
    "written",
    [
        "formats: [" + "9" * 5000 + "]",
        "a: &a [x, x]\nb: &b [*a, *a]\nformats: *b",
        "formats: " + "[" * 3000 + "]" * 3000,
        "\x00",
    ],
)
def test_no_file_of_formats_ends_the_program(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "formats.yaml").write_text(written)

    assert main(["check", str(LOG), "--formats", str(tmp_path / "formats.yaml"), "-q"]) == USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_pipe_into_which_nobody_writes_hangs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(documents, "PATIENCE_S", 0)
    os.mkfifo(tmp_path / "slo.yaml")

    assert main(["check", str(LOG), "--slo", str(tmp_path / "slo.yaml"), "-q"]) == USAGE
    assert "a named pipe into which nobody writes" in capsys.readouterr().err


def test_a_shells_pipe_stands_for_a_file() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"objectives: {min_concurrency: 300}")
    os.close(writer)

    assert main(["check", str(LOG), "--slo", f"/dev/fd/{reader}", "-q"]) == MISSED
    os.close(reader)


@pytest.mark.parametrize("words", ["history /dev/zero", "slo check /dev/zero", "diff /dev/null /dev/zero"])
def test_a_device_without_an_end_is_no_document(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == USAGE
    assert capsys.readouterr().err.count("\n") == 1
