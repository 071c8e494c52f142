"""The flags that say what is asked of a start: one a key of the SLO file, and the SLO that they make with a file."""

import argparse
from collections.abc import Callable

from kvguard.cli.paths import path
from kvguard.slo.keys import KEYS, Key
from kvguard.slo.objectives import DEFAULT_SEVERITIES, KINDS, Severity, Slo
from kvguard.slo.quantities import read_value
from kvguard.slo.settings import Settings
from kvguard.sources.documents import read_slo
from kvguard.units import QuantityError, format_quantity

_METAVARS = {
    "bytes": "SIZE",
    "ratio": "SHARE",
    "seconds": "TIME",
    "text": "FILE",
    "": "NAME",
    "layers": "uniform",
    "mode": "enforce|observe",
    "on_unknown": "block|allow",
}
_TITLES = {
    "objectives": "objectives",
    "workload": "workload",
    "runtime": "objectives on load",
    "regression": "regression",
    "gate": "gate",
}


def add_objective_flags(parser: argparse.ArgumentParser, *, gate: bool = False) -> None:
    """Add `--slo` and a flag for each key; those of the gate only where there is one (`serve`)."""
    common = parser.add_argument_group("SLO", "a flag is its key of the SLO file with dashes, and overrides it")
    common.add_argument("--slo", type=path, metavar="FILE", help="SLO file, YAML or JSON")
    common.add_argument("--strict", action="store_true", help="a warning fails the verdict as well")
    common.add_argument(
        "--warnings",
        type=_severity_of("warning", tuple(DEFAULT_SEVERITIES)),
        action="append",
        metavar="CODE=SEVERITY",
        help="what a warning does: fail, warn, note or ignore, as profiling-skipped=ignore",
    )
    common.add_argument(
        "--severity",
        type=_severity_of("objective", tuple(KINDS)),
        action="append",
        metavar="OBJECTIVE=SEVERITY",
        help="what a missed objective does: fail, warn, note or ignore, as max_weights=warn",
    )
    for section, title in _TITLES.items():
        if section != "gate" or gate:
            group = parser.add_argument_group(title)
            for key in KEYS:
                if key.section == section:
                    _add(group, key)


def settings_from(arguments: argparse.Namespace) -> Settings:
    """What the flags alone ask for."""
    given = {key.name: getattr(arguments, key.name, None) for key in KEYS}
    return Settings(
        {name: value for name, value in given.items() if value is not None},
        dict(arguments.warnings or ()),
        dict(arguments.severity or ()),
        arguments.strict,
    )


def slo_from(arguments: argparse.Namespace) -> Slo:
    """The SLO of `--slo` and the other flags; reads the files anew each time it is called.

    Raises:
        SourceError, ConfigError: a file cannot be read, or is wrong; one line each.
    """
    return read_slo(arguments.slo, settings_from(arguments))


def not_asked(slo: Slo) -> str | None:
    """What a person may take to be judged and is not, in one line; `None` where there is no such thing."""
    tokens = slo.workload.request_tokens if slo.workload else 0
    if tokens and slo.target("concurrent_requests") is None:
        requests = f"the requests of {format_quantity(tokens, 'tokens')}"
        return f"of {requests} it is judged only whether one can run: --concurrent-requests N asks for so many at once"
    if not slo.objectives and not slo.require_ready and slo.ready_within is None:
        return "no objective is given: the start alone is judged"
    return None


def _add(group: argparse._ArgumentGroup, key: Key) -> None:
    help_line = key.help.replace("%", "%%")
    if key.unit == "switch":
        group.add_argument(key.flag, action=argparse.BooleanOptionalAction, default=None, help=help_line)
        return
    group.add_argument(key.flag, type=_reader(key), metavar=_METAVARS.get(key.unit, "N"), help=help_line)


def _reader(key: Key) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return read_value(key.unit, text)
        except QuantityError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _severity_of(what: str, names: tuple[str, ...]) -> Callable[[str], tuple[str, Severity]]:
    # the flag of an objective has dashes where its key has none
    spelt = {name.replace("_", "-"): name for name in names}

    def read(text: str) -> tuple[str, Severity]:
        given, equals, severity = text.partition("=")
        name = spelt.get(given.replace("_", "-"))
        if name is not None and not equals:
            raise argparse.ArgumentTypeError(f"write what it does behind it, as {given}=note")
        if name is None:
            raise argparse.ArgumentTypeError(f"{given!r} is no {what}; there are: {', '.join(names)}")
        try:
            return name, Severity(str(read_value("severity", severity)))
        except QuantityError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
