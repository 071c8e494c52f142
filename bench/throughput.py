"""How fast a whole log is judged, beside the peers on the same file."""

from pathlib import Path

import peers
from inputs import KINDS, Recipe, write
from measured import KVGUARD, PLAIN, Cost, has_fast_extra, medians, table

SLOW_PART = 16
"""The slow peers read this fraction of the log; their times are multiplied by it."""
RECIPES = (
    *((kind, 200, "none") for kind in KINDS),
    ("plain", 40, "none"),
    ("plain", 200, "middle"),
    ("plain", 200, "end"),
)


def report(folder: Path, size: int, runs: int) -> str:
    """One row a log: seconds by the wall clock (and of CPU), and kvguard's as a multiple of each peer's."""
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
        costs = whole | {name: Cost(cost.cpu * scale, cost.wall * scale) for name, cost in parts.items()}
        label = f"{kind}, 1 stats line in {ratio}" + ("" if restart == "none" else f", restart: {restart}")
        rows.append([label, *_cells(costs)])
        path.unlink()
        part.unlink()
    heads = ["log", "kvguard check", "with `fast`", "grep -cE", "to grep", "rg -c", "`fast` to rg"]
    return table([*heads, "mtail", "faster", "regex, line by line", "faster"], rows)


def _cells(costs: dict[str, Cost]) -> list[str]:
    plain, fast = costs["plain"], costs.get("fast")
    grep, rg = costs["grep -cE"], costs["rg -c"]
    cells = [_shown(plain), "not installed" if fast is None else _shown(fast)]
    cells += [_shown(grep), _ratio(plain, grep), _shown(rg), "" if fast is None else _ratio(fast, rg)]
    for name in ("mtail", "regex, line by line"):
        cells += [f"{costs[name].wall:.1f} s", f"{costs[name].wall / plain.wall:.0f} ×"]
    return cells


def _shown(cost: Cost) -> str:
    return f"{cost.wall:.2f} s ({cost.cpu:.2f})"


def _ratio(own: Cost, peer: Cost) -> str:
    return f"×{own.wall / peer.wall:.2f} (×{own.cpu / peer.cpu:.2f})"
