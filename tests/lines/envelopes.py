"""What runtimes, runners, shippers and viewers do to a log on its way: each a function from its text to bytes."""

import json
import re
from collections.abc import Callable, Iterator

Wrapper = Callable[[str], bytes]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STAMP = re.compile(r"(?<!\d)(\d\d-\d\d) (\d\d:\d\d:\d\d)(?:[.,](\d{3}))?")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_TAG = re.compile(r"(?:(?:\x1b\[[\d;]*m)*\([A-Za-z]\w*(?: \w+)? pid=\d+(?:, ip=[\d.]+)?\)(?:\x1b\[[\d;]*m)* )+")
_RECORD = re.compile(rf"(?:{_TAG.pattern})?(?:\x1b\[[\d;]*m)*(?:INFO|WARNING|ERROR|DEBUG)\b.* \d\d-\d\d \d\d:\d\d:\d\d")
_READY = ("Application startup complete", "Available routes are", "ready to accept requests", "init engine")


def each(prefix: str, suffix: str = "") -> Wrapper:
    """The same text before (and behind) every line."""
    return lambda text: _joined(f"{prefix}{line}{suffix}" for line in text.splitlines())


def stamped(form: str) -> Wrapper:
    """A stamp before every line, of the moment at which a runtime gets it: `{date}` and `{clock}` of the line's own."""

    def wrap(text: str) -> bytes:
        return _joined(form.format(date=date, clock=clock) + line for date, clock, line in _dated(text))

    return wrap


def journald(text: str) -> bytes:
    """The host's journal, which names the month."""
    return _joined(
        f"{_MONTHS[int(date[:2]) - 1]} {int(date[3:]):>2} {clock} gpu-node-3 vllm[1412]: {line}"
        for date, clock, line in _dated(text)
    )


def cri(text: str) -> bytes:
    """The kubelet's files: a line longer than its buffer is cut into partial ones."""
    return _joined(
        f"2026-{date}T{clock}Z stdout {'P' if more else 'F'} {part}"
        for date, clock, line in _dated(text)
        for part, more in _parts(line, 150)
    )


def docker_json(text: str) -> bytes:
    """Docker's json-file driver, which cuts long lines as well."""
    return _joined(
        json.dumps({"log": part + ("" if more else "\n"), "stream": "stderr", "time": f"2026-{date}T{clock}Z"})
        for date, clock, line in _dated(text)
        for part, more in _parts(line, 150)
    )


def json_logger(key: str, level: str = "info") -> Wrapper:
    """A shipper's or a logger's objects, one a line, with the text under one of the usual keys."""
    return lambda text: _joined(
        json.dumps({"timestamp": f"2026-{date}T{clock}Z", "level": level, key: line})
        for date, clock, line in _dated(text)
    )


def json_behind_tag(text: str) -> bytes:
    """A JSON logger of vLLM's own processes, whose stdout puts the process tag before every line."""
    lines = []
    for line in text.splitlines():
        tag = _TAG.match(line)
        end = tag.end() if tag is not None else 0
        lines.append(
            f"{line[:end]}{json.dumps({'severity': 'INFO', 'msg': line[end:]})}" if _RECORD.match(line) else line
        )
    return _joined(lines)


def nested_json(text: str) -> bytes:
    """An object inside an object, as Fluent Bit's kubernetes filter and Google's agents ship them."""
    return _joined(
        json.dumps({"severity": "DEFAULT", "jsonPayload": {"message": line}, "insertId": "k9"})
        for line in text.splitlines()
    )


def csv(form: str, around: str = "") -> Wrapper:
    """Rows of a log store's export: a comma or a quote in a line has its cell quoted."""

    def wrap(text: str) -> bytes:
        quoted = ((date, clock, line.replace('"', '""')) for date, clock, line in _dated(text))
        return _joined(form.format(date=date, clock=clock) + f'"{line}"{around}' for date, clock, line in quoted)

    return wrap


def indented_json(text: str) -> bytes:
    """A client of a log store: a list of entries, each over several lines."""
    events = [
        {"timestamp": 1, "message": line, "labels": {"app": "vllm", "on": ["a", "b"]}} for line in text.splitlines()
    ]
    return json.dumps({"events": events, "nextToken": "f/1"}, indent=4).encode() + b"\n"


def listed_json(text: str) -> bytes:
    """Grafana's download: all lines in one list on one line."""
    return json.dumps([{"line": line, "fields": {"app": "vllm"}} for line in text.splitlines()]).encode()


