"""What the API server means when it does not give what was asked for: one line, with what to do."""

import json

from kvguard.sources.kube.address import PodAddress
from kvguard.sources.source import State

_LONGEST_WORDS = 200


def problem(status: int, body: bytes, address: PodAddress, right: str) -> tuple[State, str]:
    """The state that an answer puts the source into, and why.

    Args:
        status: the HTTP status, not 200.
        body: usually a `Status` object of the API.
        address: whose log was asked for.
        right: the resource that was read: `pods` or `pods/log`.
    """
    pod = f"pod {address.pod} in namespace {address.namespace}"
    words = _words(body)
    if status == 401:
        return State.FAILING, "the API server does not accept the service account's token: is it mounted, and current?"
    if status == 403:
        role = f"a Role in namespace {address.namespace} with verb get on {right}"
        return State.FAILING, f"not allowed to read {right} of {pod}: give the service account {role}"
    if status == 404:
        return State.WAITING, f"there is no {pod}: waiting for it"
    if status == 400:  # what the kubelet says while a container has not been started
        return State.WAITING, f"no log yet: {words}"
    return State.FAILING, f"the API server answers {status} for {pod}: {words}"


def _words(body: bytes) -> str:
    """The message of a `Status` object, or the beginning of whatever else it is, fit for one line."""
    try:
        message = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        message = body[:_LONGEST_WORDS].decode(errors="replace")
    line = " ".join(str(message).split())
    return "".join(letter for letter in line if letter.isprintable())[:_LONGEST_WORDS] or "nothing"
