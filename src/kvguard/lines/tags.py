"""Process tags, `(EngineCore_DP0 pid=1234)` and their like: the role, the engine and the rank that each name tells."""

import functools
from typing import NamedTuple

from kvguard.events import Role
from kvguard.lines.patterns import compiled


class Speaker(NamedTuple):
    """Who a tag names; what it does not tell is `None`."""

    role: Role
    engine: int | None = None
    """The data-parallel index."""
    rank: str | None = None


TAGS: tuple[tuple[str, Role], ...] = (
    (r"(?i:api_?server)(?:_DP(?P<engine>\d{1,6})|_\d+)?", Role.API_SERVER),
    (r"RustFrontend|DPSupervisor", Role.API_SERVER),
    (
        r"(?:EngineCore|EngineCoreProc|EngineCoreActor|DPEngineCoreActor|DPMoEEngineCoreActor)"
        r"(?:_(?:DP)?(?P<engine>\d{1,6}))?",
        Role.ENGINE,
    ),
    (
        r"(?:Vllm)?Worker(?:Proc)?(?:_DP(?P<engine>\d{1,6}))?(?P<rank>(?:[_ ](?:PP|PCP|TP|DCP|EP|ETP|DP)\d+)*)",
        Role.WORKER,
    ),
    (r"VllmWorkerProcess|VllmWorker-(?P<rank>\d+)|RayWorker\w*", Role.WORKER),
)
"""The tags of vLLM's own processes and of its Ray actors, release by release, in the order they are tried."""


@functools.lru_cache(maxsize=512)
def speaker(tag: str) -> Speaker:
    """Who the tag names; `Role.OTHER` for a tag that is none of vLLM's own."""
    for pattern, role in TAGS:
        match = compiled(pattern).fullmatch(tag)
        if match is not None:
            groups = match.groupdict()
            engine = groups.get("engine")
            rank = (groups.get("rank") or "").strip("_ ")
            return Speaker(role, int(engine) if engine is not None else None, rank or None)
    return Speaker(Role.OTHER)
