"""What a fuzzer begins with, by target: the annotated samples, hostile lines, SLO files and model configs."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from kvguard.kvcache.models import MODELS, named_config
from kvguard.lines.formats import FORMATS

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
REGRESSIONS = Path(__file__).parent / "regressions"
"""One folder a target: inputs that once broke something."""


def seeds(target: str) -> list[bytes]:
    """Every seed of a target."""
    return list(_SEEDS[target]())


def regressions(target: str) -> list[Path]:
    """Every input that once broke the target."""
    return sorted((REGRESSIONS / target).iterdir())


def words() -> list[str]:
    """Words of the table that a fuzzer would not guess."""
    return sorted({row.literal for row in FORMATS} | set(_ENVELOPES))


_ENVELOPES = (
    "(EngineCore pid=7) ", "(APIServer pid=1) ", "(Worker_TP0 pid=8) ", "INFO 11-29 16:54:34 [core.py:1] ",
    "2026-11-29T16:54:34.0Z stdout F ", "2026-11-29T16:54:34.0Z stdout P ", '{"log": "', '{"message": "', "vllm-1  | ",
    "[pod/a/b] ", " [repeated 3x across cluster]", "Traceback (most recent call last):", "ValueError: ",
    "\r", "\x1b[0m",
)  # fmt: skip


def _samples() -> Iterator[bytes]:
    for folder in ("lines", "prefixes", "hostile"):
        for file in sorted((FIXTURES / "logs" / folder).glob("*.log")):
            lines = [line for line in file.read_bytes().split(b"\n") if line and not line.startswith(b"# ")]
            yield from (line[:2000] + b"\n" for line in lines)
    size = "INFO 11-29 16:54:34 [core.py:1] GPU KV cache size: 40,960 tokens"
    yield json.dumps({"events": [{"message": size, "labels": {"on": ["a"]}}, {"message": size}]}, indent=2).encode()
    yield json.dumps([{"line": size}, {"tokens": 1}, {"line": size}]).encode()
    yield ("|/-\\" * 20).replace("", "\r").encode()


def _logs() -> Iterator[bytes]:
    yield from _samples()
    for name in ("vllm-0.32.0-cpu-base", "vllm-0.27.1-cpu-dp2", "vllm-0.8.5.post2-cpu-base-load"):
        log = (FIXTURES / "logs" / "runs" / name / "server.log").read_bytes()
        yield from (log[start : start + 3000] for start in range(0, min(len(log), 24_000), 3000))


def _slos() -> Iterator[bytes]:
    for file in sorted((FIXTURES / "slo").rglob("*")):
        if file.is_file():
            yield file.read_bytes()


def _configs() -> Iterator[bytes]:
    for name in sorted(MODELS):
        known = named_config(name)
        assert known is not None
        yield json.dumps(dict(known.whole)).encode()


_SEEDS: Mapping[str, Callable[[], Iterator[bytes]]] = MappingProxyType(
    {"framing": _samples, "prefixes": _samples, "parser": _logs, "slo": _slos, "model_config": _configs}
)
