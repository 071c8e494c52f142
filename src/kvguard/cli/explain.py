"""`kvguard explain`: which row of the table matched which line, and what it told."""

import argparse

from kvguard.cli import exit_status
from kvguard.cli.formats_flag import add_formats_flag, table_from
from kvguard.cli.output import add_output_flags, destinations, write_reports

FORMS = ("text", "json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the log and where the explanation goes."""
    parser.add_argument("log", metavar="LOG", help="a vLLM log (.gz and .zst as they are), - for stdin")
    add_formats_flag(parser)
    add_output_flags(parser, FORMS)


def run(arguments: argparse.Namespace) -> int:
    """Explain; the status says only whether the log could be read."""
    from kvguard.render.explanation import explanation_document, render_explanation
    from kvguard.render.json_report import render_json
    from kvguard.sources.blocks import read_blocks
    from kvguard.trace import trace

    places = destinations(arguments, FORMS)
    found = trace(read_blocks(arguments.log), arguments.log, table_from(arguments))
    write_reports(
        places,
        lambda form, terminal: (
            render_explanation(found, terminal) if form == "text" else render_json(explanation_document(found))
        ),
    )
    return exit_status.MET
