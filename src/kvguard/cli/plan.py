"""`kvguard plan`: what a deployment would hold, and whether it would start, before it is started."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from kvguard.cli import exit_status
from kvguard.units import Interval, QuantityError, parse_bytes_interval

if TYPE_CHECKING:
    from kvguard.kvcache.levers import Facts, Lever, Target
    from kvguard.kvcache.plan import End, Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options; those of the engine are spelt as vLLM spells them."""
    from kvguard.cli.plan_request import COUNTS, SWITCHES, WORDS, count

    add = parser.add_argument
    add("config", metavar="CONFIG", help="a config.json, a model folder, -, or a public model's name (llama-3.1-8b)")
    add("--format", choices=("text", "json"), default="text", help="what to print (default: text)")
    pool = parser.add_argument_group("pool (at most one; without, only the layout)").add_argument
    pool(
        "--kv-cache-memory-bytes",
        action="append",
        type=_size,
        metavar="SIZE",
        help="of one rank; again a stage or rank",
    )
    pool("--num-gpu-blocks-override", type=count, metavar="N", help="blocks of the pool")
    pool("--gpu-memory", type=_size, metavar="SIZE", help="total memory of a card, as vLLM or nvidia-smi shows it")
    pool("--gpu-memory-utilization", type=float, metavar="F", help="share that vLLM may use (default: the release's)")
    pool("--weights", type=_size, metavar="SIZE", help="weights on one rank, as vLLM prints them")
    pool("--quantization", metavar="Q", help="of the weights: awq, gptq, fp8, nvfp4, …")
    pool("--from-log", metavar="LOG", help="the parts and flags that a start on that machine measured")
    pool("--reserve", type=_size, metavar="SIZE", help="all that is neither weights nor cache (default: an estimate)")
    engine = parser.add_argument_group("engine").add_argument
    engine("--vllm-version", metavar="V", help="whose rules hold (default: the newest that was tested)")
    engine("--max-model-len", metavar="N|auto")
    for name in COUNTS:
        engine(f"--{name}", type=count, metavar="N")
    for name in WORDS:
        engine(f"--{name}", choices=_CHOICES.get(name))
    for name in SWITCHES:
        engine(f"--{name}", action=argparse.BooleanOptionalAction)
    engine("--disable-hybrid-kv-cache-manager", action="store_true")
    engine("--pp-layer-partition", metavar="16,16,…", help="as VLLM_PP_LAYER_PARTITION")
    engine("--draft-config", metavar="FILE", help="config.json of a drafter; its layers take cache too")
    load = parser.add_argument_group("workload and target").add_argument
    for name in ("prompt-tokens", "output-tokens", "shared-prefix-tokens", "concurrent-requests"):
        load(f"--{name}", type=count, metavar="N")
    load("--min-concurrency", type=float, metavar="F", help="requests of max_model_len that must fit in one engine")


_CHOICES = {"engine": ("v0", "v1"), "mamba-cache-mode": ("none", "align", "all")}


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    from kvguard.cli import plan_request as request
    from kvguard.cli.plan_from_log import read_start
    from kvguard.cli.plan_inputs import read_model_input
    from kvguard.kvcache.plan import make_plan

    model = read_model_input(arguments.config)
    start = None if arguments.from_log is None else read_start(arguments.from_log)
    taken = () if start is None else request.take_flags(arguments, start)
    options = request.options_of(arguments)
    read = request.layer_reader(arguments, model)
    layers = read(options)
    if start is None:
        pool = request.pool_of(arguments, model, layers, options)
    else:
        pool = request.measured_pool(arguments, model, layers, options, start)
    total = None if arguments.gpu_memory is None else arguments.gpu_memory.high
    plan = make_plan(layers, options, pool, request.workload_of(arguments), total)
    plan = request.with_notes(plan, arguments.gpu_memory, taken)
    target = request.target_of(arguments, plan)
    outcome = None if target is None else _outcome(plan, target)
    levers: tuple[Lever, ...] = ()
    if target is not None and outcome != "pass":
        levers = _levers(request.facts_of(arguments, model, read, options, plan, start), target)
    _print(arguments, plan, target, outcome, levers)
    return _status(plan, outcome)


def _size(text: str) -> Interval:
    try:
        return parse_bytes_interval(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _levers(facts: "Facts", target: "Target") -> "tuple[Lever, ...]":
    from kvguard.kvcache.changes import suggest

    return suggest(facts, target)


def _outcome(plan: "Plan", target: "Target") -> str:
    """Met if the low end meets it, missed if the high end misses it, else unknown; a refused start misses all."""
    if plan.low is None or plan.high is None:
        return "unknown"
    if plan.starts is False:
        return "fail"
    low, high = (_reached(plan, end, target) for end in (plan.low, plan.high))
    if plan.starts and low >= target.requests:
        return "pass"
    return "fail" if high < target.requests else "unknown"


def _reached(plan: "Plan", end: "End", target: "Target") -> float:
    if target.of_workload:
        return 0 if end.service is None else end.service.requests * plan.layout.serving.dp
    return end.pool.concurrency or 0.0


def _print(
    arguments: argparse.Namespace,
    plan: "Plan",
    target: "Target | None",
    outcome: str | None,
    levers: "tuple[Lever, ...]",
) -> None:
    if arguments.format == "json":
        from kvguard.cli.plan_request import options_in_force
        from kvguard.render.plan_json import plan_document

        json.dump(plan_document(plan, options_in_force(arguments, plan), outcome, levers), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    from kvguard.render.plan_text import plan_text

    sys.stdout.write(plan_text(plan, arguments.config, target, outcome, levers))


def _status(plan: "Plan", outcome: str | None) -> int:
    if plan.starts is False or outcome == "fail":
        return exit_status.MISSED
    return exit_status.UNKNOWN if plan.starts is None or outcome == "unknown" else exit_status.MET
