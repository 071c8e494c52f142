"""What vLLM 0.32's own functions computed for 656 deployments of 249 models, to the block (fixtures/arith)."""

from functools import cache

import pytest

from kvguard.errors import ConfigError
from tests.kvcache.real import Row, check_pool, groups_of, groups_told, planned, read_rows


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


@pytest.mark.parametrize("name", sorted(set(deployments()) - KNOWN_TO_BE_REFUSED))
def test_groups_blocks_tokens_concurrency_and_refusals_are_vllms_own(name: str) -> None:
    for deployment in deployments()[name]:
        for pool in deployment["pools"]:
            check_pool(deployment, pool)


def test_latents_are_groups_of_their_own() -> None:
    latent = next(row for row in deployments()["deepseek-v3"])

    assert groups_of(planned(latent, latent["pools"][0]).layout) == groups_told(latent)


@pytest.mark.parametrize("name", sorted(KNOWN_TO_BE_REFUSED))
def test_what_is_not_known_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="an architecture whose cache is not known"):
        planned(deployments()[name][0], deployments()[name][0]["pools"][0])
