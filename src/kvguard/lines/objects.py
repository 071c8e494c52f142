"""JSON as tools lay it out: an object over several lines (jq, clients of log stores), or a list of them on one line.

Each record becomes a line of its own; what holds none stays as it is.
"""

from kvguard.lines import json_record

MAX_LINES = 1000
"""Lines of one object: an entry of a log store has thirty."""
_OPENS = (b"{", b"[")
_LISTS = (b"[{", b'{"')
"""How a line begins that may hold a list of objects."""
_CLOSES = (b"}", b"]")
_GOES_ON = (b'"', *_OPENS, *_CLOSES, *(str(digit).encode() for digit in range(10)), b"-", b"t", b"f", b"n")
"""How a line inside an object begins: with a key, a bracket, or a list's item."""

Numbered = list[tuple[int, bytes]]
"""Lines with their numbers."""


class ObjectJoiner:
    """Take lines, give the same with each object that is a record on one line.

    Attributes:
        found: whether a record was found so: no line can be passed over unread, for what it tells may stand in another.
    """

    def __init__(self) -> None:
        self.found = False
        self._held: Numbered = []
        self._size = self._depth = 0

    @property
    def waits(self) -> bool:
        """Whether the lines of an object are held until its end."""
        return bool(self._held)

    def take(self, number: int, line: bytes) -> Numbered:
        """Take the next line, and give those that are complete."""
        text = line.strip()
        if text == b"{":  # an element, or the whole: what holds it is no record itself
            before, self._held = self._held, [(number, line)]
            self._size, self._depth = len(line), 1
            return before
        if not self._held:
            return self._listed(number, line) if text.startswith(_LISTS) and b"[{" in text else [(number, line)]
        self._held.append((number, line))
        self._size += len(line)
        self._depth += text.endswith(_OPENS) - text.startswith(_CLOSES)
        if self._depth == 0:
            return self._closed()
        goes_on = text.startswith(_GOES_ON if len(self._held) > 2 else b'"')
        bounded = len(self._held) < MAX_LINES and self._size < json_record.MAX_OBJECT_CHARACTERS
        return [] if goes_on and bounded else self.rest()

    def rest(self) -> Numbered:
        """Nothing completes what is held: it is given as it came."""
        held, self._held = self._held, []
        return held

    def _closed(self) -> Numbered:
        held = self.rest()
        whole = b" ".join(line.strip() for _, line in held).removesuffix(b",")
        if json_record.read(whole.decode("utf-8", "replace")) is None:
            return held
        self.found = True
        return [(held[0][0], whole)]

    def _listed(self, number: int, line: bytes) -> Numbered:
        """The records of a list on one line, alone or in an answer, as far as it is there, numbered as lines."""
        text = line.decode("utf-8", "replace")
        is_record = text.lstrip().startswith("{") and json_record.read(text) is not None
        objects = [] if is_record else json_record.listed(text[text.index("[{") :])
        self.found |= bool(objects)
        return [(place, item.encode()) for place, item in enumerate(objects, number)] or [(number, line)]
