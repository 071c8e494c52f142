"""JSON objects around a message: container runtimes, log shippers, JSON loggers (vLLM's own from 0.32.0)."""

from collections.abc import Iterable, Mapping
from typing import Any

from kvguard.slotted import dataclass

MESSAGE_KEYS = (
    "message",
    "msg",
    "log",
    "event",
    "text",
    "body",
    "MESSAGE",
    "textPayload",
    "line",
    "content",
    "@message",
)
LEVEL_KEYS = ("levelname", "level", "severity", "lvl", "log.level", "loglevel")
STAMP_KEYS = ("asctime", "timestamp", "time", "ts", "@timestamp", "datetime")
PID_KEYS = ("process", "pid", "process_id", "processId")
LONGEST_PID = 10
"""Digits of a pid, as in a process tag."""
PROCESS_KEYS = ("vllm_process_name", "processName", "process_name", "threadName")
FILE_KEYS = ("filename", "file", "pathname", "module", "caller")
LOGGER_KEYS = ("name", "logger", "logger_name")
NESTED_KEYS = ("jsonPayload", "record", "fields", "data", "log", "_source", "attributes", "content")
MAX_OBJECT_CHARACTERS = 2**18
LONGEST_NAME = 200
"""Characters of a process's name, which is remembered for each process."""


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One JSON object of a log."""

    message: str
    level: str | None
    stamp: str | None
    pid: int | None
    process: str | None
    file: str | None
    logger: bool
    """Whether a logger of the program wrote it, not a runtime or a shipper that frames any line."""
    partial: bool


def read(text: str) -> JsonRecord | None:
    """The message of a JSON object that is the whole text, else `None`."""
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or len(stripped) > MAX_OBJECT_CHARACTERS:
        return None
    import json  # most logs hold none

    try:
        parsed = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return _record(parsed) if isinstance(parsed, dict) else None


def listed(text: str) -> list[str]:
    """The objects of a list that are records, as far as the list is there."""
    import json

    decoder, place, found = json.JSONDecoder(), 1, []
    try:
        while place < len(text):
            parsed, end = decoder.raw_decode(text, place)
            if isinstance(parsed, dict) and _record(parsed) is not None:
                found.append(text[place:end])
            following = text.find("{", end)
            place = following if following > 0 and text[end:following].strip() == "," else len(text)
    except (ValueError, RecursionError):
        pass  # the rest was cut
    return found


def _record(parsed: Mapping[str, Any]) -> JsonRecord | None:
    for key in NESTED_KEYS:
        inner = parsed.get(key)
        if isinstance(inner, dict) and _text(inner, MESSAGE_KEYS) is not None:
            return _record(inner)
    message = _text(parsed, MESSAGE_KEYS)
    if message is None:
        return None
    level = _text(parsed, LEVEL_KEYS)
    runtime = "stream" in parsed and "log" in parsed
    details = _text(parsed, ("exc_info", "exception", "stack_info", "traceback"))
    return JsonRecord(
        message=message if details is None else f"{message}\n{details}",
        level=level.upper() if level else None,
        stamp=_text(parsed, STAMP_KEYS),
        pid=_pid(parsed),
        process=_process(parsed),
        file=_file(parsed),
        logger=not runtime and _text(parsed, PROCESS_KEYS + LOGGER_KEYS + FILE_KEYS) is not None,
        partial=runtime and not message.endswith("\n"),
    )


def _process(parsed: Mapping[str, Any]) -> str | None:
    name = _text(parsed, PROCESS_KEYS)
    return name if name and name != "MainProcess" and len(name) <= LONGEST_NAME else None


def _file(parsed: Mapping[str, Any]) -> str | None:
    """The source file; where only the logger is named, the module it belongs to (`vllm.entrypoints.logger`)."""
    path = _text(parsed, FILE_KEYS)
    if path is not None:
        return path.rpartition("/")[2]
    logger = _text(parsed, LOGGER_KEYS)
    return f"{logger.rpartition('.')[2]}.py" if logger else None


def _text(parsed: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    return next((value for key in keys if isinstance(value := parsed.get(key), str)), None)


def _pid(parsed: Mapping[str, Any]) -> int | None:
    """The process id; a number that no kernel gives is none."""
    for key in PID_KEYS:
        value = parsed.get(key)
        if isinstance(value, str) and value.isdecimal() and len(value) <= LONGEST_PID:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**LONGEST_PID:
            return value
    return None
