"""What the stats lines of a load say, held against the run-time objectives."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.slo.observation import Observation, printed, unknown
from kvguard.startup.report import Runtime

_NO_LOAD = "the log has no stats line: vLLM prints one every ten seconds while requests run"
_SHOW_LOAD = "judge the log of a load test, without --disable-log-stats"


def observe_runtime(key: str, runtime: Runtime) -> Observation:
    """The run-time indicator of that key, in its objective's unit."""
    subject, figure = _INDICATORS[key]
    value = figure(runtime)
    if runtime.samples == 0:
        return unknown(subject, _NO_LOAD, _SHOW_LOAD)
    if value is None:
        return unknown(subject, f"no stats line of {runtime.samples} tells it", _BY_METRICS.get(key))
    return printed(subject, value, runtime.place, note=f"in {runtime.samples} stats line{'s' * (runtime.samples > 1)}")


_INDICATORS: Mapping[str, tuple[str, Callable[[Runtime], float | None]]] = MappingProxyType(
    {
        "max_waiting_requests": ("peak of waiting requests", lambda runtime: runtime.peak_waiting),
        "max_kv_cache_usage": ("peak KV cache usage", lambda runtime: runtime.peak_kv_cache_usage),
        "max_preemptions": ("number of preemptions", lambda runtime: runtime.preemptions),
    }
)

_BY_METRICS: Mapping[str, str] = MappingProxyType(
    {
        # the stats line names them from 0.11.1 on and only where there are any, and none follows the last requests: a
        # real 0.13.0 run preempted 15 times by its metric and never by its log
        "max_preemptions": "read vllm:num_preemptions_total of the server's /metrics: a log may leave them out",
    }
)
