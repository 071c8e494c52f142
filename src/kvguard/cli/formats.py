"""`kvguard formats`: the wordings that kvguard knows, and what they were tested with."""

import argparse
from collections.abc import Callable

from kvguard.cli import exit_status
from kvguard.cli.output import add_output_flags, destinations, write_reports
from kvguard.render.layout import Terminal

FORMS = ("text", "json", "markdown")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what to show and where."""
    parser.add_argument("--versions", action="store_true", help="show formats by release and platform")
    add_output_flags(parser, FORMS)


def run(arguments: argparse.Namespace) -> int:
    """Show the table."""
    from kvguard.render.format_table import render_page, render_table, render_versions, table_document
    from kvguard.render.json_report import render_json

    renderers: dict[str, Callable[[Terminal], str]] = {
        "text": render_versions if arguments.versions else render_table,
        "json": lambda terminal: render_json(table_document()),
        "markdown": lambda terminal: render_page(),
    }
    write_reports(destinations(arguments, FORMS), lambda form, terminal: renderers[form](terminal))
    return exit_status.MET
