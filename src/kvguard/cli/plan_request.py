"""From the command line of `kvguard plan` to what the arithmetic asks: options, pool, workload, target, facts."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from kvguard.cli.plan_flags import COUNTS, SWITCHES, WORDS, count
from kvguard.cli.plan_from_log import MeasuredStart
from kvguard.cli.plan_inputs import ModelInput, read_model_input
from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model, with_drafter
from kvguard.kvcache.budget import Part, card_budget, declared_budget, estimated_reserve, measured_budget
from kvguard.kvcache.layers import ModelLayers
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.levers import Facts, Target
from kvguard.kvcache.load import Request
from kvguard.kvcache.options import Assumption, Options, resolve
from kvguard.kvcache.plan import Plan, PoolInput
from kvguard.kvcache.pool import recover_blocks
from kvguard.kvcache.releases import default_utilization, parse_release
from kvguard.kvcache.serving import Serving
from kvguard.kvcache.weights import QUANTIZED_BITS, declared_method, estimate_weights
from kvguard.slotted import replace
from kvguard.units import GIB, Interval

_MAY_BE_ZERO = ("num-speculative-tokens", "draft-layers")
_RANKS = ("tensor_parallel_size", "pipeline_parallel_size")
"""What a rank's measured parts hang on."""


def options_of(arguments: argparse.Namespace) -> Options:
    """The engine's flags.

    Raises:
        ConfigError: a value that is none.
    """
    given: dict[str, Any] = {}
    for name in (*COUNTS, *WORDS, *SWITCHES):
        value = getattr(arguments, name.replace("-", "_"))
        if value is not None:
            given[name.replace("-", "_")] = value
        if value == 0 and name in COUNTS and name not in _MAY_BE_ZERO:
            raise ConfigError(f"--{name} 0: at least 1 is needed")
    given["disable_hybrid_kv_cache_manager"] = arguments.disable_hybrid_kv_cache_manager
    if arguments.vllm_version is not None:
        given["vllm_version"] = parse_release(arguments.vllm_version)
    if arguments.max_model_len in ("auto", "-1"):
        given["auto_max_model_len"] = True
    elif arguments.max_model_len is not None:
        given["max_model_len"] = _count_of("--max-model-len", arguments.max_model_len)
    if given.get("max_model_len") == 0:
        raise ConfigError("--max-model-len 0: at least 1 is needed")
    if arguments.pp_layer_partition is not None:
        parts = arguments.pp_layer_partition.split(",")
        given["pp_layer_partition"] = tuple(_count_of("--pp-layer-partition", part) for part in parts)
    block = given.get("block_size")
    if block is not None and block != 1 and block % 8:
        raise ConfigError(f"--block-size {block}: no attention backend takes it: multiples of 16 they do, some 1 or 8")
    return Options(**given)


def _count_of(flag: str, text: str) -> int:
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"{flag}: {error}") from None


def layer_reader(arguments: argparse.Namespace, model: ModelInput) -> Callable[[Options], ModelLayers]:
    """The model's layers under given flags, the drafter's behind them.

    Raises:
        ConfigError: a drafter's config that is none.
    """
    if arguments.draft_config is None:
        return partial(read_model, model.config)
    drafter = read_model_input(arguments.draft_config).config

    def read(options: Options) -> ModelLayers:
        return with_drafter(read_model(model.config, options), read_model(drafter, replace(options, draft_layers=0)))

    return read


def take_flags(arguments: argparse.Namespace, start: MeasuredStart) -> tuple[Assumption, ...]:
    """Put the flags of a measured start where the command line has none, and say so."""
    taken = []
    for name, value in start.flags.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, str(value) if name == "max_model_len" else value)
            why = "with it the config gives the log's figures" if name in start.settled else "as in the log"
            taken.append(Assumption(name, value if isinstance(value, int | str) else str(value), why))
    declared = _declared_blocks(start)
    if declared is not None:
        taken.append(Assumption("num_gpu_blocks_override", declared, "as in the log"))
    if start.model is not None:
        taken.append(Assumption("model", start.model, "as the log names it; CONFIG is taken to be its"))
    decisive = _RANKS if start.parts.kv_cache is not None else (*_RANKS, "kv_cache_dtype", "block_size")
    taken += [
        Assumption(name, getattr(arguments, name), "taken to be the log's as well, which does not say")
        for name in decisive
        if name not in start.flags and getattr(arguments, name) is not None
    ]
    return tuple(taken)


