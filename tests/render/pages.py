"""The states that a status page can be in, from real logs where there are some."""

from dataclasses import replace

from kvguard.guard import Guard
from kvguard.slo.objectives import KINDS, Objective, Slo, Workload
from kvguard.slo.verdict import Verdict
from tests.conftest import FIXTURES
from tests.render.verdicts import HOSTILE, WEAK_ENGINE

LOGS = FIXTURES / "logs"
BASE = (LOGS / "runs/vllm-0.32.0-cpu-base/server.log").read_bytes()
RAG = Workload(prompt_tokens=7500, output_tokens=1000, shared_prefix_tokens=1500)


def judged(data: bytes, workload: Workload | None = None, **targets: float | str) -> Verdict:
    """The verdict on a log that was read to its end."""
    slo = Slo(objectives=tuple(Objective(KINDS[key], target) for key, target in targets.items()))
    guard = Guard(replace(slo, workload=workload), "vllm.log")
    guard.feed(data)
    guard.end()
    return guard.verdict


def log(path: str) -> bytes:
    return (LOGS / path).read_bytes()


def run(name: str) -> bytes:
    return log(f"runs/vllm-{name}/server.log")


PAGES: dict[str, Verdict] = {
    "starting": judged(BASE[: BASE.index(b"KV cache size")], min_concurrency=2.5),
    "pass": judged(log("story/16k-fp8-cache.log"), min_concurrency=2.5),
    "fail": judged(log("story/16k-bf16-cache.log"), min_concurrency=2.5),
    "refused": judged(log("story/l4-default-context.log"), min_concurrency=2.5),
    "workload": judged(
        log("story/rag-24gb.log"), RAG, concurrent_requests=8, max_waiting_requests=10, max_kv_cache_usage=0.95
    ),
    "two-engines": judged(run("0.32.0-cpu-dp2"), min_concurrency=300),
    "hybrid": judged(run("0.32.0-cpu-gemma3-hybrid"), replace(RAG), min_concurrency=20, concurrent_requests=100),
    "two-starts": judged(run("0.32.0-cpu-concat-ok-then-fail"), min_concurrency=2.5),
    "another-programs-log": judged(b"2026-11-29 nginx started\n" * 30, min_concurrency=2.5),
    "empty": judged(b"", min_concurrency=2.5),
    "weak-engine": WEAK_ENGINE,
    "hostile": HOSTILE,
}
