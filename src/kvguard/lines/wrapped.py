"""Messages that a terminal or a viewer wrapped over several physical lines: what is open, and what completes it."""

from dataclasses import dataclass

from kvguard.events import Event, Origin, Trust
from kvguard.lines.line_format import LineFormat, match, may_continue

MAX_WRAPPED_LINES = 64
MAX_WRAPPED_CHARACTERS = 2**14
"""An engine's banner of 8 kB on an 80-column terminal needs a hundred lines; what it tells stands in the first half."""
LEAST_BEGINNING = 12
"""Characters of a format's literal that a raw line must end with to be taken for its beginning."""


@dataclass(slots=True)
class OpenMessage:
    """A message whose rest may stand on the next line; the events of the whole keep its first line's origin."""

    text: str
    origin: Origin
    pid: int | None
    lines: int = 1

    def extend(self, candidates: tuple[str, ...], formats: tuple[LineFormat, ...]) -> list[Event] | None:
        """Try the next line as the rest: the events so far (none while still incomplete), or `None` if it is not.

        A wrap inside a word leaves nothing between the halves, one at a space has eaten it: both are tried.
        """
        if self.lines >= MAX_WRAPPED_LINES or len(self.text) > MAX_WRAPPED_CHARACTERS:
            return None
        for rest in candidates:
            for glue in ("", " "):
                joined = f"{self.text}{glue}{rest}" if glue else f"{self.text}{rest}"
                known = [row for row in formats if row.literal in joined]
                for row in known:
                    events = match(row, joined, self.origin)
                    if events is not None:
                        self._grow(joined)
                        return events
                if any(may_continue(row, joined) for row in known):
                    self._grow(joined)
                    return []
        return None

    def _grow(self, joined: str) -> None:
        self.text = joined
        self.lines += 1


def opens(message: str, trust: Trust, matched: bool, formats: tuple[LineFormat, ...]) -> bool:
    """Whether the message may go on in the next line.

    A matched one only where it visibly breaks off; an unmatched record always (its rest must then complete a format);
    an unmatched raw line only where it is the beginning of one.
    """
    if matched:
        return message.rstrip().endswith(",") or _unbalanced(message) or _ends_in_figure(message)
    if trust is Trust.RECORD:
        return True
    return any(row.literal in message and may_continue(row, message) for row in formats) or any(
        message.endswith(row.literal[:size])
        for row in formats
        for size in range(LEAST_BEGINNING, len(row.literal))
        if message.endswith(row.literal[size - 1])
    )


def _unbalanced(message: str) -> bool:
    return any(message.count(left) > message.count(right) for left, right in ("()", "[]", "{}"))


def _ends_in_figure(message: str) -> bool:
    """A figure, or the unit that more may follow: a wrap may have cut the digits, or the second half of the line."""
    return message[-1:].isdigit() or message.endswith(" tokens")
