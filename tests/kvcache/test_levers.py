"""Levers: by known facts alone, ranked by what they cost, in pairs where none does it, directions without a number."""

from dataclasses import replace
from functools import partial

import pytest

from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.changes import suggest
from kvguard.kvcache.levers import Facts, Lever, Target
from kvguard.kvcache.load import Request
from kvguard.kvcache.models import named_config
from kvguard.kvcache.options import Options
from kvguard.kvcache.uniform import UniformPool
from kvguard.units import GIB, Interval

EXACT = Interval.exact
CARD = Facts(
    kv_cache_bytes=EXACT(4 * GIB),
    concurrency=EXACT(2.0),
    max_model_len=16_384,
    total_bytes=EXACT(24 * GIB),
    utilization=0.9,
    weights_bytes=EXACT(15 * GIB),
    kv_cache_dtype="auto",
    quantized=False,
    one_kind_of_layer=True,
)
"""What a log alone may tell of Llama 3.1 8B on one card; no model config."""


def by_flag(levers: tuple[Lever, ...]) -> dict[str, Lever]:
    return {lever.flag: lever for lever in levers}


def test_half_the_bytes_a_token_hold_twice_the_requests() -> None:
    fp8 = by_flag(suggest(CARD, Target(3.0)))["--kv-cache-dtype"]

    assert fp8.meets
    assert fp8.gives == EXACT(4.0)


def test_the_longest_context_that_meets_the_target_is_proposed() -> None:
    shorter = by_flag(suggest(CARD, Target(4.0)))["--max-model-len"]

    assert shorter.value == "8192"
    assert "the pool is not enlarged" in shorter.price


def test_with_several_kinds_of_layers_a_shorter_context_may_gain_nothing() -> None:
    mixed = Facts(concurrency=EXACT(2.0), max_model_len=16_384)
    shorter = by_flag(suggest(mixed, Target(3.0)))["--max-model-len"]

    assert shorter.gives is None
    assert not shorter.meets


def test_utilisation_is_proposed_as_high_as_it_must_be_and_no_higher() -> None:
    higher = by_flag(suggest(CARD, Target(2.3)))["--gpu-memory-utilization"]

    assert higher.value == "0.93"
    assert higher.gives is not None
    assert higher.gives.low == pytest.approx(2.0 * (4 + 0.03 * 24) / 4)


def test_it_stays_below_what_the_card_had_free() -> None:
    crowded = replace(CARD, free_share=0.91)
    levers = by_flag(suggest(crowded, Target(2.3)))

    assert float(levers["--gpu-memory-utilization"].value) <= 0.91
    assert not levers["--gpu-memory-utilization"].meets


def test_a_quantised_checkpoint_is_not_quantised_again() -> None:
    light = replace(CARD, quantized=True)

    assert "--quantization" not in by_flag(suggest(light, Target(3.0)))


def test_two_do_it_where_no_single_one_does() -> None:
    levers = suggest(CARD, Target(7.0))
    pair = "--kv-cache-dtype + --quantization"

    assert by_flag(levers)[pair].meets
    assert not by_flag(levers)["--kv-cache-dtype"].meets
    assert [lever.meets for lever in levers] == sorted((lever.meets for lever in levers), reverse=True)


def test_a_pair_takes_the_least_setting_that_is_enough() -> None:
    light = replace(CARD, quantized=True)
    pair = by_flag(suggest(light, Target(4.5)))["--gpu-memory-utilization + --kv-cache-dtype"]

    assert pair.value == "0.93 + fp8"  # 0.95 would be the most
    assert pair.gives is not None
    assert pair.gives.low == pytest.approx(4.0 * (4 + 0.03 * 24) / 4)


def test_what_a_reading_leaves_open_is_spanned_and_its_worse_end_decides() -> None:
    several = replace(CARD, one_kind_of_layer=False, concurrency=EXACT(1.8))
    (fp8,) = [lever for lever in suggest(CARD, Target(3.0), (several,)) if lever.flag == "--kv-cache-dtype"]

    assert fp8.gives == Interval(1.8, 4.0)
    assert not fp8.meets


