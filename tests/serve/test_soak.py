"""A slice of the simulated week of `bench/soak.py`: nothing lost, nothing grown."""

from bench.soak import live


def test_twenty_restarts_and_half_a_gigabyte_lose_nothing_and_keep_nothing() -> None:
    life = live(restarts=20, gigabytes=0.5)

    assert (life.starts, life.passed) == (20, 20)
    assert life.bytes_read > 450_000_000
    assert life.end_mib - life.settled_mib < 2
