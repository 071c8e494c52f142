"""Weights estimated from a config, held against the sizes that vLLM printed or that the checkpoints have."""

import pytest

from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.models import named_config
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.weights import count_parameters, estimate_weights
from kvguard.units import GIB


def estimate(name: str, quantization: str | None = None, **flags: int) -> tuple[float, float]:
    config = named_config(name)
    assert config is not None
    options = Options(**flags)  # type: ignore[arg-type]
    model = read_model(config, options)
    serving, _ = resolve(options, model)
    found = estimate_weights(config, model, serving, quantization)
    return found.low / GIB, found.high / GIB


@pytest.mark.parametrize(
    "name, quantization, printed",
    [
        ("llama-3.1-8b", None, 14.99),  # "Loading model weights took 14.99 GB"
        ("llama-3.1-8b", "awq", 5.37),
        ("qwen2.5-7b", None, 14.25),
        ("llama-3.1-70b", None, 131.42),
    ],
)
def test_the_printed_size_lies_inside(name: str, quantization: str | None, printed: float) -> None:
    low, high = estimate(name, quantization)

    assert low <= printed <= high
    assert high - low < 0.15 * printed


@pytest.mark.parametrize(
    "name, billions",
    [
        ("llama-3.1-8b", 8.03),
        ("llama-3.1-405b", 405.9),
        ("qwen3-30b-a3b", 30.5),
        ("mixtral-8x7b", 46.7),
        ("deepseek-v3", 671.0),
        ("gemma-2-9b", 9.24),
        ("phi-4", 14.7),
        ("qwen2.5-0.5b", 0.494),
        ("kimi-k2", 1026.0),
        ("glm-4.5-air", 106.9),
        ("gpt-oss-120b", 116.8),
        ("mistral-nemo-12b", 12.2),
    ],
)
def test_parameters_are_those_that_the_model_card_names(name: str, billions: float) -> None:
    config = named_config(name)
    assert config is not None
    counted = count_parameters(config, read_model(config, Options())).total / 1e9

    assert counted == pytest.approx(billions, rel=0.02)


def test_cards_share_them() -> None:
    assert estimate("llama-3.1-70b", tensor_parallel_size=4)[1] == pytest.approx(estimate("llama-3.1-70b")[1] / 4)
    assert estimate("llama-3.1-70b", pipeline_parallel_size=2)[1] == pytest.approx(
        estimate("llama-3.1-70b")[1] / 2, rel=0.01
    )
