"""Where the memory went: the parts, and the drawing to scale."""

import pytest

from kvguard.render.layout import Terminal
from kvguard.render.memory_bar import memory_bar, memory_line, staircase
from kvguard.render.memory_parts import Part, PartKind, memory_parts
from kvguard.slotted import replace
from kvguard.startup.report import Capacity, DeploymentCapacity, Memory, Phase, Start, StartWarning
from tests.render.pages import judged, log
from tests.render.verdicts import REFUSED

GIB = 2**30


def start(memory: Memory, weakest: Capacity | None = None) -> Start:
    return Start(1, Phase.ALLOCATED, memory=memory, capacity=DeploymentCapacity(weakest or Capacity()))


def named(parts: tuple[Part, ...]) -> dict[str, float]:
    return {part.name: round(part.size / GIB, 2) for part in parts}


def test_the_parts_of_a_whole_profile_add_up_to_the_gpu() -> None:
    assert REFUSED.report.start is not None
    parts = memory_parts(REFUSED.report.start)

    assert named(parts) == {
        "weights": 14.99,
        "non-torch": 0.12,
        "activation peak": 1.26,
        "KV cache": 3.47,
        "outside the budget": 2.21,
    }
    assert sum(part.size for part in parts) == pytest.approx(22.05 * GIB, abs=0.02 * GIB)


def test_what_the_log_does_not_name_is_shown_as_such() -> None:
    memory = Memory(total_gpu=80 * GIB, usable=72 * GIB, weights=30 * GIB, kv_cache=38 * GIB)

    assert named(memory_parts(start(memory))) == {
        "weights": 30.0,
        "not itemised": 4.0,
        "KV cache": 38.0,
        "outside the budget": 8.0,
    }


def test_a_budget_that_is_not_printed_follows_from_the_utilization() -> None:
    memory = Memory(total_gpu=80 * GIB, utilization=0.9, non_torch=GIB, kv_cache=50 * GIB)

    expected = {"non-torch": 1.0, "not itemised": 21.0, "KV cache": 50.0, "outside the budget": 8.0}
    assert named(memory_parts(start(memory))) == expected


def test_without_a_budget_the_rest_of_the_gpu_is_not_itemised() -> None:
    memory = Memory(total_gpu=80 * GIB, weights=30 * GIB, kv_cache=40 * GIB)

    assert named(memory_parts(start(memory))) == {"weights": 30.0, "not itemised": 10.0, "KV cache": 40.0}


def test_weights_and_non_torch_in_one_figure_stay_one_part() -> None:
    memory = Memory(consumed=30 * GIB, activation_peak=2 * GIB, cuda_graphs_estimated=GIB, kv_cache=38 * GIB)
    parts = memory_parts(replace(start(memory, Capacity(weights_bytes=29 * GIB)), vllm_version="0.24.0"))

    assert named(parts) == {"weights and non-torch": 30.0, "activation peak": 1.0, "CUDA graphs": 1.0, "KV cache": 38.0}


CARD = {"total_gpu": 24 * GIB, "usable": 20 * GIB, "weights": 15 * GIB, "kv_cache": 5 * GIB}
NOT_COUNTED = StartWarning("graphs-not-counted", "as the log says")


def test_graphs_that_were_captured_beside_the_budget_are_drawn_outside_of_it() -> None:
    graphs = replace(start(Memory(**CARD, cuda_graphs=GIB)), vllm_version="0.11.2")

    assert named(memory_parts(graphs))["CUDA graphs outside"] == 1.0
    assert named(memory_parts(graphs))["left outside"] == 3.0
    assert [line.split("GiB  ")[1].strip() for line in memory_bar(graphs, Terminal(60), "")[1:5]] == [
        "█" * 18,
        "█" * 5,
        "▓",
        "░" * 4,
    ]
    assert memory_line(graphs, Terminal(), "") == [
        "GPU memory in GiB: weights 15.00, KV cache 5.00; outside it CUDA graphs 1.00"
    ]


@pytest.mark.parametrize(
    "version, warnings, estimated, taken, note",
    [
        ("0.11.2", (), None, 0.5, "CUDA graphs took 0.50 GiB more, outside the budget, when they were captured."),
        ("0.11.2", (), None, 9, "CUDA graphs took 9.00 GiB more, outside the budget, when they were captured."),
        ("0.18.0", (NOT_COUNTED,), 0.6, 0.5, "CUDA graphs took 0.50 GiB more, outside the budget, when they were capt"),
        ("0.20.0", (), 0.6, 0.5, "CUDA graphs took 0.50 GiB; 0.60 GiB had been set aside for them."),
        (None, (), 0.6, 0.5, "CUDA graphs took 0.50 GiB when they were captured."),
        (None, (), None, 0.5, "CUDA graphs took 0.50 GiB when they were captured."),
    ],
)
def test_what_graphs_took_is_said_below(
    version: str | None, warnings: tuple[StartWarning, ...], estimated: float | None, taken: float, note: str
) -> None:
    memory = Memory(
        **CARD, cuda_graphs=round(taken * GIB), cuda_graphs_estimated=round(estimated * GIB) if estimated else None
    )
    graphs = replace(start(memory), vllm_version=version, warnings=warnings)

    assert memory_bar(graphs, Terminal(), "")[-1].startswith(note)
    assert ("CUDA graphs" in named(memory_parts(graphs))) == ("set aside" in note)


def test_a_peak_that_holds_the_graphs_is_drawn_without_them() -> None:
    report = judged(log("public/cb-colab-v2runner-0310.log")).report
    assert report.start is not None
    parts = memory_parts(report.start)

    # vLLM: 36.33 for it, 3.31 consumed, 0.79 peak with 0.35 of graphs in it, 32.23 for the cache
    assert named(parts)["activation peak"] == 0.44
    assert named(parts)["CUDA graphs"] == 0.35
    assert sum(part.size for part in parts if part.kind is not PartKind.OUTSIDE) == pytest.approx(36.33 * GIB, abs=2e7)


def test_graphs_below_zero_are_noise() -> None:
    graphs = replace(start(Memory(**CARD, cuda_graphs=-GIB)), vllm_version="0.11.2")

    assert "CUDA graphs" not in "".join(memory_bar(graphs, Terminal(), ""))


def test_the_engines_figures_stand_in_for_a_missing_profile() -> None:
    parts = memory_parts(start(Memory(), Capacity(weights_bytes=15 * GIB, kv_cache_bytes=5 * GIB)))

    assert [(part.name, part.kind) for part in parts] == [
        ("weights", PartKind.TAKEN),
        ("KV cache", PartKind.KV_CACHE),
    ]


@pytest.mark.parametrize("memory", [Memory(), Memory(kv_cache=GIB), Memory(weights=GIB, total_gpu=GIB)])
def test_too_little_is_no_bar(memory: Memory) -> None:
    assert memory_bar(start(memory), Terminal(), "") == []


def test_a_negative_cache_takes_no_room_and_keeps_its_sign() -> None:
    memory = Memory(weights=15 * GIB, kv_cache=round(-0.87 * GIB))

    assert memory_bar(start(memory), Terminal(40), "") == [
        "GPU memory, as far as the log names it",
        "weights   15.00 GiB  " + "█" * 19,
        "KV cache  −0.87 GiB",
    ]


@pytest.mark.parametrize("width", [12, 41, 64])
def test_the_lengths_add_up_to_the_width(width: int) -> None:
    bars = staircase([14.99, 0.12, 1.26, 3.47, 2.21], width)

    assert sum(length for _, length in bars) == width
    assert [first for first, _ in bars[1:]] == [first + length for first, length in bars[:-1]]
