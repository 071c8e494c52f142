"""Each wording in each envelope, printed by each shape of a deployment: it tells what it tells bare, and of whom.

One log holds every wording of the table; from turn to turn each is printed by another shape, so that each pair of
wording, envelope and shape meets. The shapes' whole logs, with what their ranks and engines come to, are put into each
envelope as well.
"""

import functools
from pathlib import Path
from typing import Any

import pytest

from kvguard.events import Event
from kvguard.lines.parser import StartupLogParser
from kvguard.lines.samples import plain
from kvguard.startup.failures import is_failure
from tests.lines.compositions import SHAPES, composed, printed
from tests.lines.envelopes import DATING, ENVELOPES
from tests.lines.test_envelopes import read

DEPLOYMENTS = sorted((Path(__file__).parents[2] / "fixtures" / "logs" / "shapes").glob("*.log"))
CUTTING = ("terminal", "viewer", "tmux")
LEFT_OUT = dict.fromkeys(
    ("terminal 100, indented", "viewer 100, at spaces", "viewer 120, at spaces, quoted"), "fail-oom"
)
"""A failure that another one quotes at the beginning of a wrapped line is told as well, of nobody."""
TURNS = range(len(SHAPES))
Told = tuple[str, dict[str, Any], tuple[object, ...]]


def told(log: bytes) -> list[Told]:
    """Each event of a log: its row, what it tells, and of whom."""
    parser = StartupLogParser()
    return [
        (event.format, plain(event, event.origin.text or ""), (*whose(event), event.origin.file, is_failure(event)))
        for event in (*parser.feed(log), *parser.end())
    ]


def whose(event: Event) -> tuple[object, ...]:
    origin = event.origin
    return origin.role, origin.pid, origin.engine, origin.rank, origin.node


@functools.cache
def bare(turn: int, cut: bool = False) -> list[Told]:
    return told(composed(turn, cut).encode())


@pytest.mark.parametrize("turn", TURNS)
def test_every_wording_tells_what_its_sample_says_of_whoever_has_printed_it(turn: int) -> None:
    expected = []
    for row, speaker, _, events in printed(turn):
        for event in events:
            engine = event.get("engine", speaker.engine)
            facts = event if engine is None else {**event, "engine": engine}
            expected.append((row, facts, (speaker.role, speaker.pid, engine, speaker.rank, speaker.node)))

    assert [(row, facts, speaker[:5]) for row, facts, speaker in bare(turn)] == expected


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_no_envelope_changes_what_a_wording_tells(envelope: str) -> None:
    turn = list(ENVELOPES).index(envelope) % len(SHAPES)
    cut = envelope.startswith(CUTTING)

    found = [event for event in told(ENVELOPES[envelope](composed(turn, cut))) if event[0] != LEFT_OUT.get(envelope)]
    expected = [event for event in bare(turn, cut) if event[0] != LEFT_OUT.get(envelope)]

    assert [event for event in found if event not in expected] == []
    assert [event for event in expected if event not in found] == []
    assert len(found) == len(expected)


@pytest.mark.parametrize("envelope", sorted(set(ENVELOPES) - DATING - {"torn utf-8"}))
def test_no_envelope_changes_what_ranks_and_engines_come_to(envelope: str) -> None:
    for log in DEPLOYMENTS:
        text = log.read_text(encoding="utf-8")
        assert read(ENVELOPES[envelope](text)) == read(text.encode()), log.stem