def coloured(escape: str) -> Wrapper:
    """Colours around tag and level, the escape character written in some way or lost."""

    def wrap(text: str) -> bytes:
        lines = []
        for line in text.splitlines():
            tag = _TAG.match(line)
            if tag is not None and "\x1b" not in line:
                line = f"{escape}[0;36m{tag[0].rstrip()}{escape}[0;0m {line[tag.end() :]}"
            lines.append(line.replace("\x1b", escape))
        return _joined(lines)

    return wrap


def between_tag_and_level(stage: str) -> Wrapper:
    """A stage's or a node's name between the process tag and the level."""

    def wrap(text: str) -> bytes:
        lines = []
        for line in text.splitlines():
            tag = _TAG.match(line)
            end = tag.end() if tag is not None else 0
            lines.append(f"{line[:end]}{stage}{line[end:]}" if _RECORD.match(line) else line)
        return _joined(lines)

    return wrap


def glued(before: str) -> Wrapper:
    """A progress bar or dots that nobody has ended with a newline, before every tenth record of a start."""

    def wrap(text: str) -> bytes:
        lines = text.splitlines()
        for index in range(0, _end_of_start(lines), 10):
            if _RECORD.match(lines[index]):
                lines[index] = before + lines[index]
        return _joined(lines)

    return wrap


def boxed(width: int) -> Wrapper:
    """A terminal multiplexer's pane: borders on both sides, long lines wrapped inside."""
    return lambda text: _joined(
        f"│ {piece:<{width}} │" for line in _COLOUR.sub("", text).splitlines() for piece in _cut(line, width) or [""]
    )


def wrapped(width: int, continuation: str = "", before: str = "") -> Wrapper:
    """A terminal's or a viewer's lines, cut at its width; what follows may be indented or marked."""

    def wrap(text: str) -> bytes:
        lines = []
        for line in _COLOUR.sub("", text).splitlines():
            lines += [before + line[:width]]
            lines += [before + continuation + piece for piece in _cut(line[width:], width - len(continuation))]
        return _joined(lines)

    return wrap


def word_wrapped(width: int, continuation: str = "    ") -> Wrapper:
    """The same, cut at spaces, which are lost."""

    def wrap(text: str) -> bytes:
        lines = []
        for line in _COLOUR.sub("", text).splitlines():
            first, *rest = _cut_at_spaces(line, width)
            lines += [first, *(continuation + piece for piece in rest)]
        return _joined(lines)

    return wrap


def paired(text: str) -> bytes:
    """Two records of a start on one physical line."""
    lines = text.splitlines()
    end = _end_of_start(lines)
    index = 0
    while index + 1 < end:
        if all(_RECORD.match(line) for line in lines[index : index + 2]):
            lines[index : index + 2] = [f"{lines[index]} {lines[index + 1]}"]
            end -= 1
        index += 1
    return _joined(lines)


def interrupted(line: bytes) -> Wrapper:
    """A line of another kind between any two."""
    return lambda text: b"\n".join(piece for own in text.splitlines() for piece in (own.encode(), line)) + b"\n"


def encoded(codec: str, mark: bytes = b"", newline: str = "\n") -> Wrapper:
    """Another encoding or another line end."""
    return lambda text: mark + "".join(f"{line}{newline}" for line in text.splitlines()).encode(codec)


def nested(outer: Wrapper, inner: Wrapper) -> Wrapper:
    """One inside the other."""
    return lambda text: outer(inner(text).decode())


