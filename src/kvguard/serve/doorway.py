"""The door that is open before the house is finished: `/livez` is answered while the app is still being imported.

On a small CPU share (200 millicores) importing the web framework takes seconds; a liveness or startup probe must not
take that for a failure. Whatever else is asked for waits until the app is there.
"""

import asyncio

from kvguard.serve.sealed import Asgi, Message, Receive, Send


class Doorway:
    """An ASGI app in front of one that comes later."""

    def __init__(self) -> None:
        self._app: asyncio.Future[Asgi] = asyncio.get_running_loop().create_future()

    def open(self, app: Asgi) -> None:
        """From now on every request goes to the app."""
        self._app.set_result(app)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer `/livez` if nobody else can yet; let everything else wait."""
        if not self._app.done() and scope["type"] == "http" and scope["path"] == "/livez":
            await _alive(send)
        else:
            app = await asyncio.shield(self._app)
            await app(scope, receive, send)


async def _alive(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok\n"})
