"""What a pod's status says about one container, as far as its log goes."""

from collections.abc import Iterator
from typing import Any

from kvguard.slotted import dataclass

# The order in which the kubelet looks for a name (kubernetes pkg/kubelet/kubelet_pods.go, validateContainerLogStatus)
_STATUS_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_SPEC_LISTS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container at one moment."""

    shown: str | None
    """The run whose log the API gives; `None` before the first."""
    previous: str | None
    """The run whose log it gives for `previous=true`, where that is another."""
    running: bool
    restarts: int
    condition: str
    """In words: running; why it waits; how it ended."""
    over: bool
    """Whether the pod has ended for good."""
    known_names: tuple[str, ...]
    """The pod's containers."""
    exists: bool
    """Whether the pod has such a container at all."""


def view(pod: dict[str, Any], container: str) -> ContainerView:
    """Read a pod object of the API, `v1`; what is not in it is taken as not known yet."""
    status = pod.get("status") or {}
    found: dict[str, Any] = next(_named(status, _STATUS_LISTS, container), {})
    state, last = found.get("state") or {}, found.get("lastState") or {}
    ended, died = state.get("terminated") or {}, (last.get("terminated") or {}).get("containerID") or None
    running = "running" in state
    shown = (found.get("containerID") if running else ended.get("containerID") or died) or None
    names = tuple(each.get("name", "") for each in _all(pod.get("spec") or {}, _SPEC_LISTS))
    return ContainerView(
        shown=shown,
        previous=died if died != shown else None,
        running=running,
        restarts=int(found.get("restartCount") or 0),
        condition=_condition(state, running),
        over=status.get("phase") in ("Succeeded", "Failed"),
        known_names=names,
        exists=container in names,
    )


def _condition(state: dict[str, Any], running: bool) -> str:
    if running:
        return "running"
    if ended := state.get("terminated"):
        return f"ended with status {ended.get('exitCode')} ({ended.get('reason') or 'no reason given'})"
    return f"waiting ({(state.get('waiting') or {}).get('reason') or 'no state yet'})"


def _named(status: dict[str, Any], lists: tuple[str, ...], name: str) -> Iterator[dict[str, Any]]:
    return (each for each in _all(status, lists) if each.get("name") == name)


def _all(holder: dict[str, Any], lists: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    return (each for key in lists for each in holder.get(key) or ())