ENVELOPES: dict[str, Wrapper] = {
    "docker compose": each("vllm-1  | "),
    "docker compose, broken bar": each("vllm-1  ¦ "),
    "docker -t": stamped("2026-{date}T{clock}Z "),
    "kubectl --timestamps": stamped("2026-{date}T{clock}+01:00 "),
    "kubectl --prefix": each("[pod/vllm-7d9c5b6f4-x2x8q/vllm] "),
    "stern": each("vllm-7d9c5b6f4-x2x8q vllm "),
    "cri": cri,
    "docker json-file": docker_json,
    **{f"json {key}": json_logger(key) for key in ("message", "msg", "log", "event", "text", "body", "line")},
    "json behind a process tag": json_behind_tag,
    "json inside json": nested_json,
    "journald": journald,
    "syslog": stamped("<14>1 2026-{date}T{clock}Z gpu-node-3 vllm[1412]: "),
    "slurm --label": each("0: "),
    "mpirun": each("[1,0]<stdout>:"),
    "github": stamped("2026-{date}T{clock}Z "),
    "gitlab": stamped("2026-{date}T{clock}Z 00O "),
    "buildkite": each("\x1b_bk;t=1767225600123\x07"),
    "torchserve": stamped("2026-{date}T{clock} [INFO ] W-9000-model_1.0-stdout MODEL_LOG - "),
    "docker desktop": stamped("2026-{date} {clock} | "),
    "fastchat": stamped("2026-{date} {clock} | INFO | stdout | "),
    "pm2": each("0|vllm  | "),
    "escaped colours": coloured("\x1b"),
    "caret notation": coloured("^["),
    "lost escape": coloured(""),
    "escape as text": coloured("\\x1b"),
    "stage tag": between_tag_and_level("[Stage-0] "),
    "logging prefix": between_tag_and_level("[node-3] "),
    "logging prefix, free": between_tag_and_level("node-3 prefill "),
    "progress bar": glued("Capturing CUDA graphs:  96%|█████▊| 49/51 [00:01<00:00, 26.29it/s]"),
    "progress bar, carriage returns": glued("Loading:   0%|   | 0/2\rLoading: 100%|██| 2/2 [00:01]\r"),
    "dots": glued("......"),
    "quoted": each("> "),
    "commented": each("# "),
    "listed": each("- "),
    "backticks": each("`", "`"),
    "indented": each("    "),
    "tab": each("\t"),
    "fenced": lambda text: f"The log:\n```text\n{text}```\nAny idea?\n".encode(),
    "grep -n": lambda text: _joined(f"{number}:{line}" for number, line in enumerate(text.splitlines(), 1)),
    "cat -n": lambda text: _joined(f"{number:>6}\t{line}" for number, line in enumerate(text.splitlines(), 1)),
    "crlf": encoded("utf-8", newline="\r\n"),
    "utf-8 bom": encoded("utf-8", b"\xef\xbb\xbf"),
    "utf-16 le": encoded("utf-16-le", b"\xff\xfe", "\r\n"),
    "utf-16 be": encoded("utf-16-be", b"\xfe\xff"),
    "utf-16 le, no bom": encoded("utf-16-le", newline="\r\n"),
    "torn utf-8": interrupted(b"Loading: 50%|\xe2\x96 | 1/2 \xff\xfe"),
    "blank lines": interrupted(b""),
    "very long lines": interrupted(b"x" * 40_000),
    "two records on a line": paired,
    "tmux 120": boxed(120),
    **{f"terminal {width}": wrapped(width) for width in (80, 100, 120, 200)},
    "terminal 100, indented": wrapped(100, continuation="        "),
    "terminal 80, in compose": wrapped(80, before="vllm-1  | "),
    "viewer 100, at spaces": word_wrapped(100),
    "viewer 120, at spaces, quoted": word_wrapped(120, continuation="> "),
    "csv, quoted": csv('"2026-{date}T{clock}Z","gpu-node-3",'),
    "csv, further columns": csv("1767225600123,", ",vllm/vllm/4f2a"),
    "indented json": indented_json,
    "json list": listed_json,
    "logcli": stamped('2026-{date}T{clock}Z {{app="vllm", pod="vllm-0"}} '),
}
"""Every envelope by its name."""


def _joined(lines: "list[str] | Iterator[str]") -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _dated(text: str) -> Iterator[tuple[str, str, str]]:
    """Date, clock and line: a line without a stamp has that of the one before it."""
    lines = text.splitlines()
    stamp = _STAMP.search(text)
    for line in lines:
        stamp = _STAMP.search(line) or stamp
        date, clock, part = stamp.groups() if stamp is not None else ("03-01", "09:00:00", None)
        yield date, f"{clock}.{part or '000'}000", line


def _parts(line: str, size: int) -> Iterator[tuple[str, bool]]:
    pieces = _cut(line, size) or [""]
    for index, piece in enumerate(pieces):
        yield piece, index + 1 < len(pieces)


def _cut(line: str, size: int) -> list[str]:
    return [line[start : start + size] for start in range(0, len(line), size)]


def _cut_at_spaces(line: str, width: int) -> list[str]:
    pieces = []
    while len(line) > width:
        space = line.rfind(" ", 0, width)
        pieces.append(line[:space] if space > 0 else line[:width])
        line = line[space + 1 :] if space > 0 else line[width:]
    return [*pieces, line]


def _end_of_start(lines: list[str]) -> int:
    """The first line from which on the server may be serving."""
    return next((index for index, line in enumerate(lines) if any(mark in line for mark in _READY)), len(lines))


DATING = frozenset(name for name, wrap in ENVELOPES.items() if b"09:00:00.000000" in wrap("Killed\n"))
"""Those that put a stamp before a line that has none."""
