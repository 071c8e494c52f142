"""Where the memory of CUDA graphs counts: whether in the budget that the KV cache was taken from, and in which part."""

from kvguard.startup.report import Start
from kvguard.startup.versions import at_least

COUNTED_FROM = (0, 20, 0)
"""From here vLLM takes an estimate of it off the KV cache by default (v1/worker/gpu_worker.py)."""

IN_THE_PEAK_FROM = (0, 27, 0)
"""From here the activation peak that is printed holds what was taken off for CUDA graphs (v1/worker/gpu_worker.py)."""


def graphs_counted(start: Start) -> bool | None:
    """Whether it is; `None` where the log tells neither that nor its release. Releases 0.18 and 0.19 say which."""
    if any(warning.code == "graphs-not-counted" for warning in start.warnings):
        return False
    return start.memory.suggested_utilization is not None or at_least(start.vllm_version, COUNTED_FROM)


def activation_alone(start: Start) -> int | None:
    """Bytes of a rank's activation peak without the CUDA graphs; `None` where the log does not tell it."""
    memory = start.memory
    peak, graphs = memory.activation_peak, memory.cuda_graphs_estimated
    # only these releases print weights and non-torch memory in one figure
    in_it = memory.consumed is not None or at_least(start.vllm_version, IN_THE_PEAK_FROM)
    if peak is None or graphs is None or not in_it or not graphs_counted(start):
        return peak
    return peak - graphs if peak >= graphs else peak
