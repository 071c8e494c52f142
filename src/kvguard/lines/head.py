"""What stood before a message, taken off in two steps: the envelope of a physical line, then each record's own prefix.

Between the two steps the parts of a cut line are joined and several records on one line are told apart.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kvguard.events import Role, Trust
from kvguard.lines import json_record, stamps
from kvguard.lines.patterns import compiled
from kvguard.lines.prefixes import PREFIXES, Prefix
from kvguard.lines.tags import speaker

MAX_DEPTH = 16
"""Prefixes around one message: docker compose in a CI's log of a Ray worker's nested actors needs nine."""

HTTP_SERVER = "INFO:     "
"""What uvicorn's handler puts before a message; forks of vLLM have taken it over for all of theirs."""
_ANSI = (
    r"\x1b\[[0-9;:?]*+[ -/]*+[@-~]"
    r"|\x1b[\]_PX^][^\x07\x1b]*+(?:\x07|\x1b\\)?+"
    r"|\x1b[@-Z\\-~]"
    r"|(?:\^\[|\\u001b|\\x1b|\\033|\\e|\u241b|\ufffd)\[[0-9;]*+m"
    r"|\^\[\[[0-9;?]*+[A-Za-z]"  # what an arrow key echoes
    r"|\[\d{1,3}(?:;\d{1,3}){0,4}m"
)
_LINKED = r"\[([\w./-]{1,80}?\.py:\d++)\]\(https?://[^\s()]*+\)"
"""A source file and its line, which a chat or a notes program has taken for an address."""
_INVISIBLE = str.maketrans({"\u00a0": " ", "\u200b": None, "\ufeff": None, "\u2060": None, "\x00": None, "\t": "  "})
_REPEATED = r" ?\[repeated (?P<times>\d{1,6}+)x across cluster\](?: \(.{0,400}+)?$"
"""Ray's note, with its hint behind it as far as a terminal has left it there."""
_BORDERS = ("│", "┃", "║")
_AT_THE_RIGHT = (*_BORDERS, *(f"{border} " for border in _BORDERS))
_OF_BOXES = (*_BORDERS, "¦", "|")
"""What a line in a box may end with: as a trailer of any line, the last two would be its own."""


class Head(NamedTuple):
    """What stood before a message, as far as it has been taken off."""

    message: str
    trust: Trust = Trust.RAW
    role: Role = Role.UNTAGGED
    tag: str | None = None
    pid: int | None = None
    writer: int | None = None
    """The outermost pid of a process of vLLM's own: it printed the line, whoever is named further inside."""
    engine: int | None = None
    rank: str | None = None
    node: str | None = None
    stamp: float | None = None
    outer_stamp: float | None = None
    level: str | None = None
    shipped_level: str | None = None
    """What a shipper says of the line: a level of its own, and the same for each raw one."""
    file: str | None = None
    container: str | None = None
    """The name that a runtime prints before every line of a container: compose, kubectl, stern."""
    framed: bool = False
    """A container runtime's framing was taken off."""
    partial: bool = False
    """CRI or docker say that the line goes on in the next physical line."""
    part: str | None = None
    """What stands right behind the framing of CRI or docker: no more is taken off the further parts of a cut line."""
    repeated: int = 1
    stage: str | None = None
    """The number of a stage of vllm-omni, which is a model of its own."""
    of_vllm: bool = False
    """A record's prefix, or a process tag, as only vLLM prints them."""
    of_http_server: bool = False
    """uvicorn's own handler, which pads its level: no line of vLLM's comes from it."""
    json: bool = False
    """The message stood in a JSON object."""
    others: tuple[str, ...] = ()
    """The message with an ambiguous prefix left on, innermost first: candidates where the bare one matches nothing."""


def clean(text: str) -> str:
    """The text without colours, other escape sequences, links of source lines and invisible characters."""
    if "\x1b" in text or "[" in text or "\\" in text:
        text = compiled(_ANSI).sub("", text)
        if "](http" in text:
            text = compiled(_LINKED).sub(r"\1", text)
    return text if text.isascii() and "\t" not in text and "\x00" not in text else text.translate(_INVISIBLE)


