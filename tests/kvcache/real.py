"""What vLLM's own functions computed (fixtures/arith/real-vllm-*.jsonl), and kvguard asked for the same."""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.fit import Refusal
from kvguard.kvcache.layers import LayerKind
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.model_config import model_config
from kvguard.kvcache.options import Options
from kvguard.kvcache.plan import Plan, PoolInput, make_plan
from kvguard.kvcache.pool import Pool
from kvguard.kvcache.releases import Release
from kvguard.units import GIB, Interval
from tests.kvcache.asking import ARITH

Row = dict[str, Any]


def read_rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (ARITH / name).read_text(encoding="utf-8").splitlines()]


@cache
def models() -> dict[str, Row]:
    return {row["model"]: row["config"] for row in read_rows("real-vllm-0.32-models.jsonl")}


def planned(deployment: Row, pool: Row, release: Release | None = None) -> Plan:
    options = dict(deployment["options"])
    if options.pop("max_model_len", None) == -1 or pool.get("auto"):
        options["auto_max_model_len"] = True
    elif "max_model_len" in deployment["options"]:
        options["max_model_len"] = deployment["options"]["max_model_len"]
    override = options.pop("num_gpu_blocks_override", None)
    if release is not None:
        options["vllm_version"] = release
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


def groups_told(deployment: Row) -> Counter[tuple[object, ...]]:
    told: Counter[tuple[object, ...]] = Counter()
    for row in deployment["groups"]:
        told[(row["kind"], row["layers"], row["block_size"], row["bytes"], row["window"])] += row["groups"]
    return told


def without_latents(groups: Counter[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """The groups, latents counted as full attention: the first releases had no name of their own for them."""
    full = {LayerKind.MLA.value: LayerKind.FULL.value}
    return Counter({(full.get(str(kind), kind), *rest): count for (kind, *rest), count in groups.items()})


def check_pool(deployment: Row, pool: Row, release: Release | None = None) -> None:
    refused = pool.get("refusal")
    if refused is not None and refused["kind"] in ("auto_fit", "config"):
        with pytest.raises(ConfigError, match="single token" if refused["kind"] == "auto_fit" else "vLLM|support"):
            planned(deployment, pool, release)
        return
    plan = planned(deployment, pool, release)
    check_layout(deployment, plan.layout)
    if not plan.layout.groups:
        return
    assert plan.low is not None
    if refused is not None:
        assert plan.low.refusal is not None
        check_refusal(plan.low.refusal, refused)
        return
    assert plan.low.refusal is None
    check_figures(plan.low.pool, pool)
    assert plan.layout.serving.max_model_len == pool["max_model_len"]


def check_layout(deployment: Row, layout: Layout) -> None:
    if "groups" in deployment:
        told = without_latents(groups_told(deployment))
        assert without_latents(groups_of(layout)) == told, deployment["options"]
    if "stage_bytes_per_block" in deployment:
        assert [stage.bytes_per_block for stage in layout.stages] == deployment["stage_bytes_per_block"]
    assert layout.block_size == deployment["block_size"]


def check_figures(found: Pool, told: Row) -> None:
    """A concurrency is told in full, or (a text) as it was printed."""
    assert found.blocks == told["blocks"]
    assert found.tokens == told.get("tokens", found.tokens)
    concurrency = told.get("concurrency")
    if isinstance(concurrency, str):
        assert f"{found.concurrency:.2f}" == concurrency
    elif concurrency is not None:
        assert found.concurrency == concurrency


def check_refusal(refusal: Refusal, wanted: Row) -> None:
    assert refusal.kind == wanted["kind"]
    if wanted["kind"] == "no_kv_memory":
        return
    estimate = refusal.estimated_max_model_len
    assert estimate == wanted.get("estimated_max_model_len", estimate)  # 0.8.4 to 0.9.0 lose the number
    if "needed_gib" not in wanted:
        return
    assert refusal.needed_bytes is not None
    assert refusal.available_bytes is not None
    assert round(refusal.needed_bytes / GIB, 2) == wanted["needed_gib"]
    assert round(refusal.available_bytes / GIB, 2) == wanted["available_gib"]