def measured_pool(
    arguments: argparse.Namespace, model: ModelInput, layers: ModelLayers, options: Options, start: MeasuredStart
) -> PoolInput:
    """The pool of the machine that a log was written on, with other weights or another utilisation where given.

    Raises:
        ConfigError: another pool besides, or a log that does not tell the size of its cache.
    """
    if arguments.kv_cache_memory_bytes or arguments.num_gpu_blocks_override is not None or arguments.gpu_memory:
        raise ConfigError("--from-log: give at most one pool; the log is one")
    _check_ranks(arguments, start)
    serving, _ = resolve(options, layers)
    changed = arguments.weights is not None or arguments.quantization is not None
    weights = weights_of(arguments, model, layers, serving) if changed else None
    budget = measured_budget(start.parts, arguments.gpu_memory_utilization, weights)
    if budget is not None:
        return PoolInput((budget.kv_cache.bytes,), _declared_blocks(start), budget)
    if _declared_blocks(start) is not None:
        return PoolInput(None, start.gpu_blocks, None)
    then = _layout_then(arguments, model, start)
    blocks = start.gpu_blocks or _recovered(then, start)
    if blocks is not None and not changed and arguments.gpu_memory_utilization is None:
        return _same_memory(blocks, then, lay_out(layers, serving))
    raise ConfigError(
        f"--from-log {arguments.from_log}: the log does not say how the card's memory is split; give --gpu-memory, "
        "--weights and --reserve"
    )


def _declared_blocks(start: MeasuredStart) -> int | None:
    """What --num-gpu-blocks-override of the log fixed, whatever its memory would have held."""
    return start.gpu_blocks if start.blocks_declared else None


def check_against_log(arguments: argparse.Namespace, plan: Plan, start: MeasuredStart) -> None:
    """Hold a plan under the log's own flags against what the log printed: another model or block size shows here.

    Raises:
        ConfigError: the log's concurrency lies outside the plan's.
    """
    told, planned = start.concurrency, _concurrency(plan)
    changes = (arguments.weights, arguments.quantization, arguments.gpu_memory_utilization, arguments.draft_config)
    as_then = all(str(getattr(arguments, name)) == str(value) for name, value in start.flags.items())
    if told is None or planned is None or not as_then or any(change is not None for change in changes):
        return
    if plan.layout.serving.max_model_len != start.concurrency_at:
        return
    if planned.high < told.low or planned.low > told.high:
        printed, low, high = (told.low + told.high) / 2, f"{planned.low:.2f}x", f"{planned.high:.2f}x"
        raise ConfigError(
            f"--from-log {arguments.from_log}: it printed {printed:.2f}x, this config gives "
            f"{low if low == high else f'{low} to {high}'} with blocks of {plan.layout.block_size} tokens: is it "
            "another model, or served with a flag that the log does not tell?"
        )


def _check_ranks(arguments: argparse.Namespace, start: MeasuredStart) -> None:
    for name in _RANKS:
        then, now = start.flags.get(name), getattr(arguments, name)
        if then is not None and now != then:
            raise ConfigError(
                f"--{name.replace('_', '-')} {now}: the log measured ranks of {then}, whose weights are others; plan "
                "without --from-log, by --gpu-memory"
            )


def _layout_then(arguments: argparse.Namespace, model: ModelInput, start: MeasuredStart) -> Layout:
    """The layout of the start that was measured: by its own flags, and by the command line's where it tells none."""
    told = {name: str(value) if name == "max_model_len" else value for name, value in start.flags.items()}
    then = argparse.Namespace(**(vars(arguments) | told))
    options = options_of(then)
    layers = layer_reader(then, model)(options)
    return lay_out(layers, resolve(options, layers)[0])


def _same_memory(blocks: int, then: Layout, now: Layout) -> PoolInput:
    """So many blocks of one layout as a pool of another: the bytes stay, and a block may cost other ones."""
    costs = [stage.bytes_per_block for stage in then.stages]
    if costs == [stage.bytes_per_block for stage in now.stages]:
        return PoolInput(None, blocks, None)
    return PoolInput(tuple(Interval(blocks * cost, (blocks + 1) * cost - 1) for cost in costs), None, None)


def _recovered(layout: Layout, start: MeasuredStart) -> int | None:
    """The fewest blocks that print the log's figures, where it names tokens and concurrency but no blocks."""
    counts = recover_blocks(layout, start.tokens, start.concurrency)
    return None if counts is None else counts[0]


