"""`kvguard history`: recorded checks over time and versions."""

import argparse
from pathlib import Path

from kvguard.cli import exit_status
from kvguard.cli.output import add_output_flags, destinations, write_reports
from kvguard.cli.standard_streams import say

FORMS = ("text",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the file and how much of it to show."""
    parser.add_argument("file", type=Path, metavar="FILE", help="what kvguard check --record wrote, - for stdin")
    parser.add_argument("--last", type=_newest, default=30, metavar="N", help="show the newest N checks (default: 30)")
    add_output_flags(parser, FORMS)


def run(arguments: argparse.Namespace) -> int:
    """Draw it; lines that are no record are named on stderr and make the status 1."""
    from kvguard.cli.records import read_records
    from kvguard.render.history_chart import render_history
    from kvguard.render.start_facts import log_name

    places = destinations(arguments, FORMS)
    records = read_records(arguments.file)
    newest = records.found[-arguments.last :]
    write_reports(places, lambda form, terminal: render_history(newest, terminal))
    if not records.others:
        return exit_status.MET
    first, more = records.others[0], len(records.others) - 1
    others = f" and {more} more" if more else ""
    say(f"kvguard: {log_name(str(arguments.file))}:{first}{others}: not a report of kvguard check --record")
    return exit_status.MISSED


def _newest(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}: how many to show is a whole number from 1 on")
    return int(text)
