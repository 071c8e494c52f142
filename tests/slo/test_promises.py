"""What a lever promises is what the changed server does: refusals in vLLM's own words, the proposed context planned."""

from functools import cache

import pytest

from kvguard import Guard
from kvguard.errors import ConfigError
from kvguard.kvcache.plan import Plan
from kvguard.kvcache.releases import parse_release
from kvguard.slo.verdict import Lever
from tests.kvcache.real import Row, planned, read_rows


@cache
def refusals() -> dict[str, list[tuple[Row, Row]]]:
    """Deployments that vLLM's own functions refused for their context, with the pool, by release."""
    found: dict[str, list[tuple[Row, Row]]] = {}
    rows = [(row, "0.32.0") for row in read_rows("real-vllm-0.32.jsonl")[::4]]
    rows += [(row, release) for row in read_rows("real-vllm-older.jsonl") for release in row["releases"]]
    for row, release in rows:
        for pool in row["pools"]:
            refused = pool.get("refusal", {}).get("kind") == "kv_cache_too_small"
            if refused and not pool.get("auto") and not pool.get("override"):
                found.setdefault(release, []).append((row, pool))
    return found


def log_of(plan: Plan) -> bytes:
    """The start that the plan says is refused, as its log tells it."""
    assert plan.low is not None
    assert plan.low.refusal is not None
    serving = plan.layout.serving
    engine = f"[core.py:53] Initializing a {serving.engine.upper()} LLM engine (v{serving.release}) with config:"
    flags = f"max_seq_len={serving.max_model_len}, pipeline_parallel_size={serving.pp}, enforce_eager=False"
    return (
        f"INFO 11-29 17:25:09 [api_server.py:981] vLLM API server version {serving.release}\n"
        f"INFO 11-29 17:25:10 {engine} model='m', {flags}\n"
        f"ERROR 11-29 17:25:42 [core.py:448] ValueError: {plan.low.refusal.printed}\n"
    ).encode()


def shorter_context(log: bytes) -> Lever | None:
    guard = Guard(source="vllm.log")
    guard.feed(log)
    guard.end()
    return next((lever for lever in guard.verdict.levers if lever.flag == "--max-model-len"), None)


@pytest.mark.parametrize("release", sorted(refusals(), key=parse_release))
def test_the_context_that_is_called_enough_is_the_longest_that_starts(release: str) -> None:
    for row, pool in refusals()[release]:
        try:
            plan = planned(row, pool, parse_release(release))
        except ConfigError:
            continue  # kvguard knows that architecture by name only
        if plan.low is None or plan.low.refusal is None:
            continue
        lever, longest = shorter_context(log_of(plan)), plan.low.largest_max_model_len
        if lever is not None and lever.enough:
            assert int(lever.value or 0) == longest, (row["model"], row["options"])
        elif plan.layout.serving.pp == 1 and parse_release(release) >= parse_release("0.9.1"):
            assert not longest, (row["model"], row["options"])  # not even one token fits
