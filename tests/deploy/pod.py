"""The chart's own Deployment as a pod that podman can play: both containers as rendered, with a replayed log for vLLM.

Left out is what podman 4.3 cannot do: native sidecars, probes without systemd, seccomp by name, ports.
Mounts, users, read-only roots, dropped capabilities, the wrapper and the guard's arguments are the chart's.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
GUARD_MEMORY = "64Mi"


def rendered(helm: str, log: str, name: str) -> list[dict[str, Any]]:
    """The chart with the values of this test; `log` is what vLLM prints."""
    values = ROOT / "tests/deploy/e2e-values.yaml"
    command = [helm, "template", name, str(ROOT / "helm/kvguard"), "-f", str(values), "--kube-version", "1.28.0"]
    answer = subprocess.run([*command, "--set", f"vllm.model={log}"], check=True, capture_output=True, text=True)
    return [item for item in yaml.safe_load_all(answer.stdout) if item]


def playable(objects: list[dict[str, Any]], name: str, folder: Path, restart: str) -> list[dict[str, Any]]:
    """ConfigMaps and one pod; `folder` is seen as /replay by vLLM's container."""
    deployment = next(item for item in objects if item["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    kept = {mount["name"] for item in spec["containers"] for mount in item["volumeMounts"]} - {"shm"}
    for item in spec["containers"]:
        for key in ("startupProbe", "livenessProbe", "readinessProbe", "ports"):
            item.pop(key)
        item["securityContext"].pop("seccompProfile")
        item["volumeMounts"] = [mount for mount in item["volumeMounts"] if mount["name"] in kept]
        if item["name"] == "kvguard":
            item["resources"] = {"limits": {"memory": GUARD_MEMORY}}
    volumes = [volume for volume in spec["volumes"] if volume["name"] in kept and volume["name"] != "replay"]
    volumes = [{"name": one["name"], "emptyDir": {}} if "emptyDir" in one else one for one in volumes]
    volumes.append({"name": "replay", "hostPath": {"path": str(folder), "type": "Directory"}})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": restart,
            "automountServiceAccountToken": False,
            "containers": spec["containers"],
            "volumes": volumes,
        },
    }
    return [*(item for item in objects if item["kind"] == "ConfigMap"), pod]


if __name__ == "__main__":
    helm, log, name, folder, restart = sys.argv[1:]
    print(yaml.safe_dump_all(playable(rendered(helm, log, name), name, Path(folder), restart)))
