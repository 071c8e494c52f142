"""Horizontal drawings to scale: positions are shares of the width, so that they fit a phone without shrunken text."""

from itertools import pairwise

from kvguard.render.html.markup import Markup, element
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a bar: from `begin` to `end` in the drawing's own unit, and how it looks."""

    begin: float
    end: float
    look: str
    name: str = ""
    """Written inside where it fits."""
    hint: str = ""
    """Told on hovering, and by nothing else: whatever matters stands in the text as well."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An upright line at a place that means something."""

    at: float
    name: str


HEIGHT, TOP = 46, 24
"""Pixels of a bar, and of the room above it for what its marks say."""
_ROOM_PER_LETTER = 0.0125
"""Share of the width that one letter takes on a wide screen; narrow ones hide the names inside."""


def drawing(
    stretches: list[Stretch], marks: list[Mark], whole: float, label: str, height: int = HEIGHT, gap: float = 0
) -> Markup:
    """Stretches and marks over `whole`.

    Args:
        label: says in one sentence what a look at it tells; empty where the figure stands right beside it.
        gap: pixels left between two stretches.
    """
    top = TOP if marks else 0
    return element(
        "svg",
        [_stretch(one, marks, whole, top, height, gap) for one in stretches],
        [_mark(mark, whole, top, height) for mark in marks],
        class_="bar",
        width="100%",
        height=top + height + (4 if marks else 0),
        role="img" if label else None,
        aria_label=label or None,
        aria_hidden=None if label else "true",
    )


def percent(value: float, whole: float) -> str:
    """A share of the width as SVG writes it."""
    return f"{100 * value / whole:.3f}%" if whole else "0%"


def _stretch(one: Stretch, marks: list[Mark], whole: float, top: int, height: int, gap: float) -> Markup:
    width = one.end - one.begin
    inner = element("rect", width="100%", height=height, class_=one.look, rx=2 if gap else None)
    begin, end = _widest_part(one, marks)
    fits = one.name and len(one.name) * _ROOM_PER_LETTER < (end - begin) / whole
    middle = percent((begin + end) / 2 - one.begin, width)
    name = element("text", one.name, x=middle, y=height // 2 + 5, text_anchor="middle") if fits else None
    title = element("title", one.hint) if one.hint else None
    # the gap is taken off by a stroke in the page's own colour: percentages and pixels can't be subtracted in SVG
    return element(
        "svg",
        title,
        inner,
        name,
        x=percent(one.begin, whole),
        y=top,
        width=percent(width, whole),
        height=height,
        class_="gapped" if gap else None,
    )


def _widest_part(one: Stretch, marks: list[Mark]) -> tuple[float, float]:
    """Where no mark goes through a stretch: its name stands there."""
    inside = (mark.at for mark in marks if one.begin < mark.at < one.end)
    return max(pairwise(sorted([one.begin, *inside, one.end])), key=lambda part: part[1] - part[0])


def _mark(mark: Mark, whole: float, top: int, height: int) -> Markup:
    place = percent(mark.at, whole)
    share = mark.at / whole if whole else 0
    anchor = "end" if share > 0.75 else "start" if share < 0.25 else "middle"
    line = element("line", x1=place, x2=place, y1=top - 4, y2=top + height + 4, class_="mark-line")
    return element("g", line, element("text", mark.name, x=place, y=top - 9, text_anchor=anchor, class_="mark-name"))
