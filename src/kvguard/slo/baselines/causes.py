"""Why two starts differ, in sentences: each rule looks for one cause that people have met, and is silent elsewhere."""

from collections.abc import Callable

from kvguard.slo.baselines import meaning_causes, memory_causes
from kvguard.slo.baselines.budget import BudgetChange
from kvguard.slo.baselines.evidence import Evidence
from kvguard.slo.baselines.pair import Pair


def causes(pair: Pair, budget: BudgetChange) -> tuple[str, ...]:
    """All that is known of why, the heaviest first."""
    evidence = Evidence(pair, budget)
    rules = RULES if pair.same("model") else _OF_ANY_MODEL
    return tuple(sentence for rule in rules if (sentence := rule(evidence)) is not None)


RULES: tuple[Callable[[Evidence], str | None], ...] = (
    memory_causes.refused,
    memory_causes.recovered,
    meaning_causes.engines,
    memory_causes.cache_moved,
    memory_causes.card,
    memory_causes.graphs_counted,
    meaning_causes.blocks_overridden,
    meaning_causes.tokens_redefined,
    meaning_causes.tokens_follow_length,
    meaning_causes.length_changed,
    memory_causes.profile_depends,
    memory_causes.graphs_taken_off,
    memory_causes.graphs_wasted,
    meaning_causes.default_changed,
    meaning_causes.dtype,
    meaning_causes.sharding,
    meaning_causes.generation,
    meaning_causes.latent_counted_twice,
    meaning_causes.lines_a_rank,
    meaning_causes.declared,
    meaning_causes.seqs,
    meaning_causes.unlike_without_cause,
)
"""In the order in which they are told."""
_OF_ANY_MODEL = (memory_causes.refused, memory_causes.recovered, memory_causes.cache_moved, memory_causes.card)
"""What is true of two models as well: fate, bytes and cards; a figure that moved has no other cause than the model."""