def pool_of(arguments: argparse.Namespace, model: ModelInput, layers: ModelLayers, options: Options) -> PoolInput:
    """What the pool is made of.

    Raises:
        ConfigError: two pools, or parts of a budget without its card.
    """
    declared, override, card = arguments.kv_cache_memory_bytes, arguments.num_gpu_blocks_override, arguments.gpu_memory
    if card is not None and (declared or override is not None):
        raise ConfigError("--gpu-memory: give at most one pool; it is computed already by the other flag")
    if card is None:
        loose = [f for f in ("gpu_memory_utilization", "weights", "reserve") if getattr(arguments, f) is not None]
        if loose and not declared and override is None:
            raise ConfigError(f"--{loose[0].replace('_', '-')}: a part of a card's budget; give --gpu-memory too")
        budget = declared_budget(declared[0]) if declared and len(declared) == 1 else None
        return PoolInput(tuple(declared) if declared else None, override, budget)
    serving, _ = resolve(options, layers, card.high)
    budget = card_budget(
        Part(card, "given"),
        utilization_of(arguments, options),
        weights_of(arguments, model, layers, serving),
        Part(arguments.reserve, "given") if arguments.reserve else estimated_reserve(model.config, serving),
    )
    return PoolInput((budget.kv_cache.bytes,), None, budget)


def utilization_of(arguments: argparse.Namespace, options: Options) -> float:
    """--gpu-memory-utilization, or the release's default."""
    if arguments.gpu_memory_utilization is not None:
        return float(arguments.gpu_memory_utilization)
    return default_utilization(options.vllm_version)


def weights_of(arguments: argparse.Namespace, model: ModelInput, layers: ModelLayers, serving: Serving) -> Part:
    """Weights on one rank: given, from the checkpoint's files, or estimated from the config."""
    if arguments.weights is not None:
        return Part(arguments.weights, "given")
    if model.checkpoint_bytes is not None and arguments.quantization is None:
        rank = model.checkpoint_bytes / (serving.tp * serving.pp)
        return Part(Interval(int(rank * 0.99), int(rank * 1.04)), "checkpoint")
    return Part(estimate_weights(model.config, layers, serving, arguments.quantization), "config")


def workload_of(arguments: argparse.Namespace) -> Request | None:
    """The declared load; None without a length.

    Raises:
        ConfigError: a shared prefix longer than the prompt, or a number of requests without their length.
    """
    prompt, output, shared = arguments.prompt_tokens, arguments.output_tokens, arguments.shared_prefix_tokens
    for flag, value in (
        ("--prompt-tokens", prompt),
        ("--concurrent-requests", arguments.concurrent_requests),
        ("--min-concurrency", arguments.min_concurrency),
    ):
        if value == 0:
            raise ConfigError(f"{flag} 0: nothing is asked for; more than 0 is needed")
    if prompt is None and output is None:
        if arguments.concurrent_requests is not None or shared is not None:
            raise ConfigError("--concurrent-requests: how long is one? Give --prompt-tokens and --output-tokens")
        return None
    if (shared or 0) > (prompt or 0):
        raise ConfigError(f"--shared-prefix-tokens {shared}: longer than the prompt of {prompt or 0}")
    return Request(prompt or 0, output or 0, shared or 0)


def targets_of(arguments: argparse.Namespace, plan: Plan) -> tuple[Target, ...]:
    """What is to be met; a start that is refused must at least start."""
    load, length = arguments.concurrent_requests, arguments.min_concurrency
    asked = [] if load is None else [Target(load, of_workload=True)]
    asked += [] if length is None else [Target(length)]
    if not asked and plan.starts is not True and plan.low is not None:
        asked = [Target(1.0)]
    return tuple(asked)


def _fixed(arguments: argparse.Namespace) -> str | None:
    if arguments.num_gpu_blocks_override is not None:
        return "blocks"
    return "bytes" if arguments.kv_cache_memory_bytes else None


