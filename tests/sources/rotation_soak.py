"""Follow a log while a real logrotate rotates it as fast as it can: `python -m tests.sources.rotation_soak [SECONDS]`.

Prints for each way of rotating how many lines were written, how many are on the disk at the end, and how many of those
were read twice or never. Not part of the tests: it takes real time and a machine that does nothing else.
"""

import gzip
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from kvguard.sources.file import FileSource
from kvguard.sources.source import Chunk
from kvguard.sources.wait import wait

# options of logrotate; whether the writer appends; whether it opens the new file; seconds that the reader may sleep
WAYS: list[tuple[list[str], bool, bool, float]] = [
    (["create"], True, True, 0.0),
    (["create", "compress", "delaycompress"], True, True, 0.0),
    (["create", "compress"], True, True, 1.0),
    (["copytruncate"], True, False, 0.0),
    (["copytruncate", "compress", "delaycompress"], True, False, 1.0),
    (["copytruncate", "compress"], True, False, 1.0),
    (["copytruncate"], False, False, 0.0),
]
_LINE = re.compile(rb"line (\d+) x*\n")


def write(log: Path, append: bool, reopen: bool, stop: threading.Event) -> None:
    """Number lines until told to stop, some in a burst."""
    mode = "ab" if append else "r+b"
    file = log.open(mode, buffering=0)
    for number in range(10**9):
        if stop.is_set():
            break
        with suppress(FileNotFoundError):  # logrotate is between the two
            if reopen and number % 20 == 0 and not log.samefile(f"/proc/self/fd/{file.fileno()}"):
                file.close()
                file = log.open(mode, buffering=0)
        file.write(b"line %d %s\n" % (number, b"x" * random.randrange(200)))
        if number % 50 == 0:
            time.sleep(0.001)
    file.close()


def rotate(rules: Path, stop: threading.Event) -> None:
    """Run logrotate again and again."""
    while not stop.is_set():
        subprocess.run(["logrotate", "-f", "-s", f"{rules}.state", rules], check=False, stderr=subprocess.DEVNULL)
        time.sleep(random.choice([0, 0, 0.05, 0.4]))


def read(source: FileSource, text: bytearray, seconds: float, sleep: float) -> None:
    """Follow for a while."""
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for event in source.poll(now):
            if isinstance(event, Chunk):
                text += event.data
        wait(source, 1.0, now)
        if sleep and random.random() < 0.05:
            time.sleep(sleep)


def on_disk(log: Path) -> set[int]:
    """The lines that are there at the end."""
    lines = set()
    for path in log.parent.glob(f"{log.name}*"):
        content = path.read_bytes()
        lines |= numbers(gzip.decompress(content) if path.suffix == ".gz" else content).keys()
    return lines


def numbers(content: bytes) -> "Counter[int]":
    """Whole lines by their number."""
    return Counter(int(match[1]) for match in _LINE.finditer(content))


def soak(options: list[str], append: bool, reopen: bool, sleep: float, seconds: float) -> None:
    """One way of rotating."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # logrotate refuses a folder that others may write to
        log, rules, stop, text = Path(folder, "logs", "vllm.log"), Path(folder, "rules"), threading.Event(), bytearray()
        log.parent.mkdir(mode=0o755)
        log.touch()
        rules.write_text("\n".join([f"{log} {{", "rotate 400", *options, "}", ""]))
        rules.chmod(0o644)
        workers = [
            threading.Thread(target=write, args=(log, append, reopen, stop)),
            threading.Thread(target=rotate, args=(rules, stop)),
        ]
        source = FileSource(log)
        source.poll(time.monotonic())  # what is rotated before it has come is none of its business
        for worker in workers:
            worker.start()
        read(source, text, seconds, sleep)
        stop.set()
        for worker in workers:
            worker.join()
        read(source, text, 3.0, 0.0)
        told, there = numbers(bytes(text)), on_disk(log)
        twice = sum(count > 1 for count in told.values())
        print(
            f"{' '.join(options):33} {'append' if append else 'offset'} {max(told) + 1} written, {len(there)} on disk, "
            f"{twice} read twice, {len(there - told.keys())} lost; "
            f"{source.status.rotations} rotations and {source.status.truncations} cuts noticed"
        )
        source.close()


if __name__ == "__main__":
    for way in WAYS:
        soak(*way, float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
