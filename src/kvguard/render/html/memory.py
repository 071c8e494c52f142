"""The GPU's memory to scale, an engine a bar: where it went, what is left for the KV cache, and how that adds up."""

from kvguard.render.html.bars import Mark, Stretch, drawing
from kvguard.render.html.markup import Markup, element, fragment
from kvguard.render.memory_parts import GRAPHS_OUTSIDE, Part, PartKind, graphs_note, memory_parts
from kvguard.render.quantities import show_size
from kvguard.startup.report import Capacity, Memory, Start
from kvguard.units import format_bytes

_LOOKS = {
    "weights": "weights",
    "weights and non-torch": "weights",
    "non-torch": "non-torch",
    "activation peak": "activation",
    "CUDA graphs": "graphs",
}
_KIND_LOOKS = {PartKind.KV_CACHE: "kv", PartKind.UNNAMED: "unnamed", PartKind.OUTSIDE: "outside"}


def memory_section(start: Start) -> Markup | None:
    """The bars, their parts in a table and the equation; nothing where the log names too little."""
    parts = memory_parts(start)
    if not parts:
        return None
    graphs = graphs_note(start)
    whole = max(_extent(parts), *(_extent(_engine_parts(engine)) for engine in start.engines), 1.0)
    return element(
        "section",
        element("h2", "GPU memory", id="memory"),
        element("p", _caption(start), class_="caption"),
        _bar(_title(start), parts, start.memory, whole),
        [_bar(f"Engine {e.engine}", _engine_parts(e), Memory(), whole) for e in _others(start)],
        element(
            "div",
            _legend(parts),
            element("div", _equation(start.memory, parts), element("p", graphs, class_="note") if graphs else None),
            class_="beside",
        ),
        aria_labelledby="memory",
    )


def _others(start: Start) -> list[Capacity]:
    """The engines beside the weakest one, which has the whole picture."""
    return [e for e in start.engines if e.engine != start.capacity.weakest.engine and _engine_parts(e)]


def _engine_parts(engine: Capacity) -> tuple[Part, ...]:
    named = ((engine.weights_bytes, "weights", PartKind.TAKEN), (engine.kv_cache_bytes, "KV cache", PartKind.KV_CACHE))
    return tuple(Part(name, kind, size) for size, name, kind in named if size is not None)


def _extent(parts: tuple[Part, ...]) -> float:
    return sum(max(part.size, 0) for part in parts)


def _title(start: Start) -> str:
    return f"Engine {start.capacity.weakest.engine}, the weakest" if len(start.engines) > 1 else ""


def _bar(title: str, parts: tuple[Part, ...], memory: Memory, whole: float) -> Markup:
    stretches, edge = [], 0.0
    for part in parts:
        end = edge + max(part.size, 0)
        stretches.append(Stretch(edge, end, _look(part), part.name, f"{part.name}: {format_bytes(part.size)}"))
        edge = end
    marks = [Mark(memory.usable, f"budget {format_bytes(memory.usable)}")] if memory.usable else []
    label = "; ".join(f"{part.name} {format_bytes(part.size)}" for part in parts)
    heading = element("h3", title) if title else None
    return fragment(heading, drawing(stretches, marks, whole, label))


def _look(part: Part) -> str:
    if part.name == GRAPHS_OUTSIDE:
        return "graphs"
    return _KIND_LOOKS.get(part.kind) or _LOOKS.get(part.name, "unnamed")


def _legend(parts: tuple[Part, ...]) -> Markup:
    whole = _extent(parts)
    rows = [
        element(
            "tr",
            element("th", element("span", class_=f"swatch {_look(part)}", aria_hidden="true"), part.name, scope="row"),
            element("td", show_size(part.size)),
            element("td", f"{100 * part.size / whole:.0f} %" if part.size > 0 else "–"),
            class_="strong" if part.kind is PartKind.KV_CACHE else None,
        )
        for part in parts
    ]
    head = element("tr", [element("th", name, scope="col") for name in ("part", "size", "share")])
    return element("table", element("thead", head), element("tbody", rows), class_="legend")


def _caption(start: Start) -> str:
    ranks = (start.tensor_parallel_size or 1) * (start.pipeline_parallel_size or 1)
    whose = "One GPU" if ranks == 1 else f"The tightest of {ranks} ranks, each with a GPU of its own"
    if start.memory.total_gpu is None:
        size = "to scale. The log does not say how large it is: these are the parts that it names"
    else:
        size = f"{format_bytes(start.memory.total_gpu)}, to scale"
    others = " Of the other engines the log names these parts only." if _others(start) else ""
    return f"{whose}, {size}.{others}"


def _equation(memory: Memory, parts: tuple[Part, ...]) -> Markup | None:
    """What is left for the KV cache, as vLLM reckons: shown only where each term was printed."""
    if memory.total_gpu is None or memory.usable is None or memory.utilization is None:
        return None
    if any(part.kind is PartKind.UNNAMED for part in parts):
        return None
    taken = " − ".join(f"{_gib(part.size)} {part.name}" for part in parts if part.kind is PartKind.TAKEN)
    left = next(part.size for part in parts if part.kind is PartKind.KV_CACHE)
    budget = f"{format_bytes(memory.total_gpu)} × {memory.utilization:g} = {_gib(memory.usable)}"
    return element("p", f"{budget} − {taken} = ", element("b", f"{format_bytes(left)} KV cache"), class_="equation")


def _gib(size: float) -> str:
    return format_bytes(size).removesuffix(" GiB")
