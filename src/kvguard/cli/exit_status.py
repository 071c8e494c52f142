"""The exit statuses: a contract that no flag changes."""

MET = 0
"""The objectives are met; for commands that only show, the input was shown."""
MISSED = 1
"""An objective is missed, or the start failed."""
USAGE = 2
"""The call, a file or an input is wrong; nothing was judged."""
UNKNOWN = 3
"""The log does not say enough, or the time ran out."""
INTERRUPTED = 130
BROKEN_PIPE = 141
