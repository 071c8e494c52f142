"""Whether the memory of CUDA graphs is part of the budget from which the KV cache was taken."""

from kvguard.startup.report import Start
from kvguard.startup.versions import at_least

COUNTED_FROM = (0, 20, 0)
"""From here vLLM takes an estimate of it off the KV cache by default (v1/worker/gpu_worker.py)."""


def graphs_counted(start: Start) -> bool | None:
    """Whether it is; `None` where the log tells neither that nor its release. Releases 0.18 and 0.19 say which."""
    if any(warning.code == "graphs-not-counted" for warning in start.warnings):
        return False
    return start.memory.suggested_utilization is not None or at_least(start.vllm_version, COUNTED_FROM)
