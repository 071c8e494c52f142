"""Lines that a container's runtime has cut into parts, and the count of what readers of one log have seen together."""

from kvguard.lines.head import Head
from kvguard.slotted import dataclass

MAX_PARTS = 2**18
"""Characters joined from CRI or docker parts of one record."""


@dataclass(slots=True)
class Tally:
    """What readers of one log have counted together."""

    matched: int = 0
    unrecognized: int = 0
    records: int = 0
    unmarked: int = 0
    """Records that do not show the source file's bracket."""
    json: int = 0
    """Those among them that a JSON object holds."""
    cut: int = 0
    """Parts of lines that were left out, because the line was long enough without."""
    framed: int = 0
    """Lines that the kubelet's runtime has framed: it may cut any that is still to come."""
    parts: int = 0
    """Parts of lines that it has cut."""
    json_parts: int = 0
    """Parts of lines that Docker has cut: nothing but the missing newline shows them."""


class CutLine:
    """The parts of a line that have come so far."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._parts: list[str] = []
        self._size = 0

    @property
    def waits(self) -> bool:
        """Whether its last part is still to come."""
        return bool(self._parts)

    def forget(self) -> None:
        """Another process writes from here on."""
        self._parts.clear()
        self._size = 0

    def joined(self, outer: Head) -> str | None:
        """A record that the runtime cut, once its last part is there; any other text as it is."""
        self._tally.framed += outer.framed and not outer.json
        if outer.partial:
            self._tally.json_parts += outer.json
            self._tally.parts += not outer.json
            if self._size < MAX_PARTS:
                self._parts.append(self._part(outer))
                self._size += len(self._parts[-1]) + 1  # an empty part has its cost as well
            else:
                self._tally.cut += 1
            return None
        if not self._parts:
            return outer.message
        joined = "".join((*self._parts, self._part(outer)))
        self.forget()
        return joined

    def _part(self, outer: Head) -> str:
        """The first part as it is; of a further one nothing is taken off: "90) = 71.24GiB" is no item of a list."""
        return outer.message if outer.part is None or not self._parts else outer.part
