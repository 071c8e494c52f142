"""`kvguard serve`: the sidecar beside vLLM in its pod; probes, metrics and a status page from its log."""

import argparse
import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvguard.cli import exit_status
from kvguard.cli.formats_flag import add_formats_flag, table_from
from kvguard.cli.objective_flags import add_objective_flags, slo_from

if TYPE_CHECKING:
    from kvguard.serve.asking import Asking
    from kvguard.serve.evidence import Complain
    from kvguard.serve.sidecar import Clocks, Sink

DEFAULT_LISTEN = ":9400"
PATIENCE_MS = 100
"""For whoever reads our log; a pipe that is writable takes PIPE_BUF bytes at once (POSIX)."""
_WRITING = threading.Lock()
TERMINATION_LOG = Path("/dev/termination-log")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the log, the address, what is written where, and what is asked."""
    parser.usage = "%(prog)s --log LOG [objectives and other options]"
    parser.add_argument(
        "--log",
        required=True,
        metavar="LOG",
        help="the log to follow from its beginning: a file (it may appear later), pod:NAMESPACE/NAME/CONTAINER, "
        "pod:self/CONTAINER, a named pipe, or - for stdin",
    )
    parser.add_argument(
        "--listen",
        default=DEFAULT_LISTEN,
        metavar="ADDR:PORT",
        help="where to answer; the kubelet and Prometheus come from outside the pod, so the default, %(default)s, is "
        "every address",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a token that /, /v1/report and /metrics ask for (never the probes); read again as it rotates",
    )
    parser.add_argument(
        "--vllm-url",
        metavar="URL",
        help="ask vLLM itself as a second witness, as http://127.0.0.1:8000; it stands in where the log has lost the "
        "start-up lines",
    )
    _add_sink_flags(parser)
    add_formats_flag(parser)
    add_objective_flags(parser, gate=True)


def _add_sink_flags(parser: argparse.ArgumentParser) -> None:
    """Where changes of state are told, besides stderr."""
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="append the report of every change of state, a JSON object a line; after a restart it tells kvguard which "
        "start was let through",
    )
    parser.add_argument(
        "--events", action="store_true", help="post a Kubernetes Event a change of verdict (needs create on events)"
    )
    parser.add_argument(
        "--termination-log",
        type=Path,
        metavar="FILE",
        help=f"the container's termination message, kept current (default: {TERMINATION_LOG}, where that exists)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM; what is wrong with the call is told before anything begins."""
    from kvguard.guard import Guard
    from kvguard.serve.access import TokenFile
    from kvguard.serve.let_through import recalled
    from kvguard.serve.listening import listen
    from kvguard.serve.sidecar import Clocks, Sidecar
    from kvguard.serve.slo_file import SloFile
    from kvguard.sources.opening import followed

    # before the server takes signals: the first process of a container has no default ones, and would be deaf
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(exit_status.MET))
    token = TokenFile(arguments.token_file) if arguments.token_file else None
    clocks = Clocks(time.monotonic, time.time)
    slo_file = SloFile(arguments.slo, partial(slo_from, arguments), clocks.wall)
    source, table = followed(arguments.log, for_ever=True), table_from(arguments)
    asking = _asking(arguments.vllm_url, clocks) if arguments.vllm_url else None
    with listen(arguments.listen) as listening:
        from kvguard.serve.server import serve

        guard = Guard(slo_file.slo, arguments.log, table)
        sidecar = Sidecar(
            source, guard, slo_file, clocks, _sinks(arguments), asking, let_through=recalled(arguments.record)
        )
        if asking is not None:
            asking.start()
        if token is not None:
            token.watch()

        def build(watched: Any) -> Any:
            from kvguard.serve.app import create_app

            return create_app(watched, clocks.wall, token)

        serve(sidecar, listening, build, write_line)
    return exit_status.MET


def write_line(event: Mapping[str, Any]) -> None:
    """One JSON object on one line of stderr, with the time; whole, whichever thread writes it.

    Where nobody takes it (a pipe that its reader has left full, a terminal that is stopped) it is dropped: whoever
    waited there would answer no probe, or read the log no further.
    """
    line = memoryview(line_of(event, time.time()).encode())
    with contextlib.suppress(OSError), _WRITING:  # nobody may listen any more; serving goes on
        taken = select.poll()
        taken.register(sys.stderr.fileno(), select.POLLOUT)
        while line and taken.poll(PATIENCE_MS):
            line = line[os.write(sys.stderr.fileno(), line[: select.PIPE_BUF]) :]


def line_of(event: Mapping[str, Any], wall: float) -> str:
    """The line of the structured log: ASCII, so that no text in it does anything to a terminal, and secrets masked."""
    from kvguard.lines.secrets import mask_deep
    from kvguard.render.log_text import escape_unshown
    from kvguard.serve.moments import iso

    return escape_unshown(json.dumps({"time": iso(wall), **mask_deep(event)})) + "\n"


def _sinks(arguments: argparse.Namespace) -> "list[Sink]":
    from kvguard.serve.evidence import RecordFile, TerminationMessage
    from kvguard.serve.state_changes import StateLog

    def complain(message: str) -> None:
        write_line({"event": "problem", "message": message})

    sinks: list[Sink] = []
    if arguments.termination_log or TERMINATION_LOG.exists():
        sinks.append(TerminationMessage(arguments.termination_log or TERMINATION_LOG, complain))
    if arguments.events:
        sinks.append(_kube_events(complain))
    if arguments.record:
        sinks.append(RecordFile(arguments.record, time.time, complain))
    return [*sinks, StateLog(write_line)]  # the line is the last: where it stands, the rest has been written


def _asking(url: str, clocks: "Clocks") -> "Asking":
    from kvguard.serve.asking import Asking  # its HTTP client is only for who wants it

    return Asking(url, clocks.steady)


def _kube_events(complain: "Complain") -> "Sink":
    """Events about the pod that this process runs in.

    Raises:
        ConfigError: it runs in none.
    """
    from kvguard.serve.kube_events import KubeEvents
    from kvguard.sources.kube.address import Cluster, parse_address

    myself = parse_address("pod:self/kvguard")
    return KubeEvents(Cluster.from_inside(), myself, os.environ.get("POD_UID"), time.time, complain)
