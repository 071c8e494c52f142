"""What the sidecar costs and how soon it answers: at rest, scraped, probed while its log grows, and at its start.

The bench gives itself and its sidecars the highest priority where it may (root), so that what else the machine does
counts less; delays stand beside those of a bare asyncio server under the same load, costs in CPU time.
"""

import contextlib
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from inputs import MIB, Recipe, start, write
from measured import ENVIRON, KVGUARD, table

FAST, BUSY = 200_000_000, 50_000_000
"""Bytes a second that the log grows by: to measure reading, and while probes are asked."""
SECONDS, PROBED_SECONDS, REST = 5.0, 30.0, 20.0
SCRAPES, STARTS = 200, 10
QUOTA = Path("/sys/fs/cgroup/cpu/kvguard-bench")
SLO = (
    "objectives: {min_concurrency: 2.5}\nworkload: {prompt_tokens: 1000, output_tokens: 200, concurrent_requests: 4}\n"
)
BARE = """
import asyncio, sys
async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nok\\n")
    writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
"""
_TICK = os.sysconf("SC_CLK_TCK")


def report(folder: Path) -> str:
    """One row a question, with its target."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        log = Path(scratch, "grown.log")
        log.write_bytes(start("plain"))
        slo = Path(scratch, "slo.yaml")
        slo.write_text(SLO)
        rows = [
            *_at_rest(log),
            *_in_full(log, slo),
            ["a new capacity line on /readyz", _visibility(Path(scratch, "starts.log")), "< 300 ms"],
            *_reading(log, folder),
            *_probed(log, folder),
            *[[f"{path} at 200 millicores", _first_answer(log, slo, path), "< 2 s"] for path in ("/livez", "/readyz")],
        ]
    return table(["the sidecar", "measured", "target"], rows)


def _at_rest(log: Path) -> Iterator[list[str]]:
    with _sidecar(log) as (process, port):
        _settle(port)
        before = _cpu(process)
        time.sleep(REST)
        yield ["at rest: CPU", f"{(_cpu(process) - before) / REST:.2%} of a core", "< 0.2 %"]
        yield ["at rest: resident", f"{_resident(process):.0f} MiB", "≤ 64 MiB"]
        for path, target in (("/metrics", "< 2 ms"), ("/readyz", "")):
            before = _cpu(process)
            for _ in range(SCRAPES):
                _ask(port, path)
            yield [f"one {path}", f"{(_cpu(process) - before) / SCRAPES * 1e3:.1f} ms CPU", target]


def _in_full(log: Path, slo: Path) -> Iterator[list[str]]:
    """With an SLO file, a second witness (that does not answer), a record, and every answer given once."""
    record = log.with_suffix(".jsonl")
    flags = ("--slo", str(slo), "--vllm-url", "http://127.0.0.1:9", "--record", str(record))
    with _sidecar(log, *flags) as (process, port):
        _settle(port)
        for path in ("/", "/v1/report", "/metrics", "/healthz"):
            _ask(port, path)
        yield ["with --slo, --vllm-url, --record, page drawn: resident", f"{_resident(process):.0f} MiB", "≤ 64 MiB"]


def _visibility(log: Path) -> str:
    """Milliseconds from the write of a start's last capacity lines to the first 200, over several starts."""
    delays = []
    log.write_bytes(b"")
    with _sidecar(log, "--min-concurrency", "2.5") as (_, port):
        for number in range(STARTS):
            loading, mark, rest = _renumbered(start("plain"), number).partition(b"KV cache size")
            _append(log, loading)
            _until(port, b"HTTP/1.1 503")
            time.sleep(0.7)  # the look at the log is in a random phase
            _append(log, mark + rest)
            delays.append(_until(port, b"HTTP/1.1 200"))
    return f"{statistics.median(delays) * 1e3:.0f} ms, at most {max(delays) * 1e3:.0f} ms of {STARTS}"


def _reading(log: Path, folder: Path) -> Iterator[list[str]]:
    with _sidecar(log) as (process, port):
        _settle(port)
        before = _cpu(process)
        written = _grow(log, folder, FAST, SECONDS)
        began = time.monotonic()
        while _read_bytes(port) < written and time.monotonic() - began < 60:
            time.sleep(0.02)
        lag = time.monotonic() - began
        spent = _cpu(process) - before
        yield ["CPU for 1 s of growth at 200 MB/s", f"{spent / (written / FAST):.2f} s", "≤ 1 s"]
        yield ["behind when the growth ends", f"{lag:.2f} s", ""]
    log.write_bytes(start("plain"))


