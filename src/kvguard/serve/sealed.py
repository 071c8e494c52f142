"""What every answer has in common: headers that leave a browser nothing to do but show it, and HEAD beside GET."""

from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from typing import Any

from kvguard.render.html import content_security_policy

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]


def sealed(app: Asgi) -> Asgi:
    """The app behind it, with the headers of this module; a HEAD request asks it for GET: the server drops the body."""
    headers = [(name.encode(), value.encode()) for name, value in security_headers().items()]

    async def asgi(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                date = (b"date", formatdate(usegmt=True).encode())
                message = {**message, "headers": [*message.get("headers", ()), date, *headers]}
            await send(message)

        await app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, send_sealed)

    return asgi


def security_headers() -> dict[str, str]:
    """The headers of every answer."""
    return {
        "content-security-policy": content_security_policy(),
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
