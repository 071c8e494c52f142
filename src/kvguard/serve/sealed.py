"""What every answer has in common: headers that leave a browser nothing to do but show it, and HEAD beside GET."""

from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
"""Of every answer that brings none of its own: the page alone does, since it runs its own style and script."""


def sealed(app: Asgi) -> Asgi:
    """The app behind it, with the headers of this module; a HEAD request asks it for GET: the server drops the body."""

    async def asgi(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [*message.get("headers", ()), (b"date", formatdate(usegmt=True).encode())]
                policy = () if any(name == POLICY[0] for name, _ in given) else (POLICY,)
                message = {**message, "headers": [*given, *SECURITY_HEADERS, *policy]}
            await send(message)

        await app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, send_sealed)

    return asgi
