"""A source begins another stream: what it knows, what may just be a rotation, and what a client could make of it."""

from kvguard.guard import Guard
from kvguard.startup.report import Phase
from tests.conftest import FIXTURES

LOG = (FIXTURES / "logs/runs/vllm-0.32.0-cpu-base/server.log").read_bytes()
START = LOG[: LOG.index(b"\n", LOG.index(b"Application startup complete")) + 1]
STATS = (
    b"(APIServer pid=14455) INFO 11-29 16:55:16 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    b"Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 40.0%, Prefix "
    b"cache hit rate: 0.0%\n"
)


def serving() -> Guard:
    guard = Guard()
    guard.feed(START)
    assert guard.report.start is not None
    assert guard.report.start.phase is Phase.READY
    return guard


def phases(guard: Guard) -> tuple[int, Phase | None]:
    start = guard.report.start
    return guard.report.starts, start.phase if start else None


def test_a_log_that_is_rotated_under_a_serving_server_goes_on_with_its_start() -> None:
    guard = serving()

    guard.boundary(certain=False)
    guard.feed(STATS)

    assert phases(guard) == (1, Phase.READY)
    assert guard.report.start is not None
    assert guard.report.start.runtime.peak_running == 3


def test_a_log_that_is_rotated_before_the_server_is_ready_goes_on_with_its_start() -> None:
    half = LOG.index(b"(EngineCore pid=15278) INFO 11-29 16:53:48 [core.py:133]")
    guard = Guard()

    guard.feed(LOG[:half])
    guard.boundary(certain=False)
    guard.feed(START[half:])

    assert phases(guard) == (1, Phase.READY)


def test_a_new_file_that_begins_with_an_announcement_is_a_new_start_although_its_pids_are_known() -> None:
    guard = serving()

    guard.boundary(certain=False)
    guard.feed(START)

    assert phases(guard) == (2, Phase.READY)


def test_an_announcement_further_down_in_a_rotated_file_stays_in_doubt() -> None:
    guard = serving()

    guard.boundary(certain=False)
    guard.feed(STATS + START)

    assert phases(guard) == (2, Phase.READY)
    assert guard.report.contested_by is not None
    assert guard.report.contested_by.runtime.peak_running == 3


def test_a_process_that_the_source_knows_to_be_new_ends_the_start() -> None:
    guard = serving()

    guard.boundary()

    assert phases(guard) == (1, Phase.STOPPED)
