"""Reads what people write for kvguard: SLO files, and the model configs and baselines that they name."""

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvguard.errors import ConfigError, SourceError, UserError
from kvguard.slo.objectives import Slo
from kvguard.slo.settings import Settings, slo_of

if TYPE_CHECKING:
    from pathlib import Path

    from kvguard.slo.baselines.baseline import Baseline
    from kvguard.startup.report import CapacityReport

PROMETHEUS = "prometheus:"
"""What a baseline's name begins with that is a query and no file."""
_PEEKED = 1 << 16
LARGEST_DOCUMENT = 16 * 2**20
"""No document for people is larger; a log given by mistake is not read whole."""
PATIENCE_S = 10
"""For whoever writes into a pipe that stands for a file."""
LARGEST_SLO = 2**20
"""YAML takes seconds a MiB to read, and a sidecar reads its file again and again."""


def read_text(path: "Path", largest: int = LARGEST_DOCUMENT) -> str:
    """The text of a small file, of at most that many bytes.

    Raises:
        SourceError: missing, a directory, unreadable, no text, or far too large for what it should be.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                _await_writer(file.fileno(), path)
            data = file.read(largest + 1)
    except OSError as error:
        raise SourceError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(data) > largest:
        raise SourceError(f"{path}: larger than {largest // 2**20} MiB: not a file written for kvguard")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{path}: not a text file") from None


def _await_writer(descriptor: int, path: "Path") -> None:
    """Wait for what a shell puts in a file's place, `<(…)`; a named pipe into which nobody writes must hang nobody."""
    import select  # only here

    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    if not waiting.poll(1000 * PATIENCE_S):
        raise SourceError(f"{path}: a named pipe into which nobody writes: name a file")
    os.set_blocking(descriptor, True)


def read_json(path: "Path") -> Mapping[str, object]:
    """A JSON object from a file.

    Raises:
        SourceError: as `read_text`.
        ConfigError: it is no JSON, or no object; the line is named.
    """
    import json  # a check of a log alone reads none

    try:
        document = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not JSON: nested too deeply") from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise ConfigError(f"{path}: not JSON: a number too long") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: a JSON object belongs here")
    return document


def read_model_config(name: str, folder: "Path | str") -> Mapping[str, object]:
    """A model's config: the file, the folder of a model that holds it, or a public model's by name.

    Raises:
        SourceError, ConfigError: as `read_json`; a name that is neither a path nor known is a missing file.
    """
    from pathlib import Path

    path = Path(folder) / name
    if not path.exists():
        from kvguard.kvcache.models import named_config, unknown_model  # loaded only where a model is named

        known = named_config(name)
        if known is not None:
            return known.whole
        if "/" not in name and not name.endswith(".json"):
            raise SourceError(unknown_model(name))
    return read_json(path / "config.json" if path.is_dir() else path)


def read_baseline(name: str, folder: "Path | str") -> "Baseline":
    """What a start is held against: a baseline, a report or a log in a file, or what a Prometheus server holds.

    Raises:
        SourceError: the file or the server cannot be read.
        ConfigError: a document of another kind, a log without a start, or a wrong query.
    """
    if name.startswith(PROMETHEUS):
        from kvguard.sources.prometheus import baseline_of_query  # the HTTP client only where a server is asked

        return baseline_of_query(name.removeprefix(PROMETHEUS))
    from pathlib import Path

    from kvguard.slo.baselines.baseline import baseline_of  # comparing only where there is something to compare with
    from kvguard.slo.baselines.document import baseline_from

    path = Path(folder) / name
    if not _is_document(path):
        return baseline_of([read_log(str(path))])
    try:
        document = read_json(path)
    except ConfigError as error:
        raise ConfigError(f"{error}: not a baseline, which `kvguard baseline LOG -o FILE` writes") from None
    return baseline_from(document, str(path))


def read_log(name: str) -> "CapacityReport":
    """The report of one log, read to its end.

    Raises:
        SourceError: it cannot be read.
    """
    from kvguard.guard import Guard
    from kvguard.sources.ahead import feed_whole

    guard = Guard(source=name)
    feed_whole(guard, name)
    guard.end()
    return guard.report


def _is_document(path: "Path") -> bool:
    """Whether a file is one JSON document; a log is not, nor is one whose records are JSON, a line each."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first, _, more = file.read(_PEEKED).lstrip().partition(b"\n")
    if first.startswith(b"["):
        return first[1:].lstrip()[:1] in (b"]", b"{", b'"', b"")  # and no time stamp
    return first.startswith(b"{") and not (more.strip() and _is_json(first))


def _is_json(line: bytes) -> bool:
    import json

    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def read_slo(path: "Path | None", flags: Settings | None = None) -> Slo:
    """The SLO of a file, of flags, or of both; flags win. What a file names is looked for beside it.

    Raises:
        SourceError: a file cannot be read.
        ConfigError: a file or a combination of keys is wrong.
    """
    asked = flags or Settings()
    if path is None:
        return _complete(asked, {})
    from kvguard.slo.file import read_settings  # pydantic and yaml only where a file must be validated

    written = read_settings(read_text(path, LARGEST_SLO), str(path), asked)
    return _complete(asked.over(written), {name: path.parent for name in written.values if name not in asked.values})


def missing_files(text: str, name: str) -> tuple[str, ...]:
    """What is wrong with the files that a valid SLO file names, a line each."""
    from pathlib import Path

    from kvguard.slo.file import read_settings

    try:
        written = read_settings(text, name)
        _complete(written, dict.fromkeys(written.values, Path() if name == "-" else Path(name).parent))
    except UserError as error:
        return (f"{name}: {error}",)
    return ()


def _complete(settings: Settings, folders: "Mapping[str, Path]") -> Slo:
    model_config, baseline = settings.text("model_config"), settings.text("baseline")
    here = os.curdir
    return slo_of(
        settings,
        None if model_config is None else read_model_config(model_config, folders.get("model_config", here)),
        None if baseline is None else read_baseline(baseline, folders.get("baseline", here)),
    )
