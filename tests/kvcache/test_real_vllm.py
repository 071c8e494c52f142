"""What vLLM 0.32's own functions computed for 656 deployments of 249 models, to the block (fixtures/arith)."""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.fit import Refusal
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.model_config import model_config
from kvguard.kvcache.options import Options
from kvguard.kvcache.plan import Plan, PoolInput, make_plan
from kvguard.units import GIB, Interval
from tests.kvcache.asking import ARITH

Row = dict[str, Any]


def read_rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (ARITH / name).read_text(encoding="utf-8").splitlines()]


@cache
def models() -> dict[str, Row]:
    return {row["model"]: row["config"] for row in read_rows("real-vllm-0.32-models.jsonl")}


@cache
def deployments() -> dict[str, list[Row]]:
    by_model: dict[str, list[Row]] = {}
    for row in read_rows("real-vllm-0.32.jsonl"):
        by_model.setdefault(row["model"], []).append(row)
    return by_model


KNOWN_TO_BE_REFUSED = {
    "default of HYV4ForCausalLM",
    "default of HrmTextForCausalLM",
    "default of MuseGlimmerForConditionalGeneration",
}
"""Architectures that vLLM runs and kvguard refuses by name."""


def planned(deployment: Row, pool: Row) -> Plan:
    options = dict(deployment["options"])
    if options.pop("max_model_len", None) == -1 or pool.get("auto"):
        options["auto_max_model_len"] = True
    elif "max_model_len" in deployment["options"]:
        options["max_model_len"] = deployment["options"]["max_model_len"]
    override = options.pop("num_gpu_blocks_override", None)
    asked = Options(**options)
    model = read_model(model_config(models()[deployment["model"]]), asked)
    return make_plan(model, asked, PoolInput((Interval.exact(pool["bytes"]),), pool.get("override", override)))


def groups_of(layout: Layout) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            bucket.spec.kind,
            len(group.layers),
            None if bucket.spec.is_state else bucket.spec.block_size,
            group.bytes_per_block if group.mixed else group.spec.page_bytes,
            group.spec.window,
        )
        for bucket in layout.grouping.buckets
        for group in bucket.groups
    )


@pytest.mark.parametrize("name", sorted(set(deployments()) - KNOWN_TO_BE_REFUSED))
def test_groups_blocks_tokens_concurrency_and_refusals_are_vllms_own(name: str) -> None:
    for deployment in deployments()[name]:
        wanted: Counter[tuple[object, ...]] = Counter()
        for row in deployment["groups"]:
            key = (row["kind"], row["layers"], row["block_size"], row["bytes"], row["window"])
            wanted[key] += row["groups"]
        for pool in deployment["pools"]:
            check_pool(deployment, pool, wanted)


def check_pool(deployment: Row, pool: Row, groups: Counter[tuple[object, ...]]) -> None:
    refused = pool.get("refusal")
    if refused is not None and refused["kind"] == "auto_fit":
        with pytest.raises(ConfigError, match="single token"):
            planned(deployment, pool)
        return
    plan = planned(deployment, pool)
    assert groups_of(plan.layout) == groups, deployment["options"]
    assert plan.layout.block_size == deployment["block_size"]
    if not groups:
        return
    assert plan.low is not None
    if refused is not None:
        assert plan.low.refusal is not None
        check_refusal(plan.low.refusal, refused)
        return
    assert plan.low.refusal is None
    found = (plan.low.pool.blocks, plan.low.pool.tokens, plan.low.pool.concurrency)
    assert found == (pool["blocks"], pool["tokens"], pool["concurrency"]), deployment["options"]
    assert plan.layout.serving.max_model_len == pool["max_model_len"]


def check_refusal(refusal: Refusal, wanted: Row) -> None:
    assert refusal.kind == wanted["kind"]
    if wanted["kind"] == "no_kv_memory":
        return
    assert refusal.needed_bytes is not None
    assert refusal.available_bytes is not None
    assert round(refusal.needed_bytes / GIB, 2) == wanted["needed_gib"]
    assert round(refusal.available_bytes / GIB, 2) == wanted["available_gib"]
    assert refusal.estimated_max_model_len == wanted["estimated_max_model_len"]


@pytest.mark.parametrize("name", sorted(KNOWN_TO_BE_REFUSED))
def test_what_is_not_known_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="an architecture whose cache is not known"):
        planned(deployments()[name][0], deployments()[name][0]["pools"][0])
