"""What the own functions of older vLLM releases computed, on both sides of each border that releases.py names."""

from functools import cache

import pytest

from kvguard.kvcache.releases import parse_release
from tests.kvcache.real import Row, check_pool, read_rows


@cache
def deployments() -> dict[str, list[Row]]:
    by_release: dict[str, list[Row]] = {}
    for row in read_rows("real-vllm-older.jsonl"):
        for release in row["releases"]:
            by_release.setdefault(release, []).append(row)
    return by_release


@pytest.mark.parametrize("release", sorted(deployments(), key=parse_release))
def test_pools_of_an_older_release_are_its_own(release: str) -> None:
    for deployment in deployments()[release]:
        for pool in deployment["pools"]:
            check_pool(deployment, pool, parse_release(release))
