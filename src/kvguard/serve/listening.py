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
    if not colon or not _is_port(port) or (":" in host and not host.startswith("[")):
        raise ConfigError(f"--listen {address}: write ADDR:PORT, [ADDR]:PORT or :PORT, as 0.0.0.0:9400")
    bare = host.strip("[]")
    both = not bare and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in bare else socket.AF_INET
    try:
        listening = socket.create_server((bare, int(port)), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0].lower()  # asyncio and socket add their own call
        raise SourceError(f"--listen {address}: {reason}") from None
    # inherited by each connection: head and body of an answer are two segments, and the second one would wait 40 ms for
    # the client to acknowledge the first. asyncio sets it on sockets only whose protocol was named when they were made
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _is_port(text: str) -> bool:
    return text.isdecimal() and len(text) <= 5 and int(text) <= 65535
