"""The SLO file under a running sidecar: edited, switched as Kubernetes does, broken, removed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvguard.errors import UserError
from kvguard.serve.slo_file import SETTLE_S, SloFile
from kvguard.slo.objectives import Slo
from kvguard.sources.documents import read_slo

GOOD = "objectives: {min_concurrency: 2.5}\n"
HIGHER = "objectives: {min_concurrency: 300}\n"
BROKEN = "objectives: {min_concurency: 2.5}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An SLO file that is good so far."""
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    return path


def reading(path: Path) -> Callable[[], Slo]:
    return lambda: read_slo(path)


def following(path: Path) -> SloFile:
    return SloFile(path, reading(path), lambda: 1_000.0)


def polled(slo_file: SloFile, now: float) -> bool:
    """Two looks: at the first a change is seen, at the second it has rested."""
    return slo_file.poll(now) or slo_file.poll(now + SETTLE_S)


def target(slo: Slo) -> object:
    return slo.objectives[0].target


def test_an_edit_is_taken_over(path: Path) -> None:
    slo_file = following(path)

    path.write_text(HIGHER)

    assert polled(slo_file, 10.0)
    assert target(slo_file.slo) == 300


def test_a_file_that_rests_is_not_read_again(path: Path) -> None:
    slo_file = following(path)

    assert [slo_file.poll(now) for now in (10.0, 20.0)] == [False, False]


def test_it_is_looked_at_once_a_second(path: Path) -> None:
    slo_file = following(path)
    slo_file.poll(10.0)
    path.write_text(HIGHER)

    assert [slo_file.poll(now) for now in (10.5, 11.1, 11.2, 11.3)] == [False, False, False, True]


def test_a_file_that_is_being_written_is_not_taken_over_by_halves(path: Path) -> None:
    slo_file = following(path)

    seen = []
    for number, part in enumerate(("", "objectives:\n", "  min_concurrency: 300\n", "")):
        with path.open("a" if number else "w") as file:
            file.write(part)
        seen.append(slo_file.poll(10.0 + number * SETTLE_S))

    assert seen == [False, False, False, True]
    assert (target(slo_file.slo), slo_file.status.failures) == (300, 0)


def test_a_config_map_switches_a_folder_above_the_file(tmp_path: Path) -> None:
    for version, text in (("v1", GOOD), ("v2", HIGHER)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "slo.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "slo.yaml").symlink_to("..data/slo.yaml")
    slo_file = following(tmp_path / "slo.yaml")

    (tmp_path / "..new").symlink_to("v2")
    (tmp_path / "..new").replace(tmp_path / "..data")

    assert polled(slo_file, 10.0)
    assert target(slo_file.slo) == 300


def test_a_broken_edit_keeps_the_last_good_one_and_says_why(path: Path) -> None:
    slo_file = following(path)

    path.write_text(BROKEN)

    assert polled(slo_file, 10.0)
    assert target(slo_file.slo) == 2.5
    assert slo_file.status.failures == 1
    assert "did you mean min_concurrency?" in (slo_file.status.problem or "")


def test_a_mended_file_is_in_force_again(path: Path) -> None:
    slo_file = following(path)
    path.write_text(BROKEN)
    polled(slo_file, 10.0)

    path.write_text(HIGHER)
    polled(slo_file, 20.0)

    assert (target(slo_file.slo), slo_file.status.problem, slo_file.status.failures) == (300, None, 1)


@pytest.mark.parametrize("kind", [AttributeError, KeyError, RecursionError, MemoryError, OSError])
def test_what_no_reader_foresaw_keeps_the_last_good_one(path: Path, kind: type[Exception]) -> None:
    def read() -> Slo:
        if path.read_text() == BROKEN:
            raise kind("its own words")
        return read_slo(path)

    slo_file = SloFile(path, read, lambda: 1_000.0)
    path.write_text(BROKEN)

    assert polled(slo_file, 10.0)
    assert target(slo_file.slo) == 2.5
    problem = f"{path}: cannot be read ({kind.__name__}): check it with kvguard slo check"
    assert (slo_file.status.problem, slo_file.status.failures) == (problem, 1)


def test_a_removed_file_keeps_the_last_good_one(path: Path) -> None:
    slo_file = following(path)

    path.unlink()

    assert polled(slo_file, 10.0)
    assert target(slo_file.slo) == 2.5
    assert "no such file" in (slo_file.status.problem or "")


def test_a_file_that_is_broken_at_the_start_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(BROKEN)

    with pytest.raises(UserError, match="min_concurency"):
        following(path)


def test_flags_alone_never_change() -> None:
    slo_file = SloFile(None, Slo, lambda: 1_000.0)

    assert not slo_file.poll(10.0)
    assert slo_file.status.path is None


@pytest.mark.parametrize(
    "garbage, told",
    [
        (b"", "an SLO file is a mapping"),
        (b"\0\377\376garbage", "not a text file"),
        (b"\x7fELF" + bytes(1000), "not"),
        (b"[" * 100_000, "neither YAML nor JSON"),
        (b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "no such key"),
        (b"{}: {}\n", "neither YAML nor JSON"),
        (b"? [objectives]\n: 1\n", ""),
        (b"objectives: {min_concurrency: .nan}\n", "min_concurrency"),
        (b"!!python/object/apply:os.system [true]\n", ""),
        (b"x" * (17 * 2**20), "not a file written for kvguard"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_garbage_in_its_place_is_told_in_one_line(garbage: bytes, told: str, path: Path) -> None:
    slo_file = following(path)

    path.write_bytes(garbage)

    assert polled(slo_file, 10.0)
    assert target(slo_file.slo) == 2.5
    problem = slo_file.status.problem or ""
    assert (told in problem, problem.startswith(str(path)), "\n" in problem) == (True, True, False)


@pytest.mark.parametrize(
    "put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path)], ids=["named pipe", "folder", "loop"]
)
def test_what_is_no_file_is_told_and_holds_nobody_up(put: Callable[[Path], object], path: Path) -> None:
    slo_file = following(path)

    path.unlink()
    put(path)

    assert polled(slo_file, 10.0)
    assert (target(slo_file.slo), slo_file.status.failures) == (2.5, 1)
