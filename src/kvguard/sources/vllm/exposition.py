"""The few lines of vLLM's `/metrics` that say how much it can hold and how much it is holding."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from kvguard.sources.vllm.answers import CacheInfo, EngineLoad

_CACHE_INFO = "vllm:cache_config_info"
# metric, field; where two releases have two names for one thing, the newer stands last and wins
_LOADS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:gpu_cache_usage_perc": "kv_cache_usage",  # 0.2.3 to 0.11.2
    "vllm:kv_cache_usage_perc": "kv_cache_usage",  # from 0.9.2
    "vllm:num_preemptions_total": "preemptions",
}
_WANTED = re.compile(rf"^(?:{'|'.join((_CACHE_INFO, *_LOADS))})[{{ ].*+".encode(), re.MULTILINE)
_LONGEST_LINE = 16 * 1024
"""Of a wanted line; vLLM's longest has 2 KiB. The format's parser takes time beyond measure for thousands of labels."""
_MOST_LINES = 8 * 1024
"""A thousand engines have six thousand; each costs a KiB to read."""
_RATIOS = {"kv_cache_usage"}
_ONLY_ENGINE = "0"


class _Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def parse_metrics(body: bytes) -> tuple[CacheInfo | None, tuple[EngineLoad, ...]]:
    """Read an exposition in Prometheus's text format.

    Only the wanted lines are parsed: a server with many engines exposes megabytes of histograms.

    Raises:
        ValueError: a wanted line is none of the format's, or is longer than any of vLLM's, or they are too many.
    """
    samples = list(_samples(body))
    infos = [sample.labels for sample in samples if sample.name == _CACHE_INFO]
    return (_cache_info(infos) if infos else None), _engine_loads(samples)


def _samples(body: bytes) -> Iterator[_Sample]:
    lines = [line[0] for line in islice(_WANTED.finditer(body), _MOST_LINES + 1)]
    if len(lines) > _MOST_LINES or any(len(line) > _LONGEST_LINE for line in lines):
        raise ValueError("no vLLM exposes so much")
    wanted = b"".join(line + b"\n" for line in lines).decode(errors="replace")
    for family in text_string_to_metric_families(wanted):
        for sample in family.samples:
            yield _Sample(sample.name, sample.labels, sample.value)


def _engine_loads(samples: Iterable[_Sample]) -> tuple[EngineLoad, ...]:
    loads: dict[str, dict[str, Any]] = {}
    order = list(_LOADS)
    for sample in sorted((each for each in samples if each.name in _LOADS), key=lambda each: order.index(each.name)):
        field = _LOADS[sample.name]
        if math.isfinite(sample.value):  # NaN: a gauge that nobody has set
            value = sample.value if field in _RATIOS else int(sample.value)
            loads.setdefault(sample.labels.get("engine", _ONLY_ENGINE), {})[field] = value
    return tuple(EngineLoad(engine, **fields) for engine, fields in sorted(loads.items(), key=_by_number))


def _by_number(item: tuple[str, object]) -> tuple[int, str]:
    engine = item[0]
    return (int(engine) if engine.isdecimal() else 0, engine)


def _cache_info(infos: list[Mapping[str, str]]) -> CacheInfo:
    def label(name: str, read: Callable[[str], Any]) -> Any:
        """The smallest over the series; what is not told is written "None"."""
        told = (_known(each.get(name, "None"), read) for each in infos)
        return min((value for value in told if value is not None), default=None)

    return CacheInfo(
        engines=tuple(dict.fromkeys(each.get("engine", _ONLY_ENGINE) for each in infos)),
        total_gpu_blocks=label("num_gpu_blocks", _whole),
        gpu_blocks_override=label("num_gpu_blocks_override", _whole),
        block_size=label("block_size", _whole),
        block_size_resolved=all(each.get("_block_size_resolved") == "True" for each in infos),
        kv_cache_tokens=label("kv_cache_size_tokens", _whole),
        max_concurrency=label("kv_cache_max_concurrency", float),
        kv_cache_dtype=label("cache_dtype", str),
        kv_cache_memory_bytes=label("kv_cache_memory_bytes", _whole),
        gpu_memory_utilization=label("gpu_memory_utilization", float),
    )


def _known(text: str, read: Callable[[str], Any]) -> Any:
    """A label's value; `None` for "None", and where a release writes something else there."""
    try:
        value = None if text == "None" else read(text)
    except (ValueError, OverflowError):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _whole(text: str) -> int:
    return int(float(text))
