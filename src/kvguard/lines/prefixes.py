"""What stands before a message: the table of envelopes and logger prefixes, and the one place that strips them.

A prefix is taken off the beginning of a line, again and again, innermost last; a message is never searched for behind
text that no row describes (the parser does that before ready only, and says so).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import regex

from kvguard.events import Role, Trust
from kvguard.lines import json_record, stamps

MAX_DEPTH = 12
"""Envelopes around one message: docker compose in a CI's log of a Ray worker's nested actors needs nine."""

LEVEL = r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)"
CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ISO = rf"\d{{4}}-\d\d-\d\d[T ]{CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"


@dataclass(frozen=True, slots=True)
class Prefix:
    """One thing that can stand before a message."""

    name: str
    pattern: "regex.Pattern[str]"
    trust: Trust
    """What the prefix vouches for."""
    final: bool = False
    """Whether the message follows at once: nothing behind it is a prefix any more."""
    ambiguous: bool = False
    """Whether a message may begin like it: then the text with the prefix stays a candidate."""
    where: str = ""
    """Who prints it, and in which releases."""


def _prefix(
    name: str, pattern: str, trust: Trust = Trust.RAW, final: bool = False, ambiguous: bool = False, where: str = ""
) -> Prefix:
    return Prefix(name, regex.compile(pattern, regex.VERSION1), trust, final, ambiguous, where)


PREFIXES: tuple[Prefix, ...] = (
    _prefix(
        "vllm-record",
        rf"{LEVEL} (?P<stamp>\d\d-\d\d {CLOCK}) \[(?P<file>[^\]\s]*?)(?::\d++)?\](?: |$)",
        Trust.RECORD,
        final=True,
        where="vLLM 0.8.0 and later; at DEBUG a shortened path; some builds name the function",
    ),
    _prefix(
        "vllm-record-old",
        rf"{LEVEL} (?P<stamp>\d\d-\d\d {CLOCK}) (?P<file>[\w./-]++):\d++\](?: |$)",
        Trust.RECORD,
        final=True,
        where="vLLM 0.1.0 to 0.7.3",
    ),
    _prefix(
        "process-tag",
        r"\((?P<tag>[A-Za-z_][\w.:-]*+(?: [A-Z][A-Za-z0-9_]*+)?)(?: (?P<rank>rank=\d++))?,? pid=(?P<pid>\d++)"
        r"(?:, ip=(?P<node>[\w.:-]++))?\) ?",
        Trust.TAGGED,
        where="vLLM's processes from 0.4.2, Ray's actors",
    ),
    _prefix(
        "uvicorn",
        r"(?P<level>INFO|WARNING|ERROR|DEBUG|CRITICAL): {1,5}(?=\S)",
        Trust.TAGGED,
        final=True,
        where="uvicorn, and Python's default handlers",
    ),
    _prefix(
        "function-logger",
        rf"{LEVEL} ++(?P<file>[a-z_][\w.]*+): (?=\S)",
        Trust.RECORD,
        final=True,
        ambiguous=True,
        where="loggers that print module and function (Dynamo's workers), after a timestamp",
    ),
    _prefix(
        "python-basic",
        rf"{LEVEL}:(?P<file>[\w.]++):(?:\d++:)?",
        Trust.RECORD,
        where="logging.basicConfig",
    ),
    _prefix(
        "python-dashes",
        rf"- (?P<file>[\w.]++) - {LEVEL} - (?:[\w./]++:\d++ - )?",
        Trust.RECORD,
        where="the usual `%(asctime)s - %(name)s - %(levelname)s - %(message)s`, after its timestamp",
    ),
    _prefix(
        "python-dashes-level",
        rf"- {LEVEL} - (?:[\w./]++(?::\d++)? - )?(?:[\w.]++: (?=\S))?",
        Trust.RECORD,
        where="handlers that print the level after the timestamp",
    ),
    _prefix(
        "loguru",
        rf"\| {LEVEL} *+\| (?P<file>[\w.]++):[\w<>]++:\d++ - ",
        Trust.RECORD,
        where="loguru, after its timestamp",
    ),
    _prefix(
        "iso-time",
        rf"\[?(?P<stamp>{ISO})\]?:?(?:\s++|$)",
        where="docker -t, kubectl --timestamps, CRI, CI runners",
    ),
    _prefix(
        "short-time", rf"\[?(?P<stamp>\d\d-\d\d {CLOCK}|{CLOCK})\]?\s++", where="wrappers that print the time alone"
    ),
    _prefix("slash-time", rf"\[?\d\d/\d\d(?:/\d\d(?:\d\d)?)? {CLOCK}\]?\s++", where="rich's and others' handlers"),
    _prefix(
        "cri-stream", r"(?:stdout|stderr) (?P<partial>[FP])(?: |$)", where="CRI: containerd, CRI-O; after a timestamp"
    ),
    _prefix("gitlab-stream", r"\d\d[OE][ +]?(?=\S|$)", where="GitLab's runner, after a timestamp"),
    _prefix("buildkite-time", r"_bk;t=\d++", where="Buildkite"),
    _prefix("compose", r"[\w.-]{1,80}+ *+[|¦] ?", ambiguous=True, where="docker compose, overmind"),
    _prefix("box", r"[│┃║▌|¦] ?(?=.*[│┃║|¦] *$)", where="tmux, rich panels"),
    _prefix(
        "syslog",
        rf"(?:<\d{{1,3}}>\d? ?)?(?:[A-Z][a-z]{{2}} [ \d]\d {CLOCK} )?[\w.-]{{1,80}}+ [\w./@-]{{1,80}}+\[\d++\]: ",
        where="journald and syslog, with their own or an ISO timestamp",
    ),
    _prefix("kubectl-prefix", r"\[pod/[^\]\s]++\] ", where="kubectl logs --prefix"),
    _prefix("rich-level", rf"\[{LEVEL}\] ?+", Trust.TAGGED, where="handlers that bracket the level"),
    _prefix(
        "bracket",
        r"\[[^\[\]]{1,80}+\]:? ++",
        ambiguous=True,
        where="VLLM_LOGGING_PREFIX, stages, ranks: free text in brackets",
    ),
    _prefix(
        "bare-level",
        rf"{LEVEL}(?: ++|:)(?=\S)",
        Trust.TAGGED,
        ambiguous=True,
        where="logs whose time and file were cut off",
    ),
    _prefix("srun-label", r"\d{1,5}: ", ambiguous=True, where="srun --label"),
    _prefix("line-number", r"\d{1,7}(?:[:|\t]|→|  ++) ?(?=\S)", ambiguous=True, where="grep -n, cat -n, viewers"),
    _prefix(
        "quote", r"(?:> ?|#++ |`{1,3}|[-*•] |\d{1,3}[.)] )", ambiguous=True, where="quoted, commented or listed pastes"
    ),
    _prefix(
        "source-name",
        r"(?:vllm|server|engine|worker|decode|prefill|backend)[\w.-]{0,60}+(?::| >| \|) (?=\S)",
        ambiguous=True,
        where="wrappers that name the process",
    ),
)
"""What is taken off the front, tried in this order, until none fits or one is final."""

_ANSI = regex.compile(
    r"\x1b\[[0-9;:?]*+[ -/]*+[@-~]"
    r"|\x1b[\]_PX^][^\x07\x1b]*+(?:\x07|\x1b\\)?+"
    r"|\x1b[@-Z\\-~]"
    r"|(?:\^\[|\\u001b|\\x1b|\\033|\\e|\u241b|\ufffd)\[[0-9;]*+m"
    r"|\[\d{1,3}(?:;\d{1,3}){0,4}m",
    regex.VERSION1,
)
_INVISIBLE = str.maketrans({"\u00a0": " ", "\u200b": None, "\ufeff": None, "\u2060": None, "\x00": None, "\t": " "})
_REPEATED = regex.compile(
    r" ?\[repeated (?P<times>\d++)x across cluster\](?: \(Ray deduplicates logs by default\..*+)?$"
)
_TRAILERS = regex.compile(r"[\s`│┃║]++$")
TAGS: tuple[tuple["regex.Pattern[str]", Role], ...] = tuple(
    (regex.compile(pattern), role)
    for pattern, role in (
        (r"(?i:api_?server)(?:_DP(?P<engine>\d+)|_(?P<index>\d+))?", Role.API_SERVER),
        (r"RustFrontend|DPSupervisor", Role.API_SERVER),
        (
            r"(?:EngineCore|DPMoEEngineCoreActor|EngineCoreActor|DPEngineCoreActor|EngineCoreProc)(?:_DP(?P<engine>\d+)|_(?P<engine>\d+))?",
            Role.ENGINE,
        ),
        (
            r"(?:Vllm)?Worker(?:Proc)?(?:_DP(?P<engine>\d+))?(?P<rank>(?:[_ ](?:PP|PCP|TP|DCP|EP|ETP|DP)\d+)*)",
            Role.WORKER,
        ),
        (r"VllmWorkerProcess|VllmWorker(?:-(?P<rank>\d+))?|RayWorker\w*|RayWorkerVllm", Role.WORKER),
    )
)
"""Process tags, their role, and where they name an engine or a rank."""


@dataclass(frozen=True, slots=True)
class Head:
    """What stood before a message."""

    message: str
    trust: Trust = Trust.RAW
    role: Role = Role.UNTAGGED
    tag: str | None = None
    pid: int | None = None
    engine: int | None = None
    rank: str | None = None
    node: str | None = None
    stamp: float | None = None
    level: str | None = None
    file: str | None = None
    framed: bool = False
    """A container runtime's framing was taken off."""
    partial: bool = False
    """CRI or docker say that the record goes on in the next physical line."""
    repeated: int = 1
    json: bool = False
    """The message stood in a JSON object."""
    others: tuple[str, ...] = ()
    """The message with an ambiguous prefix left on, innermost first: candidates where the bare one matches nothing."""


