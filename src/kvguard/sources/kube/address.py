"""Which container's log is meant, and where the API server stands."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kvguard.errors import ConfigError, SourceError
from kvguard.slotted import dataclass

PREFIX = "pod:"
SELF = "self"
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# RFC 1123 names, as the API server demands them: nothing else gets into a request's path
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class PodAddress:
    """A container of a pod."""

    namespace: str
    pod: str
    container: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.namespace}/{self.pod}/{self.container}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """How the API server is reached: the token is read again for each request, since the kubelet rotates it."""

    url: str
    token_file: Path
    ca_file: Path | None

    @classmethod
    def from_inside(cls, environment: Mapping[str, str] = os.environ, account: Path = _ACCOUNT) -> "Cluster":
        """The cluster whose pod this process runs in.

        Raises:
            ConfigError: it runs in none, or without a service account's token.
        """
        host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise ConfigError(
                "pod: sources work inside a cluster only; from outside: kubectl logs -f POD -c CONTAINER | kvguard … -"
            )
        if not (account / "token").exists():
            raise ConfigError(f"{account}/token is missing: mount the service account's token into this container")
        host = f"[{host}]" if ":" in host else host
        return cls(f"https://{host}:{port}", account / "token", account / "ca.crt")

    def authorization(self) -> dict[str, str]:
        """The header with the token as it is now: the kubelet replaces it about every hour.

        Raises:
            OSError: the file cannot be read.
            SourceError: it holds nothing that a header can carry; the client's own words for it would repeat it.
        """
        token = self.token_file.read_text(encoding="utf-8", errors="replace").strip()
        if not (token and token.isascii() and token.isprintable()):
            raise SourceError(f"{self.token_file} holds no token that can be sent")
        return {"Authorization": f"Bearer {token}"}


def parse_address(text: str, environment: Mapping[str, str] = os.environ, account: Path = _ACCOUNT) -> PodAddress:
    """Read `pod:NAMESPACE/NAME/CONTAINER` or `pod:self/CONTAINER`; `self` is the pod that this process runs in.

    Raises:
        ConfigError: it is neither, or who `self` is cannot be told.
    """
    parts = text.removeprefix(PREFIX).split("/")
    if len(parts) == 2 and parts[0] == SELF:
        # a pod's host name is its own name unless its manifest says otherwise: then POD_NAME must tell
        pod = environment.get("POD_NAME") or environment.get("HOSTNAME", "")
        parts = [_own_namespace(environment, account), pod, parts[1]]
    if not text.startswith(PREFIX) or len(parts) != 3 or not all(map(_NAME.fullmatch, parts)):
        raise ConfigError(f"{text!r} names no pod's log: write pod:NAMESPACE/NAME/CONTAINER or pod:self/CONTAINER")
    return PodAddress(*parts)


def _own_namespace(environment: Mapping[str, str], account: Path) -> str:
    if named := environment.get("POD_NAMESPACE"):
        return named
    try:
        return (account / "namespace").read_text().strip()
    except OSError:
        raise ConfigError(
            f"pod:self: {account}/namespace cannot be read: set POD_NAMESPACE, or mount the service account's token"
        ) from None
