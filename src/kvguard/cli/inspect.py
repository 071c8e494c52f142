"""`kvguard inspect`: what a log says of its newest start, without judging it."""

import argparse

from kvguard.cli import exit_status
from kvguard.cli.formats_flag import add_formats_flag, table_from
from kvguard.cli.output import add_output_flags, destinations, write_reports
from kvguard.render.formats import REPORT_RENDERERS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the logs and where the report goes."""
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="a vLLM log (.gz and .zst as they are), - for stdin; several are the nodes of one deployment",
    )
    add_formats_flag(parser)
    add_output_flags(parser, REPORT_RENDERERS)
    parser.add_argument("-v", "--verbose", action="store_true", help="text: the code of each note as well")


def run(arguments: argparse.Namespace) -> int:
    """Report; the status says only whether the log could be read."""
    from kvguard.cli.reading import read_whole
    from kvguard.slo.objectives import Slo

    places = destinations(arguments, REPORT_RENDERERS)
    verdict = read_whole(arguments.logs, Slo(), table_from(arguments))
    write_reports(places, lambda form, terminal: REPORT_RENDERERS[form](verdict, terminal))
    return exit_status.MET
