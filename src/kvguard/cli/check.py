"""`kvguard check`: judge a start by its log, and say so by the exit status."""

import argparse

from kvguard.cli.answer import answer
from kvguard.cli.formats_flag import add_formats_flag, table_from
from kvguard.cli.objective_flags import add_objective_flags, not_asked, slo_from
from kvguard.cli.output import add_output_flags, destinations
from kvguard.cli.paths import path
from kvguard.cli.standard_streams import say
from kvguard.cli.wait_flags import Until, add_wait_flags, waits
from kvguard.render.formats import RENDERERS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the logs, what is asked of them, and where the answer goes."""
    parser.usage = "%(prog)s LOG [LOG ...] [objectives and other options]"
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="a vLLM log (.gz and .zst as they are), - for stdin; several are the nodes of one deployment",
    )
    add_wait_flags(parser)
    add_formats_flag(parser)
    add_output_flags(parser, RENDERERS, details=True)
    parser.add_argument(
        "--record", type=path, metavar="FILE", help="append the report as one line, for kvguard history"
    )
    add_objective_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge, report, and give the status of the outcome."""
    from kvguard.cli.reading import read_whole

    places = destinations(arguments, RENDERERS)
    slo, table = slo_from(arguments), table_from(arguments)
    unasked = None if arguments.quiet else not_asked(slo)
    if not waits(arguments):
        verdict = read_whole(arguments.logs, slo, table)
        _say_unasked(unasked)  # a log that cannot be read is told alone
        return answer(verdict, places, arguments.record)
    _say_unasked(unasked)
    from kvguard.cli.following import follow
    from kvguard.cli.progress import Progress
    from kvguard.cli.records import last_ready

    progress = Progress(arguments.quiet, last_ready(arguments.record))
    waited = follow(arguments.logs, slo, arguments.until or Until.READY, arguments.timeout, progress, table)
    return answer(waited.verdict, places, arguments.record, arguments.timeout if waited.timed_out else None)


def _say_unasked(unasked: str | None) -> None:
    if unasked:
        say(f"kvguard: {unasked}")