@functools.lru_cache(maxsize=1)  # until a first record is found, each line is asked whether it is one, and then read
def envelope(text: str) -> Head:
    """Take off what a runtime, a runner or a viewer has put before (and, for boxes, behind) a physical line.

    Args:
        text: the line, cleaned.
    """
    head = Head(text)
    for _ in range(MAX_DEPTH):
        step = _from_json(head) or _from_row(head) or _without_prefix(head, outer_only=True)
        if step is None:
            break
        head, final = step
        if final or head.partial:
            break
    return head


@functools.lru_cache(maxsize=1)
def strip(text: str, around: Head | None = None, relayed: bool = True) -> Head:
    """Take everything off that stands before the message.

    Args:
        text: one record.
        around: what its envelope, or the record that it stands in, has told already.
        relayed: whether an API server's tag may stand before another process's, as a wrapper puts it that has started
            the server. While users can write it is they who have written the inner one.
    """
    head = Head(text) if around is None else around._replace(message=text, partial=False)
    for _ in range(MAX_DEPTH):
        step = _from_json(head) or _without_prefix(head, outer_only=False, relayed=relayed)
        if step is None:
            break
        head, final = step
        if final:
            break
    if around is not None:
        head = head._replace(container=around.container)  # what stands inside a record names none
    return _without_trailer(head)


def _without_trailer(head: Head) -> Head:
    message = head.message
    if message.endswith(_AT_THE_RIGHT):
        message = _without_right_border(message, _BORDERS)
    message, repeated = without_repeats(message)
    return head if message is head.message else head._replace(message=message, repeated=repeated)


def without_repeats(message: str) -> tuple[str, int]:
    """The message without Ray's note that it has swallowed like ones, and how many it stands for."""
    if "[repeated " in message and (found := compiled(_REPEATED).search(message)) is not None:
        return message[: found.start()], int(found["times"]) + 1
    return message, 1


def _without_right_border(text: str, borders: tuple[str, ...]) -> str:
    bare = text.rstrip()
    return bare[:-1].rstrip() if bare.endswith(borders) else text


def _from_json(head: Head) -> tuple[Head, bool] | None:
    found = json_record.read(head.message)
    if found is None:
        return None
    named = speaker(found.process) if found.process else None
    own = found.logger or head.trust is Trust.TAGGED  # behind a process tag only that process writes
    inner = head._replace(
        message=clean(found.message).rstrip("\r\n"),
        trust=Trust.RECORD if own else head.trust,
        of_vllm=head.of_vllm or (named is not None and named.role is not Role.OTHER),
        role=named.role if named is not None else head.role,
        tag=found.process or head.tag,
        pid=found.pid if found.pid is not None else head.pid,
        writer=head.writer if head.writer is not None or not found.logger else found.pid,
        engine=named.engine if named is not None and named.engine is not None else head.engine,
        rank=(named.rank if named is not None else None) or head.rank,
        stamp=stamps.seconds(found.stamp) if found.stamp and own else head.stamp,
        outer_stamp=stamps.seconds(found.stamp)
        if found.stamp and not own and head.outer_stamp is None
        else head.outer_stamp,
        level=(found.level if own else None) or head.level,
        shipped_level=head.shipped_level if own else found.level,
        file=found.file or head.file,
        framed=head.framed or not own,
        partial=found.partial,
        part=head.part if own else found.message.rstrip("\n"),
        json=True,
    )
    return inner, False


def _from_row(head: Head) -> tuple[Head, bool] | None:
    if ',"' not in head.message:
        return None
    from kvguard.lines import cells  # most logs are no table

    found = cells.line_of(head.message)
    if found is None:
        return None
    line, stamp = found
    return head._replace(
        message=clean(line), outer_stamp=stamp if head.outer_stamp is None else head.outer_stamp
    ), False


