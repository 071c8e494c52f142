"""kvguard: know how much a vLLM server can hold, before the traffic does."""

from kvguard.guard import Guard, judge
from kvguard.version import __version__

__all__ = ["Guard", "__version__", "judge"]
