"""A message that somebody has aligned, quoted or commented says what it said."""

import pytest

from kvguard.lines.annotations import readings

SIZE = "GPU KV cache size: 1,037,152 tokens"


@pytest.mark.parametrize(
    "pasted",
    [
        "GPU KV cache size:         1,037,152 tokens",
        f"`{SIZE}`: what the pool holds",
        f"{SIZE}`: what the pool holds",
        f"{SIZE}  <--- the figure in question",
        f"{SIZE} ← the figure in question",
        f"{SIZE} (with the drafter)",
        f"{SIZE}    # line 389 of the log",
        f"{SIZE}   [vllm/v1/core/kv_cache_utils.py:1316]",
        f"{SIZE} Capturing CUDA graph shapes: 100%|██████████| 67/67 [00:07<00:00, 8.75it/s]",
    ],
)
def test_the_message_is_one_of_the_readings(pasted: str) -> None:
    assert SIZE in readings(pasted)


@pytest.mark.parametrize("message", [SIZE, f"`{SIZE}`, and then more of it", f"{SIZE} # 2 of them"])
def test_nothing_else_is_taken_off(message: str) -> None:
    assert readings(message) == ()
