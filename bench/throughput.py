"""How fast a whole log is judged, beside the peers on the same file."""

from pathlib import Path

import peers
from inputs import KINDS, Recipe, write
from measured import KVGUARD, PLAIN, has_fast_extra, medians, table

SLOW_PART = 16
"""The slow peers read this fraction of the log; their times are multiplied by it."""
RECIPES = (
    *((kind, 200, "none") for kind in KINDS),
    ("plain", 40, "none"),
    ("plain", 200, "middle"),
    ("plain", 200, "end"),
)


def report(folder: Path, size: int, runs: int) -> str:
    """One row a log: CPU seconds, and kvguard's as a multiple of each peer's."""
    rows = []
    for kind, ratio, restart in RECIPES:
        path = write(folder, Recipe(kind, size, ratio, restart))
        part = write(folder, Recipe(kind, size // SLOW_PART, ratio))
        own = {"plain": [*PLAIN, "check", str(path)]}
        if has_fast_extra():
            own["fast"] = [*KVGUARD, "check", str(path)]
        whole = medians({**own, **peers.fast(path)}, runs)
        scale = path.stat().st_size / part.stat().st_size
        parts = medians(peers.slow(part, folder), min(runs, 3))
        seconds = {name: cost.cpu for name, cost in whole.items()}
        seconds |= {name: cost.cpu * scale for name, cost in parts.items()}
        label = f"{kind}, 1 stats line in {ratio}" + ("" if restart == "none" else f", restart: {restart}")
        rows.append([label, *_cells(seconds)])
        path.unlink()
        part.unlink()
    heads = ["log", "kvguard check", "with `fast`", "grep -cE", "to grep", "rg -c", "`fast` to rg"]
    return table([*heads, "mtail", "faster", "regex, line by line", "faster"], rows)


def _cells(seconds: dict[str, float]) -> list[str]:
    plain, fast = seconds["plain"], seconds.get("fast")
    grep, rg = seconds["grep -cE"], seconds["rg -c"]
    cells = [f"{plain:.2f} s", "not installed" if fast is None else f"{fast:.2f} s"]
    cells += [f"{grep:.2f} s", f"×{plain / grep:.2f}", f"{rg:.2f} s", "" if fast is None else f"×{fast / rg:.1f}"]
    for name in ("mtail", "regex, line by line"):
        cells += [f"{seconds[name]:.1f} s", f"{seconds[name] / plain:.1f} ×"]
    return cells
