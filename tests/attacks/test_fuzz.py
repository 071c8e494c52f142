"""A short slice of the fuzzer: what once broke a target, and a few hundred seeds with something spoilt in each."""

import random

import pytest
from fuzz.seeds import regressions, seeds, words
from fuzz.targets import TARGETS, within_its_time

SPOILT = 150
"""Inputs a target; the long runs are done by hand (`fuzz/README.md`)."""
CASES = [(target, file) for target in TARGETS for file in regressions(target)]


@pytest.mark.parametrize("target, file", CASES, ids=[f"{target}-{file.name}" for target, file in CASES])
def test_what_once_broke_a_target_breaks_it_no_more(target, file):
    within_its_time(TARGETS[target], file.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_with_something_spoilt_breaks_nothing(target):
    chance = random.Random(target)
    pool = seeds(target)
    for _ in range(SPOILT):
        within_its_time(TARGETS[target], spoilt(chance.choice(pool)[:3000], chance))


def spoilt(data: bytes, chance: random.Random) -> bytes:
    """The input with a piece of it taken out, doubled, or replaced by a word of the table or by any bytes."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((0, 1, 2, 8, 64)))
        between = chance.choice(
            (b"", data[start:end] * 2, chance.choice(words()).encode(), chance.randbytes(3), b"9" * 5000, b"\n", b"\r")
        )
        data = data[:start] + between + data[end:]
    return data
