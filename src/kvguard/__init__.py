"""kvguard: know how much a vLLM server can hold, before the traffic does."""

from kvguard.version import __version__

__all__ = ["__version__"]
