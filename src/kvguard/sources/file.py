"""Follow a log file from its beginning, through everything that is done to log files.

What counts is the name: whatever file stands under it is read, from its first byte, after the one before it was read
to its end. That one stays open for a while, since a process that was not told of a rotation goes on writing to it.
Looking is a `stat` and a `pread` every `LOOK_S`: that is cheaper than what inotify would add (it sees neither a
network file system's changes nor the far end of a symlink, and needs the looking as well).
"""

import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, takewhile
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.sources.blocks import describe_os_error
from kvguard.sources.rotated import READ_WHOLLY, Neighbour, Remainder, close_all, neighbours, remainders
from kvguard.sources.source import READ_BYTES, Boundary, BoundaryKind, Record, SourceEvent, SourceStatus, State
from kvguard.sources.tracked import FileWasCutError, Identity, Mark, TrackedFile, identity_of

LOOK_S = 0.2
RETRY_S = 1.0
LINGER_S = 60.0
"""How long a file that lost its name is kept open after its last line: an open file keeps its space on the disk."""

MOST_MARKS = 500
"""How many rotated files are remembered, a kilobyte each; logrotate keeps fewer."""


class FileSource:
    """A log file under a name, followed for ever."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._record = Record(str(path))
        self._due = 0.0
        self._file: TrackedFile | None = None
        self._successor: TrackedFile | None = None  # seen under the name; the file before it is read to its end first
        self._former: TrackedFile | None = None
        self._former_until = 0.0
        self._seen: dict[Identity, Mark] = {}
        self._backlog: Iterator[bytes | Boundary] = iter(())
        self._rest: list[Neighbour] = []  # open for the backlog
        self._unread_in_rest = 0
        self._folder_at = 0
        self._between_at = 0  # the same of the last look at what lies between our file and an empty one
        self._look_again = False  # names moved while they were looked at: a neighbour can have been missed
        self._suspect = False  # reading failed: whether it is still the same file must be found out
        self._at_line_start = True
        self._in_rest = False  # of a line whose beginning stands in another file

    def poll(self, now: float) -> Sequence[SourceEvent]:
        """Read on, and look whether the name leads elsewhere; at most one read of each."""
        events: list[SourceEvent] = []
        if now < self._due:
            return events
        self._due = now + LOOK_S
        try:
            self._step(now, events)
        except FileNotFoundError:
            what = "was removed: waiting for a new one" if self._file else "does not exist yet: waiting for it"
            events += self._record.change(State.WAITING, f"{self._path} {what}", now)
        except OSError as error:
            self._record.read_errors += 1
            self._due = now + RETRY_S
            events += self._record.change(State.FAILING, describe_os_error(str(self._path), error), now)
        else:
            self._record.unread = self._count_unread() if self._due <= now else 0
        return events

    def delay(self, now: float) -> float:
        """Until the next look; 0 while there is more to read."""
        return max(0.0, self._due - now)

    def fileno(self) -> int | None:
        """A regular file cannot be waited for."""
        return None

    @property
    def status(self) -> SourceStatus:
        """State and counters."""
        return self._record.snapshot()

    def close(self) -> None:
        """Close what is open."""
        for file in (self._file, self._successor, self._former):
            if file is not None:
                file.close()
        self._file = self._successor = self._former = None
        close_all(self._rest)
        self._rest = []

    def _count_unread(self) -> int:
        """What is left of the open files and of rotated ones; packed ones count nothing."""
        with suppress(OSError):
            open_ones = (file.unread for file in (self._file, self._successor) if file is not None)
            return sum(open_ones, start=self._unread_in_rest)
        return self._record.unread or 0

    def _step(self, now: float, events: list[SourceEvent]) -> None:
        """One step; what it found stands in `events` even where it ends in an error."""
        item = next(self._backlog, None)
        if item is not None:
            self._due = now
            self._unread_in_rest = max(0, self._unread_in_rest - len(item)) if isinstance(item, bytes) else 0
            self._hand_on(item, now, events)
        elif self._file is None:
            self._open(now)
        elif self._suspect:
            self._reopen(self._file, now)
        else:
            self._follow(self._file, now, events)

    def _follow(self, file: TrackedFile, now: float, events: list[SourceEvent]) -> None:
        untouched = file.mark.offset == 0
        try:
            data = file.read(READ_BYTES)
        except FileWasCutError:
            self._restart(file, now)
            return
        except OSError:
            self._suspect = True
            raise
        if self._successor is not None and not data:
            self._switch(file, self._successor, now)
            return
        # it can have been cut before anything of it was read
        if untouched and (data or self._folder_changed()) and (rest := self._unread(file)):
            file.restart()
            self._begin(Boundary(BoundaryKind.TRUNCATED, f"{self._path} was cut"), rest, now)
            return
        if self._look_again and self._at_line_start and not data and (rest := self._unread(file)):
            self._begin(Boundary(BoundaryKind.NEW_FILE, f"the names around {self._path} have come to rest"), rest, now)
            return
        self._read_late_lines(now, events)
        self._hand_on(data, now, events)
        if self._successor is not None or len(data) == READ_BYTES:
            self._due = now
        else:
            self._look(file, now, events)

    def _look(self, current: TrackedFile, now: float, events: list[SourceEvent]) -> None:
        """Whether another file stands under the name.

        An empty one is left alone, since nobody writes there yet, unless it is the second since: then the file between
        the two has lines, and the writer has left ours.
        """
        status = self._path.stat()
        events += self._record.change(State.READING, f"reading {self._path}", now)
        if identity_of(status) == current.identity:
            return
        if status.st_size > 0 or not stat.S_ISREG(status.st_mode) or self._is_followed_by_unread(current):
            self._successor = TrackedFile(self._path)
            self._due = now

    def _is_followed_by_unread(self, current: TrackedFile) -> bool:
        """Whether a rotated file is newer than this one and holds lines that were never read."""
        folder_at = self._folder_time()
        if folder_at == self._between_at:
            return False
        everybody, at_rest = neighbours(self._path)
        newer = takewhile(lambda each: each.identity != current.identity, reversed(everybody))
        found = next(remainders(newer, self._seen, [current.mark], None), None) is not None
        close_all(everybody)
        self._between_at = folder_at if at_rest else 0  # else one can have been missed
        return found

    def _open(self, now: float) -> None:
        self._file = TrackedFile(self._path)
        earlier, _ = neighbours(self._path)
        self._seen = {each.identity: each.mark(READ_WHOLLY) for each in earlier if each.size}
        close_all(earlier)
        self._due = now

    def _reopen(self, old: TrackedFile, now: float) -> None:
        """After a failed read: the same file, or the same content under another number, is read on at its place."""
        self._suspect = False
        if self._successor is not None:
            self._successor.close()
            self._successor = None
        fresh = TrackedFile(self._path)
        if old.mark.offset == 0 or fresh.identity == old.identity or fresh.holds(old.mark):
            fresh.resume(old.mark)
            old.close()
            self._file = fresh
            self._due = now
        else:
            self._switch(old, fresh, now)

    def _switch(self, old: TrackedFile, new: TrackedFile, now: float) -> None:
        self._record.rotations += 1
        self._retire_former()
        self._file, self._successor = new, None
        self._former, self._former_until = old, now + LINGER_S
        boundary = Boundary(BoundaryKind.NEW_FILE, f"another file stands at {self._path}")
        self._begin(boundary, self._unread(new), now)

    def _restart(self, file: TrackedFile, now: float) -> None:
        self._record.truncations += 1
        if self._record.unread:  # what was cut off had not been read: whether it ended a line nobody knows
            self._at_line_start = True
        rest = self._unread(file, cut=file.mark)
        file.restart()
        self._begin(Boundary(BoundaryKind.TRUNCATED, f"{self._path} was cut"), rest, now)

    def _unread(self, file: TrackedFile, cut: Mark | None = None) -> list[Remainder]:
        """What older neighbours of a file hold that was never read.

        A copy of what it holds now is none of them: all of that can still be read here.
        """
        self._folder_changed()
        everybody, at_rest = neighbours(self._path)
        self._look_again = not at_rest
        try:
            former = {each.identity: each.begin() for each in (self._former,) if each is not None}
            begin = file.begin()  # as it is after the looking: it may have been cut meanwhile
        except OSError:
            close_all(everybody)
            self._record.read_errors += 1
            self._look_again = True
            return []
        older = takewhile(lambda each: each.identity != file.identity and not each.is_packed_copy_of(begin), everybody)
        found = [
            each
            for each in older
            if each.identity not in former
            and not each.is_copy_of(begin)
            and (cut is not None or not each.is_copy_of(file.mark))
        ]
        rest = list(remainders(found, self._seen, former.values(), cut))
        self._remember(found)
        close_all(set(everybody) - {remainder.neighbour for remainder in rest})
        return rest

    def _folder_changed(self) -> bool:
        """Whether names have come, gone or changed since this was asked last."""
        before, self._folder_at = self._folder_at, self._folder_time()
        return before != self._folder_at

    def _folder_time(self) -> int:
        """When a name last came, went or changed; 0 where the folder is gone, and the neighbours with it."""
        try:
            return self._path.parent.stat().st_mtime_ns
        except OSError:
            return 0

    def _remember(self, found: list[Neighbour]) -> None:
        """What was found will have been read as far as it goes. It is not forgotten soon: names are missed at times."""
        for each in found:
            known = self._seen.pop(each.identity, None)
            if known is not None and each.is_of(known) and known.offset == READ_WHOLLY:
                self._seen[each.identity] = known
            elif not each.is_empty:
                self._seen[each.identity] = each.mark(READ_WHOLLY if each.packed else each.size)
        for identity in list(self._seen)[:-MOST_MARKS]:
            del self._seen[identity]

    def _begin(self, boundary: Boundary, rest: list[Remainder], now: float) -> None:
        self._rest = [remainder.neighbour for remainder in rest]
        self._unread_in_rest = sum(remainder.unread for remainder in rest)
        self._backlog = chain(self._replay(rest, boundary.kind), [boundary])
        self._due = now

    def _replay(self, rest: list[Remainder], kind: BoundaryKind) -> Iterator[bytes | Boundary]:
        for remainder in rest:
            neighbour = remainder.neighbour
            if not remainder.continues:
                self._record.rotations += 1
                yield Boundary(kind, f"{neighbour.path} was rotated before it was read")
            try:
                yield from neighbour.blocks(remainder.begin)
            except (SourceError, OSError):  # it is packed badly, or the disk fails: nobody can read it
                self._record.read_errors += 1
        close_all(self._rest)
        self._rest = []

    def _read_late_lines(self, now: float, events: list[SourceEvent]) -> None:
        """Whole lines that still arrive in the file that lost the name, put between whole lines of the new one."""
        if self._former is None or not self._at_line_start:
            return
        try:
            lines = self._former.read_lines(READ_BYTES)
        except (FileWasCutError, OSError):
            self._retire_former()
            return
        self._hand_on(lines, now, events)
        if lines:
            self._former_until = now + LINGER_S
        elif now >= self._former_until:
            self._retire_former()

    def _retire_former(self) -> None:
        if self._former is not None:
            self._seen[self._former.identity] = self._former.mark
            self._former.close()
            self._former = None

    def _hand_on(self, item: bytes | Boundary, now: float, events: list[SourceEvent]) -> None:
        if isinstance(item, Boundary):
            self._in_rest |= not self._at_line_start
            self._at_line_start = True
            events += self._record.boundary(item.kind, item.detail)
        elif fresh := self._without_rest(item):
            self._at_line_start = fresh.endswith(b"\n")
            events.append(self._record.chunk(fresh, now))

    def _without_rest(self, data: bytes) -> bytes:
        """The data without the rest of a line that was begun before the last boundary.

        A client can fill a line with records of its own making; cut in two, its rest would be one.
        """
        if not self._in_rest or not data:
            return data
        end = data.find(b"\n") + 1
        self._in_rest = not end
        rest = data[:end] if end else data
        self._record.bytes_skipped += len(rest)
        return data[len(rest) :]
