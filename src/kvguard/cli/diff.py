"""`kvguard diff`: two starts side by side, what differs, and why."""

import argparse
from pathlib import Path

from kvguard.cli import exit_status
from kvguard.cli.output import add_output_flags, destinations, write_reports
from kvguard.render.diff_formats import DIFF_RENDERERS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add both sides and where the answer goes."""
    kinds = "a log, a report of --format json, a baseline, or prometheus:URL?query"
    parser.add_argument("old", metavar="OLD", help=f"the start before: {kinds}")
    parser.add_argument("new", metavar="NEW", help=f"the start now: {kinds}")
    parser.add_argument("--exit-code", action="store_true", help="status 1 where a part differs")
    add_output_flags(parser, DIFF_RENDERERS)


def run(arguments: argparse.Namespace) -> int:
    """Compare; the status says whether that was possible, and with --exit-code whether they are alike."""
    from kvguard.slo.baselines.difference import difference
    from kvguard.sources.documents import read_baseline

    places = destinations(arguments, DIFF_RENDERERS)
    found = difference(*(read_baseline(name, Path()) for name in (arguments.old, arguments.new)))
    write_reports(places, lambda form, terminal: DIFF_RENDERERS[form](found, terminal))
    if not found.tells:
        return exit_status.UNKNOWN
    return exit_status.MISSED if arguments.exit_code and found.differs else exit_status.MET
