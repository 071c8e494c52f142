"""What the sidecar costs: catching up with a log that grows, at rest, and when it is scraped; how soon it lives."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inputs import MIB, Recipe, start, write
from measured import ENVIRON, KVGUARD, table

GROWTH = 200_000_000
"""Bytes a second that the log grows by."""
SECONDS = 5
REST = 20.0
SCRAPES = 200
QUOTA = Path("/sys/fs/cgroup/cpu/kvguard-bench")
_TICK = os.sysconf("SC_CLK_TCK")


def report(folder: Path) -> str:
    """One row a question, with its target."""
    log = folder / "grown.log"
    log.write_bytes(start("plain"))
    rows = []
    with _sidecar(log) as (process, url):
        _wait_for(url + "/livez", 30)
        before = _cpu(process)
        written = _grow(log, folder)
        lag = _caught_up(url, written)
        spent = _cpu(process) - before
        rows.append(["CPU for 1 s of growth at 200 MB/s", f"{spent / (written / GROWTH):.2f} s", "≤ 1 s"])
        rows.append(["behind when the growth ends", f"{lag:.2f} s", ""])
        time.sleep(1)
        before = _cpu(process)
        time.sleep(REST)
        rows.append(["at rest", f"{(_cpu(process) - before) / REST:.2%} of a core", "< 0.2 %"])
        before = _cpu(process)
        for _ in range(SCRAPES):
            _get(url + "/metrics")
        rows.append(["a scrape of /metrics", f"{(_cpu(process) - before) / SCRAPES * 1e3:.1f} ms CPU", "< 2 ms"])
    rows.append(["/livez at 200 millicores", _first_life(log), "< 2 s"])
    log.unlink()
    return table(["the sidecar", "measured", "target"], rows)


@contextmanager
def _sidecar(log: Path, before: tuple[str, ...] = ()) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*before, *KVGUARD, "serve", "--log", str(log), "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRON)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _grow(log: Path, folder: Path) -> int:
    """Append at the given rate for some seconds; how many bytes."""
    served = write(folder, Recipe("plain", 64 * MIB)).read_bytes()[len(start("plain")) :]
    written = 0
    began = time.monotonic()
    with log.open("ab", buffering=0) as file:
        while (passed := time.monotonic() - began) < SECONDS:
            due = int(passed * GROWTH) - written
            if due < MIB:
                time.sleep(0.002)
                continue
            place = written % (len(served) - 8 * MIB)
            written += file.write(served[place : place + min(due, 8 * MIB)])
    return written


def _caught_up(url: str, written: int) -> float:
    """Seconds until the sidecar has read what was written."""
    began = time.monotonic()
    while _read_bytes(url) < written and time.monotonic() - began < 60:
        time.sleep(0.02)
    return time.monotonic() - began


def _read_bytes(url: str) -> float:
    lines = _get(url + "/metrics").decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("kvguard_log_bytes"))


def _first_life(log: Path) -> str:
    """Seconds from process start to the first answer, under a CPU quota of a fifth of a core (cgroup v1)."""
    try:
        QUOTA.mkdir(exist_ok=True)
        (QUOTA / "cpu.cfs_period_us").write_text("100000")
        (QUOTA / "cpu.cfs_quota_us").write_text("20000")
    except OSError as error:
        return f"not measured: no CPU control group ({error.strerror})"
    limited = ("sh", "-c", f'echo $$ > {QUOTA}/cgroup.procs; exec "$@"', "sh")
    try:
        began = time.monotonic()
        with _sidecar(log, limited) as (_, url):
            _wait_for(url + "/livez", 60)
            return f"{time.monotonic() - began:.2f} s"
    finally:
        QUOTA.rmdir()


def _cpu(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _wait_for(url: str, longest: float) -> None:
    end = time.monotonic() + longest
    while time.monotonic() < end:
        try:
            _get(url)
            return
        except OSError:
            time.sleep(0.02)
    raise TimeoutError(f"{url} does not answer")


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())
