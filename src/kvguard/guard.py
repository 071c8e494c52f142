"""`Guard`: the parser, the start-up fold and the evaluation in one object, which every face feeds and reads.

A guard opens nothing and asks no clock. Feed it bytes as they come; it holds one immutable verdict at any time.
Several logs are several nodes of one deployment: one guard a log, joined by `judge`.
"""

from collections.abc import Callable, Iterator, Sequence

from kvguard.events import Event
from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat
from kvguard.lines.parser import StartupLogParser
from kvguard.lines.scouting import Scout, Stretch
from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Verdict
from kvguard.slotted import replace
from kvguard.startup.deployment import join, of_containers
from kvguard.startup.fold import StartupFold
from kvguard.startup.report import CapacityReport, LogCounts


class Guard:
    """Judge one vLLM start-up log against an SLO.

    Args:
        slo: what is asked; without it the start alone is judged.
        source: the log's name in reports and places.
        formats: the table of wordings, where a user has added rows; else the program's own.
        witness: is shown each event before it is taken, as `kvguard explain` needs it.

    Example:
        >>> from kvguard import Guard
        >>> guard = Guard()
        >>> guard.feed(b"GPU KV cache size: 40,960 tokens\\n")
        >>> guard.report.start.capacity.weakest.kv_cache_tokens
        40960
    """

    def __init__(
        self,
        slo: Slo | None = None,
        source: str = "log",
        formats: tuple[LineFormat, ...] | None = None,
        witness: Callable[[Event], None] | None = None,
    ) -> None:
        self._slo = slo or Slo()
        self._source = source
        self._parser = StartupLogParser(FORMATS if formats is None else formats, asks_who_serves=True)
        self._folds: dict[str | None, StartupFold] = {}
        self._witness = witness
        self._now: float | None = None
        self._exit_status: int | None = None
        self._report: CapacityReport | None = None
        self._verdict: Verdict | None = None

    def feed(self, data: bytes, now: float | None = None) -> None:
        """Take the next bytes of the log, split anywhere; `now` is when they came, in seconds of any steady clock."""
        self._take(self._parser.feed(data), now)

    def scout(self) -> Scout | None:
        """Who can look ahead in the log for what need not be read; `None` before the server serves."""
        return self._parser.scout()

    def pass_over(self, stretch: Stretch, scout: Scout) -> bool:
        """Take what a scout has passed over as if it had been fed, without it.

        Returns:
            False where it must be fed: a line is open, or what is known is no longer what the scout has known.
        """
        events = self._parser.pass_over(stretch, scout)
        if events is None:
            return False
        self._take(events, None)
        return True

    def end(self, now: float | None = None, exit_status: int | None = None) -> None:
        """No more bytes: the last line needs no newline.

        Args:
            now: as for `feed`.
            exit_status: of the process that wrote the log, as a shell gives it, where the source saw its end.
        """
        self._take(self._parser.end(), now)
        self._exit_status = exit_status
        if exit_status is not None:
            for fold in self._folds.values():
                fold.exited(exit_status)

    def boundary(self, now: float | None = None, certain: bool = True) -> None:
        """Another stream begins here, and an open line is not continued.

        Args:
            now: as for `feed`.
            certain: the source knows that a new process writes it (a new container, a restarted child). Otherwise it
                may be the same one, its log rotated or truncated.
        """
        self._take(self._parser.passed_over(), now)
        self._parser.boundary()
        for container, fold in self._folds.items():
            fold.boundary(certain)
            self._follow(container, fold)
        self._changed(now)

    def tick(self, now: float) -> None:
        """Time has passed without bytes."""
        self._now = now
        self._verdict = None

    def set_slo(self, slo: Slo) -> None:
        """Judge by another SLO from now on."""
        self._slo = slo
        self._verdict = None

    @property
    def slo(self) -> Slo:
        """The SLO in force."""
        return self._slo

    @property
    def report(self) -> CapacityReport:
        """What the log says of its newest start; frozen."""
        if self._report is None:
            self._take(self._parser.passed_over(), self._now)
            first, *others = self._told()
            told = of_containers([first.report(self._counts()), *(fold.report(LogCounts()) for fold in others)])
            self._report = replace(told, exit_status=self._exit_status)
        return self._report

    @property
    def verdict(self) -> Verdict:
        """What the evidence says under the SLO; frozen."""
        if self._verdict is None:
            self._verdict = evaluate(self.report, self._slo, self._now)
        return self._verdict

    def _take(self, events: Iterator[Event], now: float | None) -> None:
        for event in events:
            if self._witness is not None:
                self._witness(event)
            container = event.origin.container
            fold = self._fold(self._folds, container)
            fold.apply(event, now)
            self._follow(container, fold)
        self._changed(now)

    def _follow(self, container: str | None, fold: StartupFold) -> None:
        """Lines are parsed one by one as the events are asked for: the parser knows at once that users can write."""
        self._parser.follow(container, fold.serving, fold.doubtful, fold.asks_who_serves)

    def _told(self) -> list[StartupFold]:
        """The folds that a vLLM speaks in (else the first), with what the parser still holds back told to copies."""
        pending = self._parser.pending()
        folds = dict(self._folds)
        if pending:
            import copy
        for container in {event.origin.container for event in pending}:
            folds[container] = copy.deepcopy(self._fold(folds, container))
        for event in pending:
            folds[event.origin.container].apply(event, self._now)
        every = list(folds.values()) or [StartupFold(self._source)]
        return [fold for fold in every if fold.tells_of_vllm] or every[:1]

    def _fold(self, folds: dict[str | None, StartupFold], container: str | None) -> StartupFold:
        fold = folds.get(container)
        if fold is None:
            fold = folds[container] = StartupFold(self._source)
        return fold

    def _changed(self, now: float | None) -> None:
        if now is not None:
            self._now = now
        self._report = None
        self._verdict = None

    def _counts(self) -> LogCounts:
        parser = self._parser
        return LogCounts(
            bytes=parser.framer.bytes,
            lines=parser.framer.lines,
            matched=parser.tally.matched,
            unrecognized=parser.tally.unrecognized,
            truncated=parser.framer.truncated + parser.tally.cut,
            records=parser.tally.records,
        )


def judge(guards: Sequence[Guard], slo: Slo, now: float | None = None) -> Verdict:
    """Judge several logs as the nodes of one deployment."""
    return evaluate(join([guard.report for guard in guards]), slo, now)
