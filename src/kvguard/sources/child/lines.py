"""Two outputs of a process made into one stream of whole lines."""

LONGEST_LINE_BYTES = 1024 * 1024


class WholeLines:
    """Holds the beginning of a line back until its end has come, so that no other output's bytes get between.

    A line longer than `LONGEST_LINE_BYTES` loses its rest here. It is never broken in two: what a stranger wrote
    behind the break would stand at the beginning of a line.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self.skipped_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """The lines that are whole now, with their newlines."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._hold(data)
            return b""
        first = data.find(b"\n") + 1
        self._hold(data[: first - 1])
        whole = bytes(self._held) + data[first - 1 : end]
        self._held.clear()
        self._hold(data[end:])
        return whole

    def rest(self) -> bytes:
        """The line that the output ended in."""
        held = bytes(self._held)
        self._held.clear()
        return held

    def _hold(self, data: bytes) -> None:
        room = LONGEST_LINE_BYTES - len(self._held)
        self._held += data[:room]
        self.skipped_bytes += len(data[room:])
