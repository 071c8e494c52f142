"""A fleet as a table: one line a replica, the odd ones first, each with what is odd."""

from collections.abc import Iterator, Sequence
from typing import Any

from kvguard.render.layout import Cell, Terminal, Tone, columns, cut
from kvguard.render.log_text import shown
from kvguard.render.text import OUTCOME_TONES
from kvguard.slo.verdict import Outcome
from kvguard.slotted import dataclass

NAMELESS = "–"
WIDEST_NAME = 48


@dataclass(frozen=True, slots=True)
class Replica:
    """What Prometheus holds of one guard; figures are of all its engines together."""

    name: str
    outcome: Outcome
    model: str | None = None
    vllm_version: str | None = None
    kv_cache_tokens: float | None = None
    max_concurrency: float | None = None
    baseline_ratio: float | None = None
    peer_ratio: float | None = None
    """Tokens divided by the median of the replicas of the same model."""
    oddities: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, float, str]:
        """Sorts the odd ones first: fail, unknown, then by how far it lies below its peers."""
        rank = {Outcome.FAIL: 0, Outcome.UNKNOWN: 1, Outcome.PASS: 2 if self.oddities else 3}[self.outcome]
        return rank, self.peer_ratio or 0.0, self.name


def render_fleet(replicas: Sequence[Replica], terminal: Terminal) -> str:
    """The table, a line for each model, and one that sums up the verdicts."""
    rows = [[Cell(title, Tone.QUIET, right=right) for title, right in _HEAD]]
    rows += [_row(replica) for replica in replicas]
    return terminal.finish([*columns(rows, terminal), "", *_models(replicas), _sum(replicas)])


def fleet_document(replicas: Sequence[Replica]) -> dict[str, Any]:
    """The same for machines; null where Prometheus holds nothing."""
    return {
        "kind": "fleet",
        "schema_version": 1,
        "replicas": [
            {
                "replica": one.name,
                "outcome": one.outcome.value,
                "model": one.model,
                "vllm_version": one.vllm_version,
                "kv_cache_tokens": one.kv_cache_tokens,
                "max_concurrency": one.max_concurrency,
                "baseline_ratio": one.baseline_ratio,
                "peer_ratio": one.peer_ratio,
                "oddities": list(one.oddities),
            }
            for one in replicas
        ],
    }


_HEAD = (
    ("replica", False),
    ("model", False),
    ("vLLM", False),
    ("KV cache", True),
    ("concurrency", True),
    ("SLO", False),
    ("baseline", True),
    ("what is odd", False),
)


def _row(one: Replica) -> list[Cell]:
    word, _, tone = OUTCOME_TONES[one.outcome]
    return [
        Cell(_text(one.name)),
        Cell(_text(one.model)),
        Cell(_text(one.vllm_version)),
        Cell(NAMELESS if one.kv_cache_tokens is None else f"{one.kv_cache_tokens:,.0f} tokens", right=True),
        Cell(NAMELESS if one.max_concurrency is None else f"{one.max_concurrency:.2f}x", Tone.STRONG, right=True),
        Cell(word.lower(), tone),
        Cell(NAMELESS if one.baseline_ratio is None else f"{one.baseline_ratio:.0%}", right=True),
        Cell(", ".join(one.oddities), Tone.DOUBT),
    ]


def _text(text: str | None) -> str:
    return cut(shown(text), WIDEST_NAME) if text else NAMELESS


def _models(replicas: Sequence[Replica]) -> Iterator[str]:
    """What the replicas of a model hold together: tokens of different models do not add up."""
    for model in sorted({one.model for one in replicas if one.model}):
        sized = [(one.kv_cache_tokens, one.name) for one in replicas if one.model == model and one.kv_cache_tokens]
        if sized:
            weakest, name = min(sized)
            total = sum(tokens for tokens, _ in sized)
            share = f"; the weakest, {_text(name)}, {weakest:,.0f}" if len(sized) > 1 else ""
            yield f"{_text(model)}: {_replicas(len(sized))} with {total:,.0f} tokens of KV cache{share}"


def _sum(replicas: Sequence[Replica]) -> str:
    outcomes = [one.outcome for one in replicas]
    counts = [f"{outcomes.count(outcome)} {outcome.value}" for outcome in Outcome if outcome in outcomes]
    return f"{_replicas(len(replicas))}: {', '.join(counts)}"


def _replicas(count: int) -> str:
    return f"{count} replica" if count == 1 else f"{count} replicas"
