"""Other ways to find the same lines: GNU grep, ripgrep, mtail, a loop over lines, all with the same literals."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LITERALS = (
    "API server version",
    "non-default args: ",
    " LLM engine ",
    "KV cache size: ",
    "Maximum concurrency for ",
    "Available KV cache memory: ",
    " KV cache usage: ",
    "pplication startup complete",
)
"""What a careful script looks for: where a start begins, what it has, that it is ready, and its stats."""

LOOP = """
import sys, regex
wanted = regex.compile(sys.argv[2].encode())
found = 0
with open(sys.argv[1], "rb") as log:
    for line in log:
        found += wanted.search(line) is not None
print(found)
"""
MTAIL = "counter lines_found\n" + "".join(f"/{re.escape(literal)}/ {{\n  lines_found++\n}}\n" for literal in LITERALS)


def fast(path: Path) -> dict[str, Sequence[str]]:
    """Those that can be asked for the whole log."""
    pattern = "|".join(LITERALS)
    return {"grep -cE": ["grep", "-cE", pattern, str(path)], "rg -c": ["rg", "-c", pattern, str(path)]}


def slow(path: Path, folder: Path) -> dict[str, Sequence[str]]:
    """Those that take so long that a part of the log must do."""
    program = folder / "kvguard.mtail"
    program.write_text(MTAIL)
    return {
        "mtail": ["mtail", "--one_shot", "--logtostderr", "--progs", str(program), "--logs", str(path)],
        "regex, line by line": [sys.executable, "-c", LOOP, str(path), "|".join(LITERALS)],
    }


def versions() -> list[str]:
    """What each peer calls itself; one that is missing is told with the line that installs it."""
    told = []
    for name in ("grep", "rg", "mtail"):
        if shutil.which(name) is None:
            sys.exit(f"{name} is missing: apt-get install grep ripgrep mtail")
        done = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
        told.append((done.stdout or done.stderr).splitlines()[0])
    return told
