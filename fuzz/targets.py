"""What is fuzzed: from bytes to an assertion that holds for any bytes whatever.

No target may raise anything but an `AssertionError`, and that only over a fault of kvguard's.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import process_time
from types import MappingProxyType

import regex

from fuzz.belief import assert_told_by_the_text
from kvguard.errors import ConfigError
from kvguard.events import Event
from kvguard.guard import Guard
from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.layout import lay_out
from kvguard.kvcache.model_config import parse_model_config
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.pool import describe_pool, pool_blocks
from kvguard.lines.framing import MAX_LINE_BYTES, LineFramer
from kvguard.lines.head import clean, envelope, strip
from kvguard.slo.evaluate import evaluate
from kvguard.slo.file import mistakes_of, read_settings
from kvguard.slo.settings import slo_of
from kvguard.startup.report import CapacityReport
from kvguard.units import GIB

Target = Callable[[bytes], None]
_SIZES = (1, 2, 3, 7, 64, 1021)


def framing(data: bytes) -> None:
    """The same lines for any chunking, of bounded length, and nothing but the input's own bytes."""
    whole = _framed([data])

    assert _framed(_chunks(data)) == whole
    assert all(b"\n" not in line and len(line) <= MAX_LINE_BYTES for _, line in whole)
    assert [number for number, _ in whole] == sorted({number for number, _ in whole})


def prefixes(data: bytes) -> None:
    """What is taken off the front leaves an end of the text, in one pass as in two."""
    for line in data.decode("utf-8", "replace").split("\n"):
        text = clean(line)
        outer = envelope(text)
        head = strip(outer.message, outer)
        if not head.json:
            assert regex.sub(r"\W+", "", head.message) in regex.sub(r"\W+", "", text)
        assert head.pid is None or head.pid < 10**12


def parser(data: bytes) -> None:
    """The same report and verdict for any chunking; each event is told by its text, and the text is there."""
    events: list[Event] = []
    one, other = _guard([data], events), _guard(_chunks(data), [])

    for event in events:
        assert_told_by_the_text(event, data)
    assert _without_counts(one.report) == _without_counts(other.report)
    assert one.verdict.checks == other.verdict.checks
    assert one.verdict.reasons == other.verdict.reasons


def slo(data: bytes) -> None:
    """An SLO file is read, or refused in lines that each name it; what is read judges any start."""
    text = data.decode("utf-8", "replace")
    mistakes = mistakes_of(text, "slo.yaml")
    assert all(one.startswith("slo.yaml") and "\n" not in one for one in mistakes)
    if not mistakes:
        evaluate(_STARTED.report, slo_of(read_settings(text, "slo.yaml")), now=0.0)


def model_config(data: bytes) -> None:
    """A config.json is laid out, or refused in one line; a pool of it holds no negative number of anything."""
    refusal = ""
    try:
        options = Options()
        model = read_model(parse_model_config(data.decode("utf-8", "replace"), "config.json"), options)
        layout = lay_out(model, resolve(options, model)[0])
        pool = describe_pool(layout, pool_blocks(layout, [8 * GIB] * len(layout.stages))[0])
        assert pool.blocks >= 0
        assert pool.tokens >= 0
    except ConfigError as error:
        refusal = str(error)
    assert "\n" not in refusal


TARGETS: Mapping[str, Target] = MappingProxyType(
    {"framing": framing, "prefixes": prefixes, "parser": parser, "slo": slo, "model_config": model_config}
)
"""Every target by its name, which is its folder's as well."""

BASE_S, SECONDS_A_BYTE = 1.0, 0.001
"""Of the processor: fifty times what the slowest target takes, and still far below anything that is not linear."""


def within_its_time(target: Target, data: bytes) -> None:
    """Run a target, and hold it to time that is linear in what it was given."""
    began = process_time()
    target(data)
    assert process_time() - began < BASE_S + len(data) * SECONDS_A_BYTE


_STARTED = Guard()
_STARTED.feed(
    b"INFO 11-29 16:54:34 [kv_cache_utils.py:2327] GPU KV cache size: 40,960 tokens, "
    b"Maximum concurrency for 4096 tokens per request: 10.00x\n"
)


def _without_counts(report: CapacityReport) -> CapacityReport:
    """How many records were read turns on how many were passed over, and that on the blocks they came in."""
    counts = report.counts
    return replace(report, counts=replace(counts, matched=0, records=min(counts.records, 1)))


def _chunks(data: bytes) -> list[bytes]:
    """The data cut into pieces whose sizes follow from it: a failure comes back with its input."""
    size = _SIZES[sum(data[:64]) % len(_SIZES)]
    return [data[start : start + size] for start in range(0, len(data), size)]


def _framed(chunks: list[bytes]) -> list[tuple[int, bytes]]:
    framer = LineFramer()
    return [*(line for chunk in chunks for line in framer.feed(chunk)), *framer.end()]


def _guard(chunks: list[bytes], told: list[Event]) -> Guard:
    guard = Guard(witness=told.append)
    for chunk in chunks:
        guard.feed(chunk)
    guard.end()
    return guard
