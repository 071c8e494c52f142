"""`kvguard run`: start the command itself, pass its output through, and judge its start as it goes."""

import argparse
import sys
from pathlib import Path

from kvguard.cli.formats_flag import add_formats_flag, table_from
from kvguard.cli.objective_flags import add_objective_flags, not_asked, slo_from
from kvguard.cli.output import add_output_flags, destinations
from kvguard.cli.standard_streams import beside, say
from kvguard.cli.wait_flags import Until, add_wait_flags, waits
from kvguard.errors import UserError
from kvguard.render.formats import RENDERERS
from kvguard.slo.verdict import Verdict
from kvguard.slotted import replace


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what is asked, how long it may take, and the command."""
    parser.usage = "%(prog)s [objectives and other options] -- COMMAND [ARGUMENT ...]"
    add_wait_flags(parser, follow=False)
    add_formats_flag(parser)
    add_output_flags(parser, RENDERERS, details=True)
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the report, for kvguard history")
    add_objective_flags(parser)
    parser.add_argument("words", nargs="+", metavar="COMMAND", help="the command and its arguments, behind --")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; with `--until` the status is the verdict's, without it the command's own.

    Reports without a file go to stderr: stdout is the command's.
    """
    try:
        return _run(arguments)
    finally:
        beside()  # nobody any more


def _run(arguments: argparse.Namespace) -> int:
    from kvguard.cli.answer import answer
    from kvguard.cli.attend import attend
    from kvguard.cli.progress import Progress
    from kvguard.cli.records import last_ready

    places = () if arguments.quiet and not arguments.format else destinations(arguments, RENDERERS)
    gate = (arguments.until or Until.READY) if waits(arguments) else None
    slo, table = slo_from(arguments), table_from(arguments)
    progress = Progress(arguments.quiet, last_ready(arguments.record))

    def tell(verdict: Verdict) -> None:
        try:
            answer(verdict, places, arguments.record, page=sys.stderr)
        except (UserError, BrokenPipeError) as error:  # nobody asked us to end a server because a disk is full
            say(f"kvguard: {error}")

    if gate is None:
        return attend(arguments.words, slo, progress, formats=table, on_answer=tell).status_of_command
    asked = replace(slo, require_ready=True) if gate is Until.READY else slo
    if not arguments.quiet and (unasked := not_asked(asked)):
        say(f"kvguard: {unasked}")
    ended = attend(arguments.words, asked, progress, formats=table, gate=gate, timeout=arguments.timeout)
    if ended.signalled is not None:
        tell(ended.verdict)  # a terminal that hung up takes no report, and asked us to end all the same
        return 128 + ended.signalled
    return answer(ended.verdict, places, arguments.record, arguments.timeout if ended.timed_out else None, sys.stderr)
