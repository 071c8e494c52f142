"""Weights: growth of device memory while a model is loaded, of one rank. "GB" means GiB in every release."""

from collections.abc import Mapping
from typing import Any

from kvguard.events import DrafterAnnounced, OptionResolved, Printed, WeightsLoaded
from kvguard.lines.line_format import COUNT, NUMBER, PAIR, SCALED, LineFormat, Scope
from kvguard.lines.patterns import compiled

_USED = rf"\(({NUMBER}),"


def _most_used_of_chips(groups: Mapping[str, str]) -> dict[str, Any]:
    """The fullest chip's `(used, limit)` pair: weights are of the largest rank."""
    used = [float(pair) for pair in compiled(_USED).findall(groups["pairs"])]
    return {"weights_bytes": Printed(round(max(used) * 2**30), 0.005 * 2**30)}


ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="weights-took",
        literal="oading model weights took ",
        pattern=rf"Loading model weights took (?P<weights_gib>{NUMBER}) (?:GB|GiB)",
        emits=(WeightsLoaded,),
        scope=Scope.RANK,
        versions=(
            "0.4.0.post1-0.7.3",
            "xpu 0.5.1-0.9.2",
            "vllm-ascend 0.7.3-0.30.0",
            "vllm-gaudi 0.10.0-0.27.0",
        ),
        upstream="worker/model_runner.py, v1/worker/gpu_model_runner.py, xpu_model_runner.py; plugins: "
        "model_runner_v1.py, hpu_model_runner.py",
    ),
    LineFormat(
        name="weights-model-loading-took",
        literal="Model loading took ",
        pattern=rf"Model loading took (?P<weights_gib>{NUMBER}) (?:GB|GiB)(?: memory)?"
        rf"(?:(?: and | / )(?P<load_seconds>{NUMBER}) ?+(?:seconds|s))?",
        emits=(WeightsLoaded,),
        scope=Scope.RANK,
        versions=("0.8.0-0.33.0",),
        upstream="v1/worker/gpu_model_runner.py, v1/worker/gpu/model_runner.py (V2 runner), worker/model_runner.py",
    ),
    LineFormat(
        name="weights-took-in-total",
        literal="oading model weights took in total ",
        pattern=rf"Loading model weights took in total (?P<weights_scaled>{SCALED}) of device memory \([^()]*+\) and "
        rf"{SCALED} of host memory \([^()]*+\)",
        emits=(WeightsLoaded,),
        scope=Scope.RANK,
        versions=("hpu 0.6.4-0.9.2",),
        upstream="worker/hpu_model_runner.py, v1/worker/hpu_model_runner.py",
    ),
    LineFormat(
        name="weights-preloaded",
        literal="re-loading model weights on ",
        pattern=rf"Pre-loading model weights on \w++(?::{COUNT})? took (?P<weights_scaled>{SCALED}) of device memory \([^()]*+\) and "
        rf"-?+{SCALED} of host memory \([^()]*+\)",
        emits=(WeightsLoaded,),
        scope=Scope.RANK,
        versions=("hpu 0.6.4-0.9.2", "vllm-gaudi 0.10.0-0.27.0"),
        upstream="worker/hpu_model_runner.py; habana_model_runner.py in the fork: the model itself, before it is wrapped",
    ),
    LineFormat(
        name="weights-hbm-after-init",
        literal="Init model | hbm=",
        pattern=rf"Init model \| hbm=\[(?P<pairs>{PAIR}(?:, {PAIR})*+)\]Gi?[Bb]",
        emits=(WeightsLoaded,),
        scope=Scope.RANK,
        versions=("tpu-inference 0.11.1-0.32.0",),
        upstream="tpu_inference/runner/tpu_runner.py: memory in use after the model was created; tpu_jax_runner.py before it "
        "wrote Gb for GiB",
        read=_most_used_of_chips,
    ),
    LineFormat(
        name="weights-load-seconds",
        literal="Loading weights took ",
        pattern=rf"Loading weights took (?P<load_seconds>{NUMBER}) seconds",
        emits=(WeightsLoaded,),
        scope=Scope.RANK,
        versions=("0.8.0-0.33.0",),
        upstream="model_executor/model_loader/default_loader.py and its siblings: the read alone, no memory",
    ),
    LineFormat(
        name="weights-start",
        literal="Starting to load model ",
        pattern=r"Starting to load model (?P<model>.++)(?<=\.\.\.)",
        emits=(OptionResolved,),
        scope=Scope.RANK,
        versions=("0.5.3-0.33.0",),
        upstream="model runners, load_model",
        fixed={"option": "model"},
        read=lambda groups: {"value": groups["model"].removesuffix("...")},
    ),
    LineFormat(
        name="weights-drafter-start",
        literal="oading drafter model",
        pattern=r"Loading drafter model\.\.\.",
        emits=(DrafterAnnounced,),
        scope=Scope.RANK,
        versions=("0.8.3-0.33.0",),
        upstream="v1/worker/gpu_model_runner.py: the figure that follows holds the drafter as well",
    ),
    LineFormat(
        name="weights-draft-model-start",
        literal="Starting to load draft model ",
        pattern=rf"Starting to load draft model \S++ TP={COUNT}, rank={COUNT}",
        emits=(DrafterAnnounced,),
        scope=Scope.RANK,
        versions=("0.15.0-0.15.1",),
        upstream="v1/spec_decode/draft_model.py",
    ),
    LineFormat(
        name="weights-drafter-cumulative",
        literal="oading drafter model weights took ",
        pattern=rf"Loading drafter model weights took {NUMBER} GB",
        emits=(),
        scope=Scope.RANK,
        versions=("vllm-gaudi 0.11.2-0.27.0",),
        upstream="vllm_gaudi hpu_model_runner.py: target and drafter together, after the target's own line",
    ),
    LineFormat(
        name="weights-gaudi-step",
        literal=" took ",
        pattern=rf"(?:Preparing model with INC|Wrapping in HPUGraph|Compilation) took {NUMBER} GB",
        emits=(),
        scope=Scope.RANK,
        versions=("vllm-gaudi 0.10.0-0.27.0",),
        upstream="vllm_gaudi hpu_model_runner.py: memory of a later step, not of the weights",
    ),
    LineFormat(
        name="weights-peak",
        literal="Peak GPU memory after loading weights: ",
        pattern=rf"Peak GPU memory after loading weights: {NUMBER} GiB",
        emits=(),
        scope=Scope.RANK,
        versions=("0.16.0-0.33.0",),
        upstream="model_executor/model_loader/base_loader.py (DEBUG): the allocator's peak, not the weights",
    ),
    LineFormat(
        name="weights-online-quantization-seconds",
        literal="Online quantization as part of model loading took ",
        pattern=rf"Online quantization as part of model loading took {NUMBER} seconds",
        emits=(),
        scope=Scope.RANK,
        versions=("0.32.0-0.33.0",),
        upstream="model_executor/model_loader/base_loader.py: a duration",
    ),
    LineFormat(
        name="weights-held-outside",
        literal="Weights are held outside this process: ",
        pattern=rf"Weights are held outside this process: of the {NUMBER} GiB utilization budget, {NUMBER} GiB is "
        rf"externally held and {NUMBER} GiB remains for the engine's own allocations\.",
        emits=(),
        scope=Scope.RANK,
        versions=("0.32.0-0.33.0",),
        upstream="v1/worker/utils.py: why the weights of this process are near zero",
    ),
)
