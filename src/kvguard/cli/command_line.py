"""The words of a command line to options: argparse over `COMMANDS`, with every mistake told in one line."""

import argparse
import importlib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from types import ModuleType
from typing import NoReturn

from kvguard.cli import COMMANDS, exit_status
from kvguard.cli.standard_streams import LONGEST_SAID
from kvguard.version import __version__

DESCRIPTION = "Know how much a vLLM server can hold, before the traffic does."
EPILOG = (
    "Exit status: 0 met, 1 missed or failed, 2 usage or unreadable input, 3 unknown.\n"
    "`kvguard COMMAND --help` says it for each, with examples."
)


class _OneLineParser(argparse.ArgumentParser):
    """Tells a mistake in one line, as every other error is told, instead of a page of usage before it."""

    def error(self, message: str) -> NoReturn:
        from kvguard.render.log_text import shown  # a mistyped command line may hold a key as well

        self.exit(exit_status.USAGE, f"{self.prog}: {shown(message, LONGEST_SAID)} (see {self.prog} --help)\n")


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for one command line; only the command that is called pays for its options."""
    name = next((word for word in words if not word.startswith("-")), None)
    # only a page of help need know how wide the terminal is, and the module that can tell loads every compressor
    helped = {"-h", "--help"} & {*words}
    shape = argparse.RawDescriptionHelpFormatter if helped else partial(argparse.HelpFormatter, width=80)
    top = _OneLineParser(
        prog="kvguard", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False, formatter_class=shape
    )
    top.add_argument("--version", action="version", version=f"kvguard {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listed = {name: COMMANDS[name]} if name in COMMANDS and words[0] == name else COMMANDS
    for command, line in listed.items():
        described = commands.add_parser(command, help=line, description=line, allow_abbrev=False, formatter_class=shape)
        if command == name:
            _module(command).configure(described)
            if helped:
                from kvguard.cli.help_pages import below_options  # nobody else reads it

                described.epilog = below_options(command)
    return top


def run(words: Sequence[str]) -> int:
    """Do what the command line asks for, and give the exit status."""
    top = parser(words)
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        meant = _closest(words[0], COMMANDS, 0.6)
        top.error(
            f"no command {words[0]!r}"
            + (f"; did you mean {meant}?" if meant else f"; there are: {', '.join(COMMANDS)}")
        )
    arguments, unknown = top.parse_known_args(words)
    if unknown:
        top.prog = f"kvguard {arguments.command}"  # its --help lists the flags that there are
        top.error(f"unrecognized arguments: {' '.join(unknown)}{_nearest(unknown, arguments.command)}")
    return int(_module(arguments.command).run(arguments))


def _nearest(unknown: Sequence[str], command: str) -> str:
    """The flag that was most likely meant by the first one that is none; empty where none is near."""
    described = argparse.ArgumentParser(add_help=False)
    _module(command).configure(described)
    known = re.findall(r"--[a-z][a-z0-9-]*", described.format_help())
    flags = [word.partition("=")[0] for word in unknown if word.startswith("--")]
    meant = _closest(flags[0], known, 0.8) if flags else None
    return f"; did you mean {meant}?" if meant else ""


def _closest(word: str, known: Iterable[str], likeness: float) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=likeness)), None)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"kvguard.cli.{name}")
