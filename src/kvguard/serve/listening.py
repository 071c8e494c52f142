"""Where the sidecar answers: bound before anything else begins, so that an address in use is told in one line."""

import socket

from kvguard.errors import ConfigError, SourceError

BACKLOG = 512


def listen(address: str) -> socket.socket:
    """A listening socket on `ADDR:PORT`, `[ADDR]:PORT`, or `:PORT` for every address of either family.

    Raises:
        ConfigError: no such address.
        SourceError: in use, or not allowed.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ConfigError(f"--listen {address}: write ADDR:PORT, [ADDR]:PORT or :PORT, as 0.0.0.0:9400")
    bare = host.strip("[]")
    both = not bare and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in bare else socket.AF_INET
    try:
        return socket.create_server((bare, int(port)), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0].lower()  # asyncio and socket add their own call
        raise SourceError(f"--listen {address}: {reason}") from None