def facts_of(
    arguments: argparse.Namespace,
    model: ModelInput,
    read: Callable[[Options], ModelLayers],
    options: Options,
    plan: Plan,
    start: MeasuredStart | None,
) -> Facts:
    """What the levers work on."""
    serving, budget = plan.layout.serving, plan.pool.budget
    settled = replace(options, max_model_len=serving.max_model_len, auto_max_model_len=False)
    quantized = (arguments.quantization or declared_method(model.config)) in QUANTIZED_BITS
    weights = _estimated(model, plan, arguments.quantization)
    if budget is not None and budget.weights is not None:
        weights = budget.weights.bytes
    return Facts(
        kv_cache_bytes=_tightest(plan),
        fixed=_fixed(arguments),
        concurrency=_concurrency(plan),
        max_model_len=serving.max_model_len,
        total_bytes=None if budget is None or budget.total is None else budget.total.bytes,
        utilization=None if budget is None else budget.utilization,
        weights_bytes=weights,
        quantized=quantized,
        quantized_weights_bytes=None if quantized else _estimated(model, plan, "awq"),
        free_share=None if start is None else start.free_share,
        graph_bytes=None if start is None else start.parts.cuda_graphs,
        graph_estimate_gap_bytes=None if start is None else start.graph_estimate_gap_bytes,
        kv_cache_dtype=serving.kv_cache_dtype,
        tensor_parallel_size=serving.tp,
        data_parallel_size=serving.dp,
        one_kind_of_layer=len(plan.layout.groups) == 1,
        read=read,
        options=settled,
        workload=plan.workload,
    )


def _estimated(model: ModelInput, plan: Plan, quantization: str | None) -> Interval | None:
    try:
        return estimate_weights(model.config, plan.layout.model, plan.layout.serving, quantization)
    except ConfigError:  # a config without the sizes: the lever is then a direction
        return None


def _tightest(plan: Plan) -> Interval | None:
    """Bytes of the cache on the tightest rank; of a given number of blocks, what so many cost."""
    if plan.pool.override is not None:
        return Interval.exact(plan.pool.override * plan.layout.bytes_per_block)
    if plan.pool.stage_bytes is None:
        return None
    sizes = plan.pool.stage_bytes
    return Interval(min(size.low for size in sizes), min(size.high for size in sizes))


def _concurrency(plan: Plan) -> Interval | None:
    low = None if plan.low is None else plan.low.pool.concurrency
    high = None if plan.high is None else plan.high.pool.concurrency
    return None if low is None or high is None else Interval(low, high)


def with_notes(plan: Plan, card: Interval | None, taken: tuple[Assumption, ...]) -> Plan:
    """The plan with what was taken from a log, and a note where the card's size is a name.

    A "24GB" card shows 22.05 to 23.6 GiB.
    """
    notes = (*taken, *plan.assumptions)
    if card is not None and card.is_exact and not (card.low % 10**9 and card.low % GIB):
        why = "a card's nominal size; give the total that vLLM or nvidia-smi shows"
        notes = (*notes, Assumption("gpu_memory", int(card.low), why))
    return replace(plan, assumptions=notes)


def options_in_force(arguments: argparse.Namespace, plan: Plan) -> dict[str, object]:
    """Every option with its value, by vLLM's names; those of the pool where given."""
    serving, budget = plan.layout.serving, plan.pool.budget
    given = {name: getattr(arguments, name) for name in ("quantization", "num_gpu_blocks_override", "draft_config")}
    return {
        "vllm_version": str(serving.release),
        "engine": serving.engine,
        "max_model_len": serving.max_model_len,
        "dtype": serving.dtype,
        "block_size": plan.layout.block_size,
        "kv_cache_dtype": serving.kv_cache_dtype,
        "tensor_parallel_size": serving.tp,
        "pipeline_parallel_size": serving.pp,
        "pp_layer_partition": list(serving.pp_layer_partition) if serving.pp_layer_partition else None,
        "decode_context_parallel_size": serving.dcp,
        "prefill_context_parallel_size": serving.pcp,
        "data_parallel_size": serving.dp,
        "max_num_batched_tokens": serving.max_num_batched_tokens,
        "max_num_encoder_input_tokens": serving.encoder_budget,
        "max_num_seqs": serving.max_num_seqs,
        "async_scheduling": serving.async_scheduling,
        "enable_prefix_caching": serving.prefix_caching,
        "disable_hybrid_kv_cache_manager": not serving.hybrid_manager,
        "mamba_cache_mode": serving.mamba_cache_mode,
        "mamba_block_size": serving.mamba_block_size,
        "mamba_cache_dtype": serving.mamba_cache_dtype,
        "mamba_ssm_cache_dtype": serving.mamba_ssm_cache_dtype,
        "gdn_prefill_backend": arguments.gdn_prefill_backend,
        "kernel_block_alignment": serving.kernel_block_alignment,
        "num_speculative_tokens": serving.speculative_tokens,
        "draft_layers": arguments.draft_layers or 0,
        "gpu_memory_utilization": None if budget is None else budget.utilization,
    } | given
