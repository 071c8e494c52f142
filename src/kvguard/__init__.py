"""kvguard: know how much a vLLM server can hold, before the traffic does."""

from kvguard.version import __version__

TYPE_CHECKING = False  # as type checkers read it; the module that defines it costs more than all of `--version`
if TYPE_CHECKING:
    from kvguard.guard import Guard, judge

__all__ = ["Guard", "__version__", "judge"]


def __getattr__(name: str) -> object:
    """Load the guard for who asks for it: `kvguard --version` and `--help` need none."""
    if name not in __all__:
        raise AttributeError(f"module 'kvguard' has no attribute {name!r}")
    from kvguard import guard

    return getattr(guard, name)
