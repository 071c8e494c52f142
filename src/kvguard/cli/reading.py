"""Logs to guards, read to their end at once."""

import os
from collections.abc import Sequence

from kvguard.errors import ConfigError
from kvguard.guard import Guard, judge
from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Verdict
from kvguard.sources.ahead import feed_whole
from kvguard.sources.blocks import STDIN


def read_whole(names: Sequence[str], slo: Slo, formats: tuple[LineFormat, ...] = FORMATS) -> Verdict:
    """Judge logs as they stand, one a node of a deployment.

    Raises:
        SourceError: a log cannot be read.
        ConfigError: a log is named twice, or given in two forms.
    """
    only_once(names)
    guards = [Guard(slo, name, formats) for name in names]
    for name, guard in zip(names, guards, strict=True):
        feed_whole(guard, name)
        guard.end()
    _hold_to_content(guards)
    return joined(guards, slo)


def joined(guards: Sequence[Guard], slo: Slo, now: float | None = None) -> Verdict:
    """The verdict over all nodes."""
    return guards[0].verdict if len(guards) == 1 else judge(guards, slo, now)


def only_once(names: Sequence[str]) -> None:
    """Hold a command line to naming each log once: a node that counts twice holds twice as much.

    Raises:
        ConfigError: stdin, or a file by whatever names, is named twice, or one has no name.
    """
    if "" in names:
        raise ConfigError("an empty name for a LOG: is the variable set that it comes from?")
    if list(names).count(STDIN) > 1:
        raise ConfigError("stdin can be one log only: name the others as files")
    named: dict[object, str] = {}
    for name in names:
        file = _file(name)
        if file in named:
            raise ConfigError(f"{name}: the same log as {named[file]}: name the log of each node once")
        named[file] = name


def _hold_to_content(guards: Sequence[Guard]) -> None:
    """The same log under two names: as `vllm.log` and `vllm.log.gz`, as a copy, as a file and through a pipe.

    Two nodes never print the same lines in the same places to the byte: their pids, stamps and durations differ.
    """
    known: dict[object, str] = {}
    for report in (guard.report for guard in guards):
        if report.start is None or not report.start.quotes:
            continue
        content = (report.counts, tuple((place.line, text) for place, text in report.start.quotes.items()))
        (name,) = report.sources
        if content in known:
            raise ConfigError(f"{name}: the same lines as in {known[content]}: name the log of each node once")
        known[content] = name


def _file(name: str) -> object:
    """What a name leads to; a file that is not there yet is known by its name alone."""
    try:
        found = os.stat(name)  # noqa: PTH116 - see cli.paths
    except OSError:
        return name
    return found.st_dev, found.st_ino
