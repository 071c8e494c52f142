"""Two starts compared, as a JSON document: base units, `null` where a side does not tell; keys are only added to."""

from typing import Any

from kvguard.lines.secrets import mask_deep
from kvguard.render.json_report import render_json
from kvguard.render.layout import Terminal
from kvguard.slo.baselines.baseline import Baseline, Figure
from kvguard.slo.baselines.budget import Part
from kvguard.slo.baselines.difference import Difference, FigureChange
from kvguard.version import __version__

KIND = "diff"
SCHEMA_VERSION = 1


def render_diff_json(found: Difference, terminal: Terminal) -> str:
    """The document as text; the terminal plays no part in it."""
    return render_json(diff_document(found))


def diff_document(found: Difference) -> dict[str, Any]:
    """The document."""
    budget, likeness = found.budget, found.likeness
    document = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "kvguard_version": __version__,
        "old": _side(found.old),
        "new": _side(found.new),
        "comparable": likeness is not None,
        "not_comparable": found.not_comparable,
        "differs": found.differs,
        "compared_by": None
        if likeness is None
        else {
            "figure": likeness.figure,
            "drop": {"low": likeness.drop.low, "high": likeness.drop.high},
            "passed_over": list(likeness.passed_over),
        },
        "capacity": [_figure_change(change) for change in found.figures],
        "memory": [_part(found, part) for part in (*budget.parts, budget.cache)],
        "explained_bytes": budget.explained,
        "unexplained_bytes": budget.unexplained,
        "options": [{"name": change.name, "old": change.old, "new": change.new} for change in found.options],
        "causes": list(found.causes),
    }
    return {key: mask_deep(value) for key, value in document.items()}


def _side(side: Baseline) -> dict[str, Any]:
    return {
        "sources": list(side.sources),
        "starts": side.starts,
        "vllm_version": side.vllm_version,
        "engine": side.generation,
        "token_figure": side.token_figure,
        "layers": side.layers,
        "failure_kind": None if side.failure is None else side.failure.kind,
    }


def _figure_change(change: FigureChange) -> dict[str, Any]:
    return {
        "figure": change.figure,
        "unit": change.unit,
        "like": change.like,
        "old": _ends(change.old),
        "new": _ends(change.new),
        "ratio": change.ratio,
    }


def _ends(figure: Figure | None) -> dict[str, float] | None:
    return None if figure is None else figure._asdict()


def _part(found: Difference, part: Part) -> dict[str, Any]:
    return {
        "part": part.name,
        "old_bytes": part.old,
        "new_bytes": part.new,
        "change_bytes": part.change,
        "change_tokens": found.budget.tokens(part.change),
    }
