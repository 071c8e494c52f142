"""Records of a server that go on over several lines: what a client may have written behind the first is not believed.

vLLM's formatter (`vllm/logging_utils/formatter.py`) puts a record's prefix before each line of its message. A text that
holds line ends, an answer or a name say, so gets as many lines that look like records of their own. What tells them
apart is that the prefix is the same to its last character, and that the line before told nothing, or of an error.
"""

from kvguard.events import Event, FailureReported, ProcessFailed
from kvguard.lines.head import Head

MAX_REMEMBERED = 256
"""Processes whose last record is remembered."""
SEVERE = frozenset({"ERROR", "CRITICAL", "FATAL"})
"""Levels of records that may hold a traceback."""
TRACEBACK = "Traceback (most recent call last):"
"""How one begins."""
_STACK = (" ", "\t", "^")
"""A traceback's own lines are indented: the first that is not is the exception, and what follows may be a client's."""


class LongRecords:
    """The prefix of each process's last record that told nothing, and how far its traceback is."""

    def __init__(self) -> None:
        self._prefixes: dict[int | None, str] = {}
        self._tracebacks: dict[int | None, bool] = {}
        """Whether the exception of the record's traceback is still to come; nothing where it holds none."""

    def forget(self) -> None:
        """Other records come in between."""
        self._prefixes.clear()
        self._tracebacks.clear()

    def believed(self, text: str, head: Head, told: list[Event]) -> list[Event]:
        """What is believed of a server's record.

        Args:
            text: the record, its prefix included.
            head: what the prefix told.
            told: what the message tells by itself.
        """
        prefix = text.removesuffix(head.message)
        goes_on = not head.json and self._prefixes.get(head.pid) == prefix
        if goes_on:
            raised = self._raises(head)
            return [event for event in told if raised and isinstance(event, FailureReported | ProcessFailed)]
        if not told or head.level in SEVERE:
            self._remember(prefix, head)
        else:
            self._prefixes.pop(head.pid, None)
        return told

    def _remember(self, prefix: str, head: Head) -> None:
        if len(self._prefixes) >= MAX_REMEMBERED:
            self.forget()
        self._prefixes[head.pid] = prefix
        self._tracebacks.pop(head.pid, None)
        self._raises(head)

    def _raises(self, head: Head) -> bool:
        """Whether the line is the first exception of a traceback that its record holds; follows where it stands."""
        if head.level not in SEVERE:
            return False
        if head.message.startswith(TRACEBACK):
            self._tracebacks.setdefault(head.pid, True)
            return False
        if not self._tracebacks.get(head.pid) or head.message.startswith(_STACK) or not head.message.strip():
            return False
        self._tracebacks[head.pid] = False
        return True
