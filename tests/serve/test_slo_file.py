"""The SLO file under a running sidecar: edited, switched as Kubernetes does, broken, removed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kvguard.errors import UserError
from kvguard.serve.slo_file import SloFile
from kvguard.slo.objectives import Slo
from kvguard.sources.documents import read_slo

GOOD = "objectives: {min_concurrency: 2.5}\n"
HIGHER = "objectives: {min_concurrency: 300}\n"
BROKEN = "objectives: {min_concurency: 2.5}\n"


def reading(path: Path) -> Callable[[], Slo]:
    return lambda: read_slo(path)


def following(path: Path) -> SloFile:
    return SloFile(path, reading(path), lambda: 1_000.0)


def target(slo: Slo) -> object:
    return slo.objectives[0].target


def test_an_edit_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    slo_file = following(path)

    path.write_text(HIGHER)

    assert slo_file.poll(10.0)
    assert target(slo_file.slo) == 300


def test_a_file_that_rests_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    slo_file = following(path)

    assert [slo_file.poll(now) for now in (10.0, 20.0)] == [False, False]


def test_it_is_looked_at_once_a_second(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    slo_file = following(path)
    slo_file.poll(10.0)
    path.write_text(HIGHER)

    assert [slo_file.poll(now) for now in (10.5, 11.1)] == [False, True]


def test_a_config_map_switches_a_folder_above_the_file(tmp_path: Path) -> None:
    for version, text in (("v1", GOOD), ("v2", HIGHER)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "slo.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "slo.yaml").symlink_to("..data/slo.yaml")
    slo_file = following(tmp_path / "slo.yaml")

    (tmp_path / "..new").symlink_to("v2")
    (tmp_path / "..new").replace(tmp_path / "..data")

    assert slo_file.poll(10.0)
    assert target(slo_file.slo) == 300


def test_a_broken_edit_keeps_the_last_good_one_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    slo_file = following(path)

    path.write_text(BROKEN)

    assert slo_file.poll(10.0)
    assert target(slo_file.slo) == 2.5
    assert slo_file.status.failures == 1
    assert "did you mean min_concurrency?" in (slo_file.status.problem or "")


def test_a_mended_file_is_in_force_again(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    slo_file = following(path)
    path.write_text(BROKEN)
    slo_file.poll(10.0)

    path.write_text(HIGHER)
    slo_file.poll(20.0)

    assert (target(slo_file.slo), slo_file.status.problem, slo_file.status.failures) == (300, None, 1)


def test_a_removed_file_keeps_the_last_good_one(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(GOOD)
    slo_file = following(path)

    path.unlink()

    assert slo_file.poll(10.0)
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
