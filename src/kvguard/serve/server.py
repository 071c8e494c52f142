"""The process: a socket, uvicorn in the main thread, the reader in its own, and an orderly end on SIGTERM."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial

import uvicorn

from kvguard.serve.listening import BACKLOG
from kvguard.serve.probes import Probes
from kvguard.serve.protocol import MAX_CONNECTIONS, MAX_HEAD_BYTES, holding
from kvguard.serve.reader import Reader
from kvguard.serve.sealed import Asgi, sealed
from kvguard.serve.sidecar import Sidecar
from kvguard.serve.snapshot import Watched
from kvguard.serve.state_changes import Write
from kvguard.sources.open_files import may_open

GRACE_S = 1
"""For answers under way when the end is asked for."""
GARBAGE = (700, 2, 2)
"""How soon the collector looks. A short command asks for it seldom; here each connection leaves a cycle, and in it what
its client had sent."""
ACCEPTED_SHARE = 2
"""Half as many connections as are held are accepted at once, before any of them is read. Were they more than are held,
a probe among them would be let go unread."""
OPEN_BESIDES = 64
"""Files: the log and its neighbours, what is imported late, what is written, and the server's own."""
FEWEST_CONNECTIONS = 4

Build = Callable[[Watched], Asgi]


class RestfulServer(uvicorn.Server):
    """A server that sleeps until it is asked something: uvicorn's own wakes ten times a second to look around."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ended = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. asyncio accepts as many at once as may wait in the kernel; here more may wait."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)

    def end(self) -> None:
        """Shut down in an orderly way."""
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        """Sleep until the end."""
        await self._ended.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and SIGINT; uvicorn's own way raises them again, and the process would die of it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)
        yield


def serve(sidecar: Sidecar, listening: socket.socket, build: Build, write: Write) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        sidecar: not yet turned by anybody.
        listening: bound already, so that an address in use is told before anything begins.
        build: imports the web framework and makes the app; called in a thread, once probes are answered.
        write: takes an object for the structured log.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # strangers must not be able to fill the log
    reader = Reader(sidecar)
    try:
        asyncio.run(_serve(reader, listening, build, write))
    finally:
        reader.stop()
    write({"event": "stopped"})


async def _serve(reader: Reader, listening: socket.socket, build: Build, write: Write) -> None:
    probes = Probes(reader)
    server = RestfulServer(_config(sealed(probes), _connections()))
    host, port = listening.getsockname()[:2]
    write({"event": "listening", "address": host, "port": port})
    reader.start()
    failure: list[BaseException] = []
    loop = asyncio.get_running_loop()

    def build_app() -> None:
        try:
            app = build(reader)
            # the framework's objects live as long as the process: looking through them for garbage only delays a probe
            gc.collect()
            gc.freeze()
            gc.collect()  # what is left is little, and a full collection comes the sooner for it
            gc.set_threshold(*GARBAGE)
        except BaseException as error:
            failure.append(error)
            tell(server.end)
        else:
            tell(partial(probes.open, app))

    def tell(what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile, and the loop with it
            loop.call_soon_threadsafe(what)

    # a daemon: an end that is asked for meanwhile need not wait for an import
    threading.Thread(target=build_app, name="build", daemon=True).start()
    await server.serve(sockets=[listening])
    if failure:
        raise failure[0]


def _connections() -> int:
    """How many are held at once: where few files may be open, fewer, so that strangers leave some for the log.

    For a moment there are twice as many: those that have made room are closed behind the next two crowds.
    """
    return max(FEWEST_CONNECTIONS, (may_open(OPEN_BESIDES + 2 * MAX_CONNECTIONS) - OPEN_BESIDES) // 2)


def _config(app: Asgi, connections: int = MAX_CONNECTIONS) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=holding(connections),
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,  # it would have to be kept current; `sealed` writes it as it answers
        proxy_headers=False,
        backlog=connections // ACCEPTED_SHARE,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