def test_prompts_may_have_to_share_a_beginning() -> None:
    pool = UniformPool(EXACT(2_561), 16, shares_prefixes=True)
    load = replace(CARD, workload=Request(7_500, 1_000), uniform=pool)
    shared = by_flag(suggest(load, Target(8, of_workload=True)))["tokens that all prompts share"]

    # 8 requests of 532 blocks in 2,560: (532 - s) * 8 + s <= 2,560
    assert shared.value == "3,888 or more"
    assert shared.gives == EXACT((2_560 - 243) / (532 - 243))


def test_nobody_is_told_to_send_other_requests_or_to_buy_a_hall() -> None:
    load = replace(CARD, workload=Request(7_500, 1_000))
    levers = by_flag(suggest(load, Target(4_000, of_workload=True)))

    assert "tokens a request" not in levers
    assert levers["--data-parallel-size"].value == "2"


def test_a_cache_of_fixed_bytes_gets_nothing_from_lighter_weights() -> None:
    levers = by_flag(suggest(replace(CARD, fixed="bytes"), Target(3.0)))

    assert not {"--quantization", "--gpu-memory-utilization", "--enforce-eager"} & set(levers)
    assert levers["--kv-cache-memory-bytes"].value == str(6 * GIB)
    assert levers["--kv-cache-memory-bytes"].gives == EXACT(3.0)
    assert levers["--tensor-parallel-size"].gives == Interval(2.0, 4.0)  # the heads are split, no byte is gained


def test_blocks_that_an_option_fixes_stay_as_many_whatever_they_hold() -> None:
    levers = by_flag(suggest(replace(CARD, fixed="blocks", unfixed_factor=4.0), Target(3.0)))

    assert not {"--kv-cache-dtype", "--quantization", "--tensor-parallel-size"} & set(levers)
    assert levers["drop --num-gpu-blocks-override"].gives == EXACT(8.0)
    assert by_flag(suggest(replace(CARD, fixed="blocks"), Target(3.0)))["drop --num-gpu-blocks-override"].gives is None


def test_those_that_meet_come_first_and_the_cheaper_before_the_dearer() -> None:
    meeting = [lever for lever in suggest(CARD, Target(2.2)) if lever.meets]

    assert [lever.cost for lever in meeting] == sorted(lever.cost for lever in meeting)


def test_what_cannot_be_computed_is_a_direction() -> None:
    levers = suggest(Facts(), Target(2.0))

    assert levers
    assert {lever.gives for lever in levers} == {None}
    assert not any(lever.meets for lever in levers)


def test_more_engines_carry_more_of_the_load_but_no_longer_requests() -> None:
    load = replace(CARD, workload=Request(3_000, 1_096))
    of_load = by_flag(suggest(load, Target(16, of_workload=True)))

    assert of_load["--data-parallel-size"].gives == EXACT(16.0)
    assert "--data-parallel-size" not in by_flag(suggest(CARD, Target(4.0)))


def test_with_the_layers_a_gain_is_counted_in_blocks() -> None:
    config = named_config("llama-3.1-8b")
    assert config is not None
    options = Options(max_model_len=16_384)
    known = replace(CARD, read=partial(read_model, config), options=options)
    levers = by_flag(suggest(known, Target(3.0)))

    assert levers["--kv-cache-dtype"].gives == EXACT(4.0)
    assert int(levers["--max-model-len"].value) == 4 * GIB // 131_072 // 3 // 16 * 16


def test_replicated_latents_are_split_by_tokens() -> None:
    config = named_config("kimi-k2")
    assert config is not None
    options = Options(max_model_len=131_072, tensor_parallel_size=8)
    known = Facts(
        kv_cache_bytes=EXACT(9 * GIB),
        max_model_len=131_072,
        tensor_parallel_size=8,
        read=partial(read_model, config),
        options=options,
    )
    split = by_flag(suggest(known, Target(4.0)))["--decode-context-parallel-size"]

    assert split.value == "8"
    assert split.meets