def strip(text: str, framing_only: bool = False) -> Head:
    """Take everything off that stands before (and, for Ray and boxes, behind) the message.

    Args:
        text: one physical line, or one record of it.
        framing_only: stop behind the container runtime's own framing, to join the parts of a cut record.
    """
    head = Head(_clean(text))
    for _ in range(MAX_DEPTH):
        inner = _from_json(head) or _without_prefix(head)
        if inner is None:
            break
        head, final = inner
        if final or head.partial or (framing_only and head.framed):
            break
    return dataclasses.replace(head, message=head.message.strip("\r\n"))


def _clean(text: str) -> str:
    if "\x1b" in text or "[" in text or "\\" in text:
        text = _ANSI.sub("", text)
    return text.translate(_INVISIBLE)


def _from_json(head: Head) -> tuple[Head, bool] | None:
    found = json_record.read(head.message)
    if found is None:
        return None
    role, engine, rank = _role(found.process) if found.process else (head.role, head.engine, head.rank)
    return (
        dataclasses.replace(
            head,
            message=_clean(found.message),
            trust=Trust.RECORD if found.logger else head.trust,
            role=role if role is not Role.UNTAGGED else head.role,
            tag=found.process or head.tag,
            pid=found.pid if found.pid is not None else head.pid,
            engine=engine if engine is not None else head.engine,
            rank=rank or head.rank,
            stamp=stamps.seconds(found.stamp) if found.stamp else head.stamp,
            level=found.level or head.level,
            file=found.file or head.file,
            framed=head.framed or not found.logger,
            partial=found.partial,
            json=True,
        ),
        False,
    )


