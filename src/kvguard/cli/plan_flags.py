"""The flags of `kvguard plan` and how their values are read; the engine's are spelt as vLLM spells them."""

import argparse
from math import inf, nan

from kvguard.slo.keys import BY_NAME
from kvguard.units import MIB, Interval, QuantityError, parse_bytes_interval

COUNTS = (
    "block-size",
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "decode-context-parallel-size",
    "prefill-context-parallel-size",
    "data-parallel-size",
    "max-num-batched-tokens",
    "max-num-encoder-input-tokens",
    "max-num-seqs",
    "mamba-block-size",
    "kernel-block-alignment",
    "num-speculative-tokens",
    "draft-layers",
)
WORDS = (
    "dtype",
    "kv-cache-dtype",
    "mamba-cache-dtype",
    "mamba-ssm-cache-dtype",
    "engine",
    "mamba-cache-mode",
    "gdn-prefill-backend",
)
SWITCHES = ("async-scheduling", "enable-prefix-caching")
_LARGEST = 1 << 40
_CHOICES = {
    "engine": ("v0", "v1"),
    "mamba-cache-mode": ("none", "align", "all"),
    "gdn-prefill-backend": ("auto", "flashinfer", "triton", "cutedsl", "aiter_flydsl", "sycl"),
}


def add_pool(parser: argparse.ArgumentParser) -> None:
    """Add what the pool is made of."""
    add = parser.add_argument_group("pool (at most one; without, only the layout)").add_argument
    often = "for the cache on one rank; repeat it once a stage or once a rank"
    add("--kv-cache-memory-bytes", action="append", type=_size, metavar="SIZE", help=often)
    add("--num-gpu-blocks-override", type=count, metavar="N", help="blocks of the pool")
    add("--gpu-memory", type=_size, metavar="SIZE", help="total memory of a card, as vLLM or nvidia-smi shows it")
    add("--gpu-memory-utilization", type=_share, metavar="F", help="share that vLLM may use (default: the release's)")
    add("--weights", type=_size, metavar="SIZE", help="weights on one rank, as vLLM prints them")
    add("--quantization", metavar="Q", help="of the weights: awq, gptq, fp8, nvfp4, …")
    add("--from-log", metavar="LOG", help="the parts and flags that a start on that machine measured")
    add("--reserve", type=_size, metavar="SIZE", help="all that is neither weights nor cache (default: an estimate)")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add vLLM's own flags."""
    add = parser.add_argument_group("engine, as vLLM spells and defaults them").add_argument
    add("--vllm-version", metavar="V", help="whose rules hold (default: the newest that was tested)")
    add("--max-model-len", metavar="N|auto")
    for name in COUNTS:
        add(f"--{name}", type=count, metavar="N")
    for name in WORDS:
        add(f"--{name}", choices=_CHOICES.get(name), metavar=None if name in _CHOICES else "DTYPE")
    for name in SWITCHES:
        add(f"--{name}", action=argparse.BooleanOptionalAction)
    add("--disable-hybrid-kv-cache-manager", action="store_true")
    add("--pp-layer-partition", metavar="16,16,…", help="as VLLM_PP_LAYER_PARTITION")
    add("--draft-config", metavar="FILE", help="config.json of a drafter; its layers take cache too")


def add_load(parser: argparse.ArgumentParser) -> None:
    """Add the load, and what it must reach."""
    add = parser.add_argument_group("workload and target").add_argument
    for name in ("prompt-tokens", "output-tokens", "shared-prefix-tokens", "concurrent-requests"):
        add(f"--{name}", type=count, metavar="N", help=BY_NAME[name.replace("-", "_")].help)
    add("--min-concurrency", type=_figure, metavar="F", help="requests of max_model_len that must fit in one engine")


_SUFFIXES = {"k": 10**3, "m": 10**6, "K": 1 << 10, "M": 1 << 20}
"""As vLLM reads --max-model-len 16k and 16K (engine/arg_utils.py, human_readable_int)."""


def count(text: str) -> int:
    """A whole number, as an argparse type: "16384", "16,384", or as vLLM reads them "16k" (16,000) and "16K" (16,384).

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    factor = _SUFFIXES.get(text[-1:], 1)
    plain = text[: -1 if factor > 1 else None].replace(",", "").replace("_", "")
    if not plain.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; write it as 16384")
    number = int(plain) * factor
    if number > _LARGEST:
        raise argparse.ArgumentTypeError(f"{text} is more than any deployment has")
    return number


def _figure(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not 0 <= number < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a figure; write it as 2.5")
    return number


def _share(text: str) -> float:
    number = _figure(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share of the card; write it as 0.9")
    return number


def _size(text: str) -> Interval:
    try:
        size = parse_bytes_interval(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if 0 < size.high < MIB:  # 24 without its unit would be planned for as 24 bytes
        raise argparse.ArgumentTypeError(f"{text!r} is {size.high:,.0f} bytes: write the unit, as 24GiB")
    return size
