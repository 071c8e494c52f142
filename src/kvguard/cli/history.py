"""`kvguard history`: recorded checks over time and versions."""

import argparse
from pathlib import Path

from kvguard.cli import exit_status
from kvguard.cli.output import add_output_flags, destinations, write_reports
from kvguard.cli.standard_streams import say

FORMS = ("text",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the file and how much of it to show."""
    parser.add_argument("file", type=Path, metavar="FILE", help="what kvguard check --record wrote")
    parser.add_argument("--last", type=int, default=30, metavar="N", help="show the newest N checks (default: 30)")
    add_output_flags(parser, FORMS)


def run(arguments: argparse.Namespace) -> int:
    """Draw it; a line that is no report is named on stderr and makes the status 1."""
    from kvguard.cli.records import read_records
    from kvguard.render.history_chart import Record, render_history

    places = destinations(arguments, FORMS)
    records: list[Record] = []
    status = exit_status.MET
    for found in read_records(arguments.file):
        if isinstance(found, Record):
            records.append(found)
        else:
            say(f"kvguard: {found}")
            status = exit_status.MISSED
    newest = records[-arguments.last :] if arguments.last > 0 else []
    write_reports(places, lambda form, terminal: render_history(newest, terminal))
    return status
