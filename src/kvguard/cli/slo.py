"""`kvguard slo`: checks SLO files without a log, and prints their schema."""

import argparse
import json
from pathlib import Path

from kvguard.cli import exit_status
from kvguard.cli.standard_streams import LONGEST_SAID, put, say, take
from kvguard.errors import SourceError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the two actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="say every mistake of SLO files, with line and key")
    check.add_argument("files", nargs="+", metavar="FILE", help="SLO file, YAML or JSON; - for stdin")
    actions.add_parser("schema", help="print the JSON schema of an SLO file")


def run(arguments: argparse.Namespace) -> int:
    """Do the chosen action."""
    if arguments.action == "schema":
        from kvguard.slo.file import json_schema

        put(json.dumps(json_schema(), indent=2) + "\n")
        return exit_status.MET
    return _check(arguments.files)


def _check(files: list[str]) -> int:
    from kvguard.cli.objective_flags import not_asked
    from kvguard.render.log_text import shown
    from kvguard.render.start_facts import log_name
    from kvguard.slo.file import mistakes_of, read_settings
    from kvguard.slo.settings import slo_of
    from kvguard.sources.documents import LARGEST_SLO, missing_files, read_text

    status = exit_status.MET
    for file in files:
        name = log_name(file)
        try:
            text = take() if file == "-" else read_text(Path(file), LARGEST_SLO)
        except SourceError as error:
            say(f"kvguard: {error}")
            status = exit_status.USAGE
            continue
        mistakes = mistakes_of(text, name) or missing_files(text, name)
        for mistake in mistakes:
            put(f"{shown(mistake, LONGEST_SAID)}\n")
        if mistakes:
            status = max(status, exit_status.MISSED)
        else:
            asked = read_settings(text, name)
            said = None if "baseline" in asked.values else not_asked(slo_of(asked))
            put(f"{name}: fine; {said}\n" if said else f"{name}: fine\n")
    return status
