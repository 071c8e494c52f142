"""How a server died that had been ready: its verdict may be a pass, and its pod's log is read when nothing serves."""

from kvguard.render.log_text import shown
from kvguard.startup.report import Start

_WARNING = "died-after-ready"


def death(start: Start | None) -> str | None:
    """What the log says of it, fit to be shown; `None` of one that lives, was told to end, or never got ready."""
    warnings = start.warnings if start is not None else ()
    return next((shown(warning.message) for warning in warnings if warning.code == _WARNING), None)
