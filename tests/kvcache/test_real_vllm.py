"""What vLLM 0.32's own functions computed for 656 deployments of 249 models, to the block (fixtures/arith).

And what 0.33 made of them: the same, but for what `real-vllm-0.33.jsonl` holds and for a 16-bit cache of another dtype.
"""

from functools import cache

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.releases import Release
from tests.kvcache.real import Row, check_pool, groups_of, groups_told, models, planned, read_rows


@cache
def deployments() -> dict[str, list[Row]]:
    by_model: dict[str, list[Row]] = {}
    for row in read_rows("real-vllm-0.32.jsonl"):
        by_model.setdefault(row["model"], []).append(row)
    return by_model


NEWEST_BEFORE = Release(0, 32, 0)
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
            check_pool(deployment, pool, NEWEST_BEFORE)


def as_in_0_33(deployment: Row) -> Row:
    """The deployment on a card whose kernel of Gated DeltaNet exports no state."""
    return deployment | {"options": deployment["options"] | {"gdn_prefill_backend": "triton"}}


def takes_another_float(deployment: Row) -> bool:
    named = deployment["options"].get("kv_cache_dtype")
    return named in ("float16", "bfloat16") and named != models()[deployment["model"]].get("torch_dtype", "bfloat16")


@pytest.mark.parametrize("name", sorted(set(deployments()) - KNOWN_TO_BE_REFUSED))
def test_the_next_release_lays_them_out_alike(name: str) -> None:
    for deployment in deployments()[name]:
        for pool in deployment["pools"][:2]:
            if takes_another_float(deployment):
                with pytest.raises(ConfigError, match=r"vLLM 0\.33\.0 refuses it beside dtype"):
                    planned(deployment, pool, Release(0, 33, 0))
            else:
                check_pool(as_in_0_33(deployment), pool, Release(0, 33, 0))


@pytest.mark.parametrize("deployment", read_rows("real-vllm-0.33.jsonl"), ids=lambda row: str(row["model"]))
def test_states_that_a_prefill_exports_are_counted_and_aligned(deployment: Row) -> None:
    for pool in deployment["pools"]:
        check_pool(deployment, pool, Release(0, 33, 0))


def test_latents_are_groups_of_their_own() -> None:
    latent = next(row for row in deployments()["deepseek-v3"])

    assert groups_of(planned(latent, latent["pools"][0], NEWEST_BEFORE).layout) == groups_told(latent)


@pytest.mark.parametrize("name", sorted(KNOWN_TO_BE_REFUSED))
def test_what_is_not_known_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="an architecture whose cache is not known"):
        planned(deployments()[name][0], deployments()[name][0]["pools"][0])
