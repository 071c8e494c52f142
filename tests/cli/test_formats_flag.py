"""`--formats FILE`: a user's own rows tell like the project's, and are held to the same rules."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kvguard.cli import main
from tests.conftest import FIXTURES

ROWS = FIXTURES / "formats" / "acme.yaml"
LINE = "(EngineCore pid=7) INFO 11-29 16:54:34 [worker.py:7] ACME pool ready: 40,960 tokens\n"

Capture = pytest.CaptureFixture[str]


def test_a_wording_of_ones_own_is_told(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "acme.log"
    log.write_text(LINE)
    words = ["check", str(log), "--min-kv-cache-tokens", "40960"]

    assert main(words) == 3
    assert main([*words, "--formats", str(ROWS)]) == 0
    assert main(["explain", str(log), "--formats", str(ROWS)]) == 0
    assert main(["inspect", str(log), "--formats", str(ROWS)]) == 0
    assert "1  acme-pool-tokens  kv_cache_tokens 40,960\n" in capsys.readouterr().out


def test_the_documentation_shows_this_very_file() -> None:
    page = (FIXTURES.parent / "docs" / "check.md").read_text()
    shown = page.partition("```yaml\n")[2].partition("```")[0]

    assert yaml.safe_load(shown) == yaml.safe_load(ROWS.read_text())


def changed(folder: Path, **change: Any) -> Path:
    document = yaml.safe_load(ROWS.read_text())
    document["formats"][0].update(change)
    path = folder / "rows.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


SAMPLE = {"line": LINE.strip(), "tells": [{"event": "KvCacheSize", "kv_cache_tokens": 40960}]}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"nmae": "x"}, "formats.0.nmae: extra inputs are not permitted"),
        ({"scope": "node"}, "formats.0.scope: input should be 'rank', 'engine' or 'process'"),
        ({"samples": []}, "formats.0.samples: list should have at least 1 item"),
        ({"name": "kv-cache-size"}, "kv-cache-size: there is a row of that name already"),
        ({"emits": ["Capacity"]}, "acme-pool-tokens: emits 'Capacity', which is no event; there are: ServerAnnounced"),
        ({"pattern": "ACME pool ready: (.*) tokens"}, "acme-pool-tokens: "),
        ({"pattern": "ACME pool ready: (?P<tokes>[0-9]{1,9}+) tokens"}, "acme-pool-tokens: 'tokes' is a field of none"),
        (
            {"samples": [{**SAMPLE, "line": "ACME pool is ready"}]},
            "'ACME pool is ready' is described by no row",
        ),
        (
            {"samples": [{**SAMPLE, "tells": []}]},
            "acme-pool-tokens: its sample '(EngineCore pid=7) ",
        ),
        ({"near_misses": [LINE.strip()]}, "is described by acme-pool-tokens"),
    ],
)
def test_a_row_that_is_not_sound_is_refused_in_one_line(
    change: dict[str, Any], message: str, tmp_path: Path, capsys: Capture
) -> None:
    path = changed(tmp_path, **change)

    assert main(["explain", str(ROWS), "--formats", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"kvguard: {path}: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("text", ["[", "just text", "", "version: 2\nformats: []"])
def test_what_is_no_such_file_is_refused(text: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text(text)

    assert main(["explain", str(ROWS), "--formats", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_row_that_takes_a_known_wording_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = changed(
        tmp_path,
        literal=" KV cache size: ",
        pattern=r"GPU KV cache size: (?P<kv_cache_tokens>\d{1,15}+(?:,\d{3}){0,5}+) tokens",
        samples=[{**SAMPLE, "line": LINE.strip().replace("ACME pool ready", "GPU KV cache size")}],
    )

    assert main(["explain", str(ROWS), "--formats", str(path)]) == 2
    assert "is described by kv-cache-size and acme-pool-tokens, not by this row alone" in capsys.readouterr().err
