"""Where reports go: `--format NAME[=FILE]`, which repeats, `--output FILE`, and what the terminal can show."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from kvguard.cli import paths
from kvguard.cli.standard_streams import put
from kvguard.errors import ConfigError, SourceError
from kvguard.render.layout import Terminal
from kvguard.slotted import dataclass, replace

if TYPE_CHECKING:
    from pathlib import Path

WIDEST = 120
"""Columns beyond which text is hard to read."""
UNKNOWN_WIDTH = 100
"""Where nobody tells the width: a pipeline's log, a file."""
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Destination:
    """One format and the file it goes to; `None` is stdout."""

    form: str
    path: "Path | None"
    verbose: bool = False


def add_output_flags(parser: argparse.ArgumentParser, forms: Iterable[str], *, details: bool = False) -> None:
    """Add `--format` and `--output`, and `--verbose` where the text has details that it leaves out."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format",
        action="append",
        metavar="NAME[=FILE]",
        help=f"{', '.join(forms)}; repeats, one of them without a file (default: text)",
    )
    group.add_argument("--output", type=paths.path, metavar="FILE", help="where the format without a file goes")
    if details:
        group.add_argument(
            "-v", "--verbose", action="store_true", help="text: every way out, the memory drawn, each engine"
        )


def destinations(arguments: argparse.Namespace, forms: Iterable[str]) -> tuple[Destination, ...]:
    """What is to be written where.

    Raises:
        ConfigError: a format that does not exist, a file named twice, two formats for stdout, or a file that is read.
    """
    verbose = getattr(arguments, "verbose", False)
    found = [_destination(text, arguments.output, tuple(forms), verbose) for text in arguments.format or ["text"]]
    for index, one in enumerate(found):
        if any(one.path == other.path for other in found[:index]):
            where = "stdout" if one.path is None else str(one.path)
            raise ConfigError(f"--format {one.form}: two formats go to {where}: write --format {one.form}=FILE")
    for path in (*(one.path for one in found), getattr(arguments, "record", None)):
        keep_what_is_read(path, arguments)
    if arguments.output is not None and all("=" in text for text in arguments.format or ["text"]):
        raise ConfigError(f"--output {arguments.output}: every --format names its own file already")
    return tuple(found)


_READ = ("logs", "log", "old", "new", "file", "slo", "baseline", "model_config")
"""Arguments that name what a command reads."""


def keep_what_is_read(path: "Path | None", arguments: argparse.Namespace) -> None:
    """Hold a slip of the hand from destroying the only log of a failed start.

    Raises:
        ConfigError: what would be written is what is read.
    """
    read = [name for argument in _READ for name in _names(getattr(arguments, argument, None))]
    if path is not None and any(_is_same(path, paths.path(name)) for name in read):
        raise ConfigError(f"{path}: is read by this very command: name another file to write to")


def _names(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    return [] if value is None else [str(value)]


def _is_same(one: "Path", other: "Path") -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def _destination(text: str, output: "Path | None", forms: tuple[str, ...], verbose: bool) -> Destination:
    form, named, file = text.partition("=")
    if form not in forms:
        raise ConfigError(f"--format {form}: no such format; there are {', '.join(forms)}")
    if named and not file:
        raise ConfigError(f"--format {text}: a file name belongs behind the =")
    path = paths.path(file) if named else output
    if path is not None and not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: its folder does not exist: make it first")
    return Destination(form, path, verbose)


def write_reports(
    found: Iterable[Destination], render: Callable[[str, Terminal], str], page: TextIO | None = None
) -> None:
    """Write each report to its place: files first, so that they are there when the page's reader leaves early.

    Args:
        found: the formats and their places.
        render: draws one format.
        page: where a report without a file goes; stdout unless told otherwise.

    Raises:
        SourceError: a file cannot be written.
    """
    for destination in sorted(found, key=lambda one: one.path is None):
        if destination.path is None:
            stream = page or sys.stdout
            terminal = replace(terminal_of(stream, os.environ), verbose=destination.verbose)
            put(render(destination.form, terminal), stream)
        else:
            write_file(destination.path, render(destination.form, Terminal(UNKNOWN_WIDTH, verbose=destination.verbose)))


def write_file(path: "Path", text: str) -> None:
    """Write a file anew; a step's summary is added to, since others write there as well.

    Raises:
        SourceError: it cannot be written.
    """
    mode = "a" if str(path) == os.environ.get(STEP_SUMMARY) else "w"
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SourceError(cannot_write(path, error)) from None


def cannot_write(path: "Path", error: OSError) -> str:
    """Why a file cannot be written, in one line."""
    return f"{path}: cannot be written ({(error.strerror or str(error)).lower()}): name another file"


def terminal_of(stream: TextIO, environ: Mapping[str, str]) -> Terminal:
    """What a stream can show: width, colour (`NO_COLOR`, `FORCE_COLOR`, `TERM`), and more than ASCII or not."""
    interactive = stream.isatty()
    if interactive or "COLUMNS" in environ:
        import shutil  # it loads every compressor

        width = min(shutil.get_terminal_size((UNKNOWN_WIDTH, 24)).columns, WIDEST)
    else:
        width = UNKNOWN_WIDTH
    color = interactive and environ.get("TERM") != "dumb"
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        color = True
    if environ.get("NO_COLOR"):
        color = False
    return Terminal(width, color, _can_show(stream, "█✔→−×"))


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
