"""How fast a whole log is judged, beside the peers on the same file."""

from pathlib import Path

import peers
from inputs import KINDS, MIB, Recipe, write
from measured import KVGUARD, medians, table

SLOW_PART = 16
"""The slow peers read this fraction of the log; their times are multiplied by it."""
RECIPES = (
    *((kind, 200, "none") for kind in KINDS),
    ("plain", 40, "none"),
    ("plain", 200, "middle"),
    ("plain", 200, "end"),
)


def report(folder: Path, size: int, runs: int) -> str:
    """One row a log: CPU seconds, and kvguard's as a share of each peer's."""
    rows = []
    for kind, ratio, restart in RECIPES:
        path = write(folder, Recipe(kind, size, ratio, restart))
        part = write(folder, Recipe(kind, size // SLOW_PART, ratio))
        costs = medians({"kvguard": [*KVGUARD, "check", str(path)], **peers.fast(path)}, runs)
        scale = path.stat().st_size / part.stat().st_size
        slow = medians(peers.slow(part, folder), runs)
        own = costs["kvguard"]
        cpu = [own.cpu, costs["grep -cE"].cpu, costs["rg -c"].cpu]
        cpu += [slow[name].cpu * scale for name in ("mtail", "regex, line by line")]
        label = f"{kind}, 1 stats line in {ratio}" + ("" if restart == "none" else f", restart: {restart}")
        shares = [f"{seconds:.2f} (×{own.cpu / seconds:.2f})" for seconds in cpu[1:]]
        rate = path.stat().st_size / own.cpu / 1e9
        rows.append([label, f"{own.cpu:.2f} ({rate:.1f} GB/s)", *shares, f"{own.resident / MIB:.0f} MiB"])
        path.unlink()
        part.unlink()
    heads = ["log", "kvguard check", "grep -cE", "rg -c", "mtail", "regex loop", "peak resident"]
    return table(heads, rows)