def _without_prefix(head: Head, outer_only: bool, relayed: bool = False) -> tuple[Head, bool] | None:
    """The head with the next prefix taken off, and whether the message follows at once."""
    text = head.message.lstrip(" ")
    for prefix, begins in _beginning_with(text[:1]):
        if not text.startswith(begins) or not _holds_any(text, prefix.holds):
            continue
        match = compiled(prefix.pattern).match(text)
        if match is None or not match[0]:
            continue
        if outer_only and not prefix.outer:
            return None  # a logger's own prefix begins here: what follows belongs to the record
        if _is_quoted(head, match.groupdict(), relayed):
            return None
        return _taken(head, prefix, match, text[match.end() :]), prefix.final
    return None


@functools.lru_cache(maxsize=512)
def _beginning_with(character: str) -> tuple[tuple[Prefix, tuple[str, ...]], ...]:
    """The prefixes that can begin with this character, and how they then do: most of the table need not be tried."""
    near = ((prefix, tuple(text for text in prefix.begins if text[0] == character)) for prefix in PREFIXES)
    return tuple((prefix, begins) for prefix, begins in near if begins)


def _holds_any(text: str, parts: tuple[str, ...]) -> bool:
    """Whether the text holds one of the parts, where there are any; as a loop, this costs half as much."""
    for part in parts:
        if part in text:
            return True
    return not parts


def _taken(head: Head, prefix: Prefix, match: "re.Match[str]", rest: str) -> Head:
    groups: Mapping[str, str] = {name: text for name, text in match.groupdict().items() if text is not None}
    changes: dict[str, Any] = {"message": rest}
    if prefix.ambiguous:
        changes["others"] = (head.message.strip(), *head.others)
    if prefix.trust is not Trust.RAW and head.trust is not Trust.RECORD:
        changes["trust"] = prefix.trust
    if "tag" in groups:
        changes.update(_tag_fields(head, groups))
    if prefix.name.startswith("vllm-"):
        changes["of_vllm"] = True
    if "stamp" in groups and not (prefix.outer and head.outer_stamp is not None):  # the runtime's own stands outermost
        changes["outer_stamp" if prefix.outer else "stamp"] = stamps.seconds(groups["stamp"])
    if "level" in groups:
        changes.update(level=groups["level"].upper(), of_http_server=match[0] == HTTP_SERVER)
    if "file" in groups:
        changes["file"] = groups["file"].rpartition("/")[2]
    if "partial" in groups:
        changes.update(framed=True, partial=groups["partial"] == "P", part=rest)
    outermost = (name for name in ("container", "stage") if name in groups and getattr(head, name) is None)
    changes.update({name: groups[name] for name in outermost})
    if prefix.name == "box":
        changes["message"] = _without_right_border(rest, _OF_BOXES)
    if match[0].startswith("`"):
        changes["message"] = rest.rstrip("` ")
    return head._replace(**changes)


def _tag_fields(head: Head, groups: Mapping[str, str]) -> dict[str, Any]:
    """The innermost tag that names a role wins; a Ray actor's node is kept beside it."""
    named = speaker(groups["tag"])
    fields: dict[str, Any] = {"node": groups.get("node") or head.node}
    if head.writer is None and named.role is not Role.OTHER:
        fields["writer"] = int(groups["pid"])
    if named.role is Role.OTHER and head.role not in (Role.OTHER, Role.UNTAGGED):
        return fields
    unnamed = f"pid={groups['pid']}" if named.role is Role.WORKER else None
    fields.update(
        of_vllm=head.of_vllm or named.role is not Role.OTHER,
        role=named.role,
        tag=groups["tag"],
        pid=int(groups["pid"]),
        engine=named.engine if named.engine is not None else head.engine,
        rank=groups.get("rank") or named.rank or unnamed,
    )
    return fields


def _is_quoted(head: Head, groups: Mapping[str, str | None], relayed: bool) -> bool:
    """Whether a process repeats another's tag: no server prints an engine's lines, only what its users have written."""
    tag, pid = groups.get("tag"), groups.get("pid")
    if tag is None or pid is None or head.pid is None:
        return False
    inner = speaker(tag).role
    if head.role is Role.API_SERVER:
        # a driver carries the lines of Ray's workers
        return inner is not Role.OTHER and not tag.startswith("Ray") and not relayed
    return head.role in (Role.ENGINE, Role.WORKER) and inner in (Role.ENGINE, Role.API_SERVER) and head.pid != int(pid)
