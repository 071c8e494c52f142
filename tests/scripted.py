"""A source that says what stands in its script; for tests, and for the week that `bench/soak.py` simulates."""

from collections import deque
from collections.abc import Sequence

from kvguard.slotted import replace
from kvguard.sources.source import Record, SourceEvent, SourceStatus


class ScriptedSource:
    """Hands over what has been put into it, an event a poll."""

    def __init__(self, name: str = "vllm.log") -> None:
        self.record = Record(name)
        self.coming: deque[SourceEvent] = deque()
        self.behind = False

    def poll(self, now: float) -> Sequence[SourceEvent]:
        return [self.coming.popleft()] if self.coming else []

    def delay(self, now: float) -> float:
        return 0.0 if self.coming else 0.2

    def fileno(self) -> int | None:
        return None

    @property
    def status(self) -> SourceStatus:
        return replace(self.record.snapshot(), behind=self.behind)

    def close(self) -> None:
        self.coming.clear()
