"""What the SLO makes of warnings: those of the report, and those that only the judge can see."""

from collections.abc import Iterable, Iterator

from kvguard.slo.objectives import Severity, Slo
from kvguard.slo.refusal import no_room
from kvguard.slo.verdict import JudgedWarning
from kvguard.startup.report import Phase, Start, StartWarning
from kvguard.units import format_count, format_quantity


def judged_warnings(start: Start | None, slo: Slo, found: Iterable[StartWarning]) -> tuple[JudgedWarning, ...]:
    """Each warning once by code and place, with its severity; `found` are those of the checks."""
    if start is None:
        return ()
    misread = () if slo.workload else _more_than_printed(start)  # a declared workload says it better
    warnings = dict.fromkeys((*start.warnings, *_of_the_course(start), *misread, *found))
    return tuple(JudgedWarning(w.code, _severity(w.code, start, slo), w.message, w.place) for w in warnings)


def _of_the_course(start: Start) -> Iterator[StartWarning]:
    if start.phase is Phase.ALLOCATED:
        yield StartWarning(
            "start-not-finished", "the capacity is reported, the server is not ready yet", start.last_place
        )
    yield from _of_the_pool(start)


def _of_the_pool(start: Start) -> Iterator[StartWarning]:
    """A pool that no request of the context fits into, or that there is no memory for."""
    without = no_room(start)
    if without is not None:
        yield without
        return
    printed, blocks = start.capacity.weakest.max_concurrency, start.capacity.weakest.gpu_blocks
    # a model without attention has no pool, and vLLM prints 0 blocks and 0.00x of it (V0)
    if printed is not None and printed < 1 and blocks != 0 and start.phase is not Phase.FAILED:
        length = start.capacity.weakest.max_model_len
        request = (
            "a request of max_model_len" if length is None else f"a request of {format_quantity(length, 'tokens')}"
        )
        message = f"{request} never fits into the pool ({format_count(printed)}x) and would wait for ever"
        yield StartWarning("context-exceeds-pool", message, start.lines.get("max_concurrency"))


def _more_than_printed(start: Start) -> Iterator[StartWarning]:
    """People take the printed figure for an admission limit: it counts requests of the whole context."""
    printed, running = start.capacity.weakest.max_concurrency, start.runtime.peak_running
    if printed is not None and running is not None and running > printed:
        ran, most = format_count(running), format_count(printed)
        message = (
            f"{ran} requests ran at once, more than the maximum concurrency of {most}: that figure counts requests of "
            "max_model_len tokens, and is no cap"
        )
        yield StartWarning("concurrency-is-no-cap", message, start.runtime.place)


def _severity(code: str, start: Start, slo: Slo) -> Severity:
    # a shorter context that the SLO itself expects is declared, not silent
    if code == "context-auto-reduced" and code not in slo.severities:
        served = start.capacity.weakest.max_model_len or start.max_model_len
        if served is not None and slo.target("expect_max_model_len") == served:
            return Severity.NOTE
    # and so is a pool for less than one request of max_model_len
    if code == "context-exceeds-pool" and code not in slo.severities:
        asked = slo.target("min_concurrency")
        if asked is not None and float(asked) < 1:
            return Severity.WARN
    return slo.severity(code)
