"""What a stranger did to whole logs of real servers: cut, doubled, packed, re-encoded; no figure changes."""

import csv
import gzip
import html
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.cli import main
from kvguard.cli.exit_status import UNKNOWN, USAGE
from kvguard.slo.verdict import Outcome
from tests.attacks.strangers import log_of

ONE_START = (
    "vllm-0.8.5.post2-cpu-base-load",
    "vllm-0.10.2.post2-cpu-tp2",
    "vllm-0.13.0-cpu-dp2",
    "vllm-0.20.2-cpu-gemma3-hybrid",
    "vllm-0.27.1-cpu-dp2",
    "vllm-0.32.0-cpu-json",
    "vllm-0.32.0-cpu-mla-deepseek",
)
BASE = "vllm-0.32.0-cpu-base"


def told(guard: Guard) -> tuple[object, ...]:
    """The figures that a report gives, and the server that they are of."""
    start = guard.report.start
    assert start is not None
    figures = start.capacity.weakest
    return (
        start.model,
        start.vllm_version,
        figures.max_model_len,
        figures.max_concurrency,
        figures.kv_cache_tokens,
        figures.kv_cache_bytes,
    )


def agree(some: tuple[object, ...], whole: tuple[object, ...]) -> bool:
    """Whether what is told of a piece is told of the whole log as well."""
    return all(fact in (None, final) for fact, final in zip(some, whole, strict=True))


def read(log: bytes) -> Guard:
    guard = Guard()
    guard.feed(log)
    guard.end()
    return guard


@pytest.mark.parametrize("run", ONE_START)
def test_a_log_that_stops_anywhere_passes_with_no_other_figure(run: str) -> None:
    whole = told(read(log_of(run)))
    guard = Guard()

    for line in log_of(run).splitlines(keepends=True):
        guard.feed(line)
        assert guard.verdict.outcome is not Outcome.FAIL
        if guard.report.start is not None:
            assert agree(told(guard), whole)


@pytest.mark.parametrize("run", ONE_START)
def test_a_log_that_begins_anywhere_tells_no_other_figure(run: str) -> None:
    whole = told(read(log_of(run)))
    lines = log_of(run).splitlines(keepends=True)

    for begin in range(0, len(lines), 3):
        guard = read(b"".join(lines[begin:]))
        if guard.report.start is not None:
            assert agree(told(guard), whole)


@pytest.mark.parametrize("run", ["vllm-0.10.2.post2-cpu-toolong", "vllm-0.32.0-cpu-toolong"])
def test_no_piece_of_a_refused_start_passes(run: str) -> None:
    guard = Guard()

    for line in log_of(run).splitlines(keepends=True):
        guard.feed(line)
        assert guard.verdict.outcome is not Outcome.PASS


@pytest.mark.parametrize("run", ONE_START)
def test_a_log_whose_lines_all_stand_twice_is_read_as_one(run: str) -> None:
    """Two handlers of a logging configuration, or two shippers into one file."""
    doubled = read(b"".join(line * 2 for line in log_of(run).splitlines(keepends=True)))

    assert told(doubled) == told(read(log_of(run)))
    assert doubled.report.starts == 1


def test_a_log_pasted_twice_is_read_as_its_last_copy() -> None:
    assert told(read(log_of(BASE) * 2)) == told(read(log_of(BASE)))


def as_csv(text: str) -> str:
    """What a log explorer exports: every field quoted."""
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(["2026-11-29 17:00:00", line] for line in text.splitlines())
    return written.getvalue()


def each(write: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(f"{write(line)}\n" for line in text.splitlines())


READABLE: dict[str, Callable[[str], bytes]] = {
    name: (lambda text, write=write: write(text).encode())
    for name, write in {
        "a repr": repr,
        "a JSON array of lines": lambda text: json.dumps(text.splitlines()),
        "a JSON object": lambda text: json.dumps({"log": text}),
        "escaped line ends": lambda text: text.replace("\n", "\\n"),
        "one space for several": lambda text: text.replace("  ", " "),
        "spaces that do not break": lambda text: text.replace(" ", "\u00a0"),
        "a patch": each(lambda line: f"+{line}"),
        "quoted twice": each(lambda line: f"> > {line}"),
        "behind tabs": each(lambda line: f"2026-11-29 17:00:00\tvllm-0\t{line}"),
    }.items()
} | {
    "UTF-32": lambda text: text.encode("utf-32"),
    "UTF-32, big end first": lambda text: text.encode("utf-32-be"),
}


@pytest.mark.parametrize("form", READABLE)
def test_a_log_in_another_form_tells_the_same_figures(form: str) -> None:
    text = log_of(BASE).decode()

    assert told(read(READABLE[form](text))) == told(read(log_of(BASE)))


FOREIGN: dict[str, Callable[[str], str]] = {
    "a CSV export": as_csv,
    "a JSON array over lines": lambda text: json.dumps(text.splitlines(), indent=1),
    "HTML": lambda text: f"<pre>{html.escape(text)}</pre>",
    "upside down": lambda text: "\n".join(reversed(text.splitlines())),
    "capitals": str.upper,
    "points for commas": lambda text: text.replace("1,048,576", "1.048.576").replace("4,096", "4.096"),
    "line ends lost": lambda text: text.replace("\n", " "),
}


@pytest.mark.parametrize("form", FOREIGN)
def test_a_form_that_may_not_be_read_gives_no_other_figure(form: str) -> None:
    guard = read(FOREIGN[form](log_of(BASE).decode()).encode())

    if guard.report.start is not None:
        assert agree(told(guard)[2:], told(read(log_of(BASE)))[2:])


def interleaved(one: bytes, other: bytes, every: int) -> Iterator[bytes]:
    """Lines of two logs in turn, so many at a time."""
    queues = [one.splitlines(keepends=True), other.splitlines(keepends=True)]
    while any(queues):
        for queue in queues:
            yield from queue[:every]
            del queue[:every]


@pytest.mark.parametrize("every", [1, 3, 7])
def test_a_log_beside_itself_is_one_server(every: int) -> None:
    guard = read(b"".join(interleaved(log_of(BASE), log_of(BASE), every)))

    assert told(guard) == told(read(log_of(BASE)))


@pytest.mark.parametrize("lost", range(0, 60, 7))
def test_pieces_in_the_wrong_order_are_unknown_or_the_same(lost: int) -> None:
    """Rotated files given with the newest first."""
    lines = log_of(BASE).splitlines(keepends=True)

    guard = read(b"".join(lines[lost:] + lines[:lost]))

    if guard.verdict.outcome is Outcome.PASS:
        assert told(guard)[3:] == told(read(log_of(BASE)))[3:]


def test_a_broken_archive_is_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress(log_of(BASE))
    for name, content in {"cut": packed[:-30], "cut early": packed[:200], "junk behind": packed + b"junk" * 9}.items():
        (tmp_path / name).write_bytes(content)
        assert main(["check", str(tmp_path / name), "-q"]) == USAGE
        assert "broken archive" in capsys.readouterr().err


def test_an_archive_of_nothing_but_zeros_is_no_log(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes(30_000_000)))

    assert main(["check", str(bomb), "-q"]) == UNKNOWN


def test_members_of_an_archive_are_one_log(tmp_path: Path) -> None:
    log = log_of(BASE)
    file = tmp_path / "vllm.log.gz"
    file.write_bytes(b"".join(gzip.compress(log[a:b]) for a, b in [(0, 5000), (5000, len(log))]))

    assert main(["check", str(file), "--min-concurrency", "256", "-q"]) == 0
