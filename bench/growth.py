"""Whether cost follows the bytes alone: the same bytes with more starts, more workers or more engines in them."""

from pathlib import Path

from inputs import MIB, RUNS, start, until_ready
from measured import KVGUARD, medians, table

COUNTS = (1, 4, 16, 64)
_LINE = b'(APIServer pid=1) INFO:     10.0.0.7:51234 - "GET /health HTTP/1.1" 200 OK\n'


def report(folder: Path, runs: int) -> str:
    """CPU seconds by how many of each stand in a log of 8 MiB."""
    rows = []
    for name, made in {"starts": _starts, "workers": _workers, "engines": _engines}.items():
        paths = {str(count): folder / f"growth-{name}-{count}.log" for count in COUNTS}
        lines = {}
        for count, path in paths.items():
            log = made(int(count))
            path.write_bytes(log)
            lines[count] = _start_up_lines(log)
        costs = medians({count: [*KVGUARD, "check", str(path)] for count, path in paths.items()}, runs)
        rows.append([name, *(f"{costs[count].cpu:.3f} s ({lines[count]:,} start-up lines)" for count in paths)])
        for path in paths.values():
            path.unlink()
    return table(["in a log of 8 MiB", *map(str, COUNTS)], rows)


def _start_up_lines(log: bytes) -> int:
    return log.count(b"\n") - log.count(b'"GET /health')


def _filled(head: bytes, size: int = 8 * MIB) -> bytes:
    return head + _LINE * max(1, (size - len(head)) // len(_LINE))


def _starts(count: int) -> bytes:
    """One after another, each of new processes."""
    first = start("plain")
    parts = [first.replace(b" pid=", b" pid=%d" % (number + 1)) for number in range(count)]
    return b"".join(_filled(part, 8 * MIB // count) for part in parts)


def _workers(count: int) -> bytes:
    """A tensor-parallel start of 0.10.2, where every worker reports: one real worker's lines, once a rank."""
    head = until_ready((RUNS / "vllm-0.10.2.post2-cpu-tp2" / "server.log").read_bytes())
    return _filled(_repeated(head, b"Worker_TP", count))


def _engines(count: int) -> bytes:
    """A data-parallel start: one real engine's lines, repeated with its index."""
    head = until_ready((RUNS / "vllm-0.32.0-cpu-dp2" / "server.log").read_bytes())
    return _filled(_repeated(head, b"EngineCore_DP", count))


def _repeated(head: bytes, tag: bytes, count: int) -> bytes:
    """Each line of the member with index 0 once for every member; the other members' lines are left out."""
    lines = []
    for line in head.splitlines(keepends=True):
        if tag not in line:
            lines.append(line)
        elif tag + b"0" in line:
            lines += [line.replace(tag + b"0", tag + b"%d" % member) for member in range(count)]
    return b"".join(lines)