def _without_prefix(head: Head) -> tuple[Head, bool] | None:
    text = head.message.lstrip(" ")
    for prefix in PREFIXES:
        match = prefix.pattern.match(text)
        if match is not None and match.end() > 0:
            return _taken(head, prefix, match, text[match.end() :]), prefix.final
    return None


def _taken(head: Head, prefix: Prefix, match: "regex.Match[str]", rest: str) -> Head:
    groups: Mapping[str, str] = {name: text for name, text in match.groupdict().items() if text is not None}
    changes: dict[str, object] = {"message": rest}
    if prefix.ambiguous:
        changes["others"] = (head.message.strip(), *head.others)
    if prefix.trust is not Trust.RAW and head.trust is not Trust.RECORD:
        changes["trust"] = prefix.trust
    if "tag" in groups:
        changes.update(_tag_fields(head, groups))
    if "stamp" in groups:
        changes["stamp"] = stamps.seconds(groups["stamp"])
    if "level" in groups:
        changes["level"] = groups["level"]
    if "file" in groups:
        changes["file"] = groups["file"].rpartition("/")[2]
    if "partial" in groups:
        changes.update(framed=True, partial=groups["partial"] == "P")
    if repeated := _REPEATED.search(rest):
        changes["message"] = rest[: repeated.start()]
        changes["repeated"] = int(repeated["times"]) + 1
    if prefix.name == "box":
        changes["message"] = _TRAILERS.sub("", rest)
    return dataclasses.replace(head, **changes)  # type: ignore[arg-type]


def _tag_fields(head: Head, groups: Mapping[str, str]) -> dict[str, object]:
    """The innermost tag that names a role wins; a Ray actor's node is kept beside it."""
    role, engine, rank = _role(groups["tag"])
    fields: dict[str, object] = {"node": groups.get("node") or head.node}
    if role in (Role.OTHER, Role.UNTAGGED) and head.role not in (Role.OTHER, Role.UNTAGGED):
        return fields
    fields.update(
        role=role,
        tag=groups["tag"],
        pid=int(groups["pid"]),
        engine=engine if engine is not None else head.engine,
        rank=groups.get("rank") or rank or (f"pid={groups['pid']}" if role is Role.WORKER else None),
    )
    return fields


def _role(tag: str) -> tuple[Role, int | None, str | None]:
    for pattern, role in TAGS:
        match = pattern.fullmatch(tag)
        if match is not None:
            groups = match.groupdict()
            engine = groups.get("engine")
            rank = (groups.get("rank") or "").strip("_ ") or None
            return role, int(engine) if engine is not None else None, rank
    return Role.OTHER, None, None
