"""The command line: `main(argv) -> int`, one small module a command, loaded only when that command is called.

A command's module has two public functions: `configure(parser)` adds its options, `run(arguments) -> int` does it. Its
line of help stands in `COMMANDS`, so that the list of commands costs no import. Reports go to stdout, talk to stderr.
"""

import gc
import os
import sys
from collections.abc import Sequence

from kvguard.cli import exit_status
from kvguard.cli.standard_streams import put, say, stand_in_for_closed
from kvguard.errors import UserError
from kvguard.version import __version__

COMMANDS: dict[str, str] = {
    "check": "judge a start by its log, and say so by the exit status",
    "plan": "say what a deployment would hold, before it is started",
    "diff": "show two starts side by side: what differs, and why",
    "inspect": "show what a log says of its newest start, without judging it",
    "run": "start the command itself, judge its start, and stop it once the answer is there",
    "serve": "follow a log beside vLLM: probes, Prometheus metrics, a status page",
    "baseline": "keep a start's capacity as a file to hold later starts against",
    "explain": "say which line of a log told what, and which look like capacity and told nothing",
    "slo": "check SLO files, or print their schema",
    "history": "draw recorded checks over time and versions",
    "fleet": "show all guards that a Prometheus scrapes, the odd ones first",
    "formats": "show the wordings that kvguard knows, and what they were tested with",
}
"""Each command's name and its line in `kvguard --help`, the most used first; the module is `kvguard.cli.<name>`."""


def main(argv: Sequence[str]) -> int:
    """Run one command line (without the program's name) and give its exit status; never exits the process."""
    words = list(argv)
    try:
        return _dispatch(words)
    except UserError as error:
        say(f"kvguard: {error}")
        return exit_status.USAGE
    except BrokenPipeError:
        # the reader of our report has left (`kvguard … | head`): nothing more to say, and not a failure of the check
        return exit_status.BROKEN_PIPE
    except KeyboardInterrupt:
        return exit_status.INTERRUPTED
    except SystemExit as request:  # argparse ends this way, after its own message
        return int(request.code or 0)


def entry_point() -> None:
    """What the `kvguard` script calls: the only place that ends the process."""
    gc.set_threshold(100_000)  # loading makes no garbage, and looking for it takes a twentieth of a short check
    stand_in_for_closed()
    status = exit_status.USAGE  # of whatever nobody foresaw: Python's own for it is that of a missed objective
    try:
        status = main(sys.argv[1:])
    except MemoryError:
        say("kvguard: out of memory: nothing was judged; a check takes 25 MiB")
    except Exception:
        sys.excepthook(*sys.exc_info())
    _end(status)


def _end(status: int) -> None:
    """End the process; at once where a thread is still at work: native code in it may not outlive the interpreter.

    A sidecar that was ended while it imports its web framework died of SIGABRT.
    """
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        gc.freeze()  # as at the beginning: the interpreter's end would look three times through all that was loaded
        sys.exit(status)
    from contextlib import suppress

    with suppress(OSError, ValueError):  # nobody hears it
        sys.stdout.flush()  # stderr holds nothing back, and a reader that is stuck would hold us
    os._exit(status)


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:  # images are asked for it again and again: no parser is built for that
        put(f"kvguard {__version__}\n")
        return exit_status.MET
    from kvguard.cli import command_line

    return command_line.run(words)
