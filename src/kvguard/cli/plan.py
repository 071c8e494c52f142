"""`kvguard plan`: what a deployment would hold, and whether it would start, before it is started."""

import argparse
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from kvguard.cli import exit_status, plan_flags
from kvguard.cli.answer import STATUS_OF
from kvguard.cli.standard_streams import put
from kvguard.errors import ConfigError
from kvguard.slo.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kvguard.kvcache.layers import ModelLayers
    from kvguard.kvcache.levers import Answer, Facts, Lever, Target
    from kvguard.kvcache.options import Options
    from kvguard.kvcache.plan import Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options; those of the engine are spelt as vLLM spells them."""
    parser.usage = "%(prog)s CONFIG [pool] [engine] [workload and target]"
    add = parser.add_argument
    what = "a config.json, a model folder, -, or a public model's name (llama-3.1-8b)"
    add("config", metavar="CONFIG", nargs="?", help=what)
    add("--models", action="store_true", help="list the public models that are known by name, and end")
    add("--format", choices=("text", "json"), default="text", help="what to print (default: text)")
    plan_flags.add_pool(parser)
    plan_flags.add_engine(parser)
    plan_flags.add_load(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan, or the names that stand for a config."""
    if arguments.models:
        return _list_models()
    if arguments.config is None:
        raise ConfigError("which model? Give a config.json, a folder or a name (`kvguard plan --models` lists them)")
    from kvguard.cli import plan_request as request
    from kvguard.cli.plan_from_log import OPEN, read_start
    from kvguard.cli.plan_inputs import read_model_input
    from kvguard.kvcache.plan import make_plan

    model = read_model_input(arguments.config)
    given = {name: value for name in OPEN if (value := getattr(arguments, name)) is not None}
    start = None if arguments.from_log is None else read_start(arguments.from_log, model.config.whole, given)
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
    if start is not None:
        request.check_against_log(arguments, plan, start)
    plan = request.with_notes(plan, arguments.gpu_memory, taken)
    facts_at = partial(request.facts_of, arguments, model, read, options, start=start)
    answers = [_answer(plan, target, facts_at, read, options) for target in request.targets_of(arguments, plan)]
    outcome = _outcome_of(plan, answers)
    _print(arguments, model.name, plan, answers, outcome)
    return STATUS_OF[outcome]


def _list_models() -> int:
    from kvguard.kvcache.models import MODELS

    width = max(map(len, MODELS))
    put("".join(f"{name:{width}}  {dimensions['source']}\n" for name, dimensions in MODELS.items()))
    return exit_status.MET


def _answer(
    plan: "Plan",
    target: "Target",
    facts_at: "Callable[[Plan], Facts]",
    read: "Callable[[Options], ModelLayers]",
    options: "Options",
) -> "Answer":
    from kvguard.kvcache.levers import Answer

    outcome = _outcome(plan, target)
    return Answer(target, outcome, () if outcome == "pass" else _levers(plan, target, facts_at, read, options))


def _levers(
    plan: "Plan",
    target: "Target",
    facts_at: "Callable[[Plan], Facts]",
    read: "Callable[[Options], ModelLayers]",
    options: "Options",
) -> "tuple[Lever, ...]":
    """What to change; of flags that vLLM refuses whatever the memory first those, without which no change counts."""
    from kvguard.kvcache.changes import suggest
    from kvguard.kvcache.levers import Lever
    from kvguard.kvcache.plan import make_plan
    from kvguard.render.plan_headline import reached
    from kvguard.slotted import replace
    from kvguard.units import Interval

    serving, longest = plan.layout.serving, plan.layout.model.context.longest
    if plan.contradiction is not None:
        name, value, price = "max_num_batched_tokens", serving.max_num_seqs, "a larger activation peak"
    elif plan.beyond_the_model and longest is not None:
        name, value, price = "max_model_len", longest, "the model has no more"
    else:
        return suggest(facts_at(plan), target)
    flag = f"--{name.replace('_', '-')}"
    changed: dict[str, Any] = {name: value}
    mended = make_plan(read(options), replace(options, **changed), plan.pool, plan.workload)
    if mended.low is None or mended.high is None:
        return ()
    if _outcome(mended, target) != "pass":
        found = tuple(lever for lever in suggest(facts_at(mended), target) if lever.flag == flag)
        if found:
            return found
    gives = Interval(reached(mended, mended.low, target), reached(mended, mended.high, target))
    return (Lever(flag, str(value), gives, price, _outcome(mended, target) == "pass", 0),)


def _outcome(plan: "Plan", target: "Target") -> str:
    """Met if the low end meets it, missed if the high end misses it, else unknown; a refused start misses all."""
    from kvguard.render.plan_headline import reached

    if plan.low is None or plan.high is None:
        return "unknown"
    if plan.starts is False:
        return "fail"
    low, high = (reached(plan, end, target) for end in (plan.low, plan.high))
    if plan.starts and low >= target.requests:
        return "pass"
    return "fail" if high < target.requests else "unknown"


def _print(
    arguments: argparse.Namespace, name: str, plan: "Plan", answers: "Sequence[Answer]", outcome: Outcome
) -> None:
    if arguments.format == "json":
        from kvguard.cli.plan_request import options_in_force
        from kvguard.lines.secrets import mask_deep
        from kvguard.render.plan_json import plan_document

        document = plan_document(plan, options_in_force(arguments, plan), answers)
        put(json.dumps(mask_deep(document), indent=2) + "\n")
        return
    from kvguard.cli.output import terminal_of
    from kvguard.render.log_text import shown
    from kvguard.render.plan_text import plan_text

    asked = outcome if plan.low is not None or outcome is not Outcome.PASS else None
    put(plan_text(plan, shown(name), answers, asked, terminal_of(sys.stdout, os.environ)))


def _outcome_of(plan: "Plan", answers: "Sequence[Answer]") -> Outcome:
    """The whole: a start or a target that fails outweighs what is not known."""
    outcomes = {answer.outcome for answer in answers}
    if plan.starts is False or "fail" in outcomes:
        return Outcome.FAIL
    return Outcome.UNKNOWN if plan.starts is None or "unknown" in outcomes else Outcome.PASS
