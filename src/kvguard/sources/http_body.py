"""The body of an HTTP answer, held to a size and to a time, whoever is at the other end."""

import time
from collections.abc import Callable

import httpx


class TooLargeError(httpx.DecodingError):
    """The body is larger than anything that can be meant."""


def whole_body(
    response: httpx.Response, largest: int, begun: float, patience: float, clock: Callable[[], float] = time.monotonic
) -> bytes:
    """The bytes as they were sent: nothing is unpacked, since a packet of 64 KiB can hold as many MiB.

    Args:
        response: a stream that was asked to come as it is (`Accept-Encoding: identity`).
        largest: in bytes.
        begun: when the request was sent, on the clock.
        patience: seconds from then on; httpx counts its own from part to part, and a trickle would last for ever.
        clock: steady, in seconds.

    Raises:
        TooLargeError: it has more bytes.
        httpx.ReadTimeout: it was not whole in time.
    """
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > largest:
            raise TooLargeError(f"more than {largest} bytes")
        if clock() - begun > patience:
            raise httpx.ReadTimeout(f"not whole after {patience:g} s")
    return bytes(body)