def _probed(log: Path, folder: Path) -> Iterator[list[str]]:
    """Ask the sidecar and a bare server in turns, as a kubelet does (a new connection each), while the log grows."""
    with _sidecar(log) as (_, port), _bare() as bare:
        _settle(port)
        yield ["/readyz, log at rest", *_delays({"sidecar": port, "bare": bare}, 5.0)]

        writer = _forked(lambda: _grow(log, folder, BUSY, PROBED_SECONDS + 1))
        time.sleep(1)
        yield ["/readyz at 50 MB/s", *_delays({"sidecar": port, "bare": bare}, PROBED_SECONDS)]
        os.waitpid(writer, 0)
    log.write_bytes(start("plain"))


def _delays(ports: dict[str, int], seconds: float) -> tuple[str, str]:
    delays: dict[str, list[float]] = {name: [] for name in ports}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, port in ports.items():
            began = time.perf_counter()
            _ask(port, "/readyz")
            delays[name].append(time.perf_counter() - began)
            time.sleep(0.0037)  # prime to whatever else has a rhythm
    told = {}
    for name, each in delays.items():
        marks = statistics.quantiles(each, n=100)
        told[name] = f"p50 {marks[49] * 1e3:.1f} ms, p99 {marks[98] * 1e3:.1f} ms"
    return f"{told['sidecar']} (a bare asyncio server: {told['bare']})", "p99 < 10 ms"


def _first_answer(log: Path, slo: Path, path: str) -> str:
    """Seconds from process start to the first answer, under a CPU quota of a fifth of a core (cgroup v1)."""
    try:
        QUOTA.mkdir(exist_ok=True)
        (QUOTA / "cpu.cfs_period_us").write_text("100000")
        (QUOTA / "cpu.cfs_quota_us").write_text("20000")
        (QUOTA / "cpu.shares").write_text("262144")  # against what else the machine does
    except OSError as error:
        return f"not measured: no CPU control group ({error.strerror})"
    limited = ("sh", "-c", f'echo $$ > {QUOTA}/cgroup.procs; exec "$@"', "sh")
    try:
        with _sidecar(log, "--slo", str(slo), before=limited) as (process, port):
            took = _until(port, b"HTTP/1.1", path)
            spent = _cpu(process)
            throttled = (QUOTA / "cpu.stat").read_text().partition("nr_throttled ")[2].split()[0]
            return f"{took:.2f} s ({spent:.2f} s CPU, throttled {throttled} times)"
    finally:
        QUOTA.rmdir()


@contextmanager
def _sidecar(log: Path, *flags: str, before: tuple[str, ...] = ()) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    port = _free_port()
    command = [*before, *KVGUARD, "serve", "--log", str(log), "--listen", f"127.0.0.1:{port}", *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRON)
    try:
        yield process, port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _bare() -> Iterator[int]:
    port = _free_port()
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)])
    try:
        _until(port, b"HTTP/1.1 200")
        yield port
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _forked(work: Callable[[], object]) -> int:
    """Run it in a process of its own: a thread would share the lock of the interpreter that measures."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def _grow(log: Path, folder: Path, rate: int, seconds: float) -> int:
    """Append at a rate, in bytes a second; how many bytes."""
    served = write(folder, Recipe("plain", 64 * MIB)).read_bytes()[len(start("plain")) :]
    written = 0
    began = time.monotonic()
    with log.open("ab", buffering=0) as file:
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate) - written
            if due < rate // 200:
                time.sleep(0.002)
                continue
            place = written % (len(served) - 8 * MIB)
            written += file.write(served[place : place + min(due, 8 * MIB)])
    return written


def _renumbered(lines: bytes, number: int) -> bytes:
    """The start of another process: its ids are others."""
    return re.sub(rb"pid=(\d+)", lambda found: b"pid=%d" % (int(found[1]) + 100 * number), lines)


def _append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def _settle(port: int) -> None:
    """Until the web framework is there, too, and a turn of housekeeping has passed."""
    _until(port, b"HTTP/1.1 200", "/metrics")
    time.sleep(2)


def _until(port: int, beginning: bytes, path: str = "/readyz") -> float:
    """Seconds until it answers so."""
    began = time.monotonic()
    while time.monotonic() - began < 60:
        with contextlib.suppress(OSError):
            if _ask(port, path).startswith(beginning):
                return time.monotonic() - began
        time.sleep(0.002)
    raise TimeoutError(f"{path} does not answer {beginning!r}")


def _read_bytes(port: int) -> float:
    lines = _ask(port, "/metrics").decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("kvguard_log_bytes"))


def _ask(port: int, path: str) -> bytes:
    """One request on a connection of its own, as a kubelet sends it; head and body."""
    answer = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        while part := connection.recv(65536):
            answer += part
    return bytes(answer)


def _cpu(process: "subprocess.Popen[bytes]") -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _resident(process: "subprocess.Popen[bytes]") -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
