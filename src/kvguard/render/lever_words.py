"""What every readable face says of a change: whether it is enough."""

from kvguard.slo.verdict import Lever


def enough_words(lever: Lever) -> str:
    """Whether a change, or two that go together, meets the target; empty where the evidence cannot say."""
    if lever.enough is None:
        return ""
    words = "enough together" if len(lever.flags) > 1 else "enough alone"
    return words if lever.enough else f"not {words}"
