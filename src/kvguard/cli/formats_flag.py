"""`--formats FILE`: a user's own rows for the table of formats."""

import argparse
from typing import TYPE_CHECKING

from kvguard.cli.paths import path

if TYPE_CHECKING:
    from kvguard.lines.line_format import LineFormat


def add_formats_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag."""
    parser.add_argument("--formats", type=path, metavar="FILE", help="rows of your own for the table of formats")


def table_from(arguments: argparse.Namespace) -> "tuple[LineFormat, ...]":
    """The table of formats, with the file's rows where one is given.

    Raises:
        SourceError, ConfigError: the file cannot be read, or one of its rows is not sound.
    """
    from kvguard.lines.formats import FORMATS

    if arguments.formats is None:
        return FORMATS
    from kvguard.sources.extra_formats import read_formats  # pydantic and yaml only where a file must be validated

    return read_formats(arguments.formats, FORMATS)
