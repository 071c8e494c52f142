"""Verdicts built by hand, one a shape that a renderer must draw; the story's figures where it has them."""

from kvguard.slo.objectives import Severity, Stage
from kvguard.slo.verdict import CheckKind, CheckResult, JudgedWarning, Lever, Outcome, Reason, Verdict
from kvguard.startup.report import (
    Capacity,
    CapacityReport,
    DeploymentCapacity,
    Derived,
    Failure,
    FailureKind,
    LogCounts,
    Memory,
    Phase,
    Place,
    Runtime,
    Start,
    StartSummary,
    StartWarning,
    Timings,
    TokenFigure,
    Unrecognized,
)

GIB = 2**30


def place(line: int, source: str = "vllm.log") -> Place:
    return Place(source, line)


def check(
    objective: str, unit: str, observed: float | str | None, target: float | str, outcome: Outcome, **more: object
) -> CheckResult:
    values: dict[str, object] = {
        "kind": CheckKind.PRINTED,
        "stage": Stage.STARTUP,
        "low": observed if not isinstance(observed, str) else None,
        "high": observed if not isinstance(observed, str) else None,
        "reason": f"{objective} is {outcome}",
    }
    return CheckResult(
        objective=objective, unit=unit, observed=observed, target=target, outcome=outcome, **(values | more)
    )  # type: ignore[arg-type]


REFUSED = Verdict(
    outcome=Outcome.FAIL,
    report=CapacityReport(
        sources=("vllm.log",),
        starts=1,
        start=Start(
            index=1,
            phase=Phase.FAILED,
            gpu_memory_utilization=0.9,
            capacity=DeploymentCapacity(
                weakest=Capacity(weights_bytes=round(14.99 * GIB), kv_cache_bytes=round(3.47 * GIB)), engines_expected=1
            ),
            memory=Memory(
                total_gpu=round(22.05 * GIB),
                utilization=0.9,
                usable=round(19.84 * GIB),
                weights=round(14.99 * GIB),
                non_torch=round(0.12 * GIB),
                activation_peak=round(1.26 * GIB),
                kv_cache=round(3.47 * GIB),
            ),
            failure=Failure(
                FailureKind.KV_CACHE_TOO_SMALL,
                "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in "
                "KV cache (28432).",
                place(5),
                requested_max_model_len=131072,
                kv_cache_tokens=28432,
            ),
            lines={"weights_bytes": place(1), "kv_cache_bytes": place(4)},
            first_place=place(1),
            last_place=place(7),
        ),
        history=(StartSummary(1, Phase.FAILED, None, None, FailureKind.KV_CACHE_TOO_SMALL, 1, 7),),
        counts=LogCounts(bytes=611, lines=7, matched=5, records=4),
    ),
    reasons=(
        Reason(
            "start-failed",
            "the start failed: the KV cache holds 28,432 tokens, the context asked for has 131,072",
            place(5),
        ),
    ),
    checks=(
        check(
            "min_concurrency",
            "requests",
            None,
            2.5,
            Outcome.FAIL,
            reason="the start failed before it could report a concurrency",
        ),
    ),
    levers=(
        Lever(
            "--max-model-len",
            "28432",
            "1 request of 28,432 tokens",
            "longer requests are refused",
            True,
            1.0,
            1.0,
            "requests of 28,432 tokens",
        ),
        Lever(
            "--kv-cache-dtype",
            "fp8",
            "0.43 requests of 131,072 tokens",
            "some accuracy",
            False,
            0.43,
            0.43,
            "requests of 131,072 tokens",
            "needs an FP8-capable attention backend",
            ("the cache",),
        ),
        Lever(
            "--gpu-memory-utilization",
            "0.92",
            "0.24 to 0.25 requests of 131,072 tokens",
            "less room for CUDA graphs and other processes",
            False,
            0.24,
            0.25,
            "requests of 131,072 tokens",
        ),
        Lever(
            "--quantization",
            "awq",
            "4-bit weights: about 9.5 GiB more KV cache",
            "another checkpoint, some accuracy",
            None,
        ),
        Lever(
            "--tensor-parallel-size", "2", "half of the weights and of the KV heads on each card", "a second card", True
        ),
    ),
)

PASSED = Verdict(
    outcome=Outcome.PASS,
    reasons=(Reason("objectives-met", "all 3 objectives are met"),),
    report=CapacityReport(
        sources=("vllm.log",),
        starts=1,
        start=Start(
            index=1,
            phase=Phase.READY,
            vllm_version="0.8.1",
            generation="V0",
            model="meta-llama/Llama-3.1-8B-Instruct",
            served_model_name="llama",
            max_model_len=16384,
            kv_cache_dtype="fp8",
            dtype="bfloat16",
            tensor_parallel_size=1,
            gpu_memory_utilization=0.92,
            block_size=16,
            arguments={"max_model_len": 16384, "kv_cache_dtype": "fp8"},
            kv_cache_basis="profiled",
            capacity=DeploymentCapacity(
                weakest=Capacity(
                    "0",
                    round(14.99 * GIB),
                    round(3.6 * GIB),
                    None,
                    3686,
                    2048,
                    16384,
                    3.6,
                    None,
                    {"max_concurrency": 0.005, "kv_cache_bytes": 5368709.12},
                    {"kv_cache_tokens": Derived(58976, "3,686 blocks × 16 tokens")},
                ),
                engines=1,
                engines_expected=1,
                total_max_concurrency=3.6,
            ),
            engines=(Capacity("0", round(14.99 * GIB), round(3.6 * GIB), None, 3686, 2048, 16384, 3.6),),
            memory=Memory(weights=round(14.99 * GIB), kv_cache=round(3.6 * GIB)),
            timings=Timings(load=21.4, init=14.2, ready=412.0),
            first_place=place(1),
            last_place=place(14),
            began=1234.5,
            lines={"max_concurrency": place(9), "gpu_blocks": place(8), "weights_bytes": place(5)},
        ),
        history=(StartSummary(1, Phase.READY, "0.8.1", 3.6, None, 1, 14),),
        counts=LogCounts(bytes=2210, lines=14, matched=9, records=13),
    ),
    checks=(
        check("min_concurrency", "requests", 3.6, 2.5, Outcome.PASS, place=place(9), reason="3.60 is at least 2.5"),
        check("min_kv_cache", "bytes", round(3.6 * GIB), 3.4 * GIB, Outcome.PASS, place=place(6)),
        check("expect_kv_cache_dtype", "", "fp8", "fp8", Outcome.PASS, place=place(2)),
    ),
)

WEAK_ENGINE = Verdict(
    outcome=Outcome.FAIL,
    report=CapacityReport(
        sources=("node-0.log", "node-1.log"),
        starts=4,
        start=Start(
            index=4,
            phase=Phase.ALLOCATED,
            vllm_version="0.32.0",
            generation="V1",
            model="Qwen/Qwen3-30B-A3B",
            max_model_len=40960,
            kv_cache_dtype="auto",
            tensor_parallel_size=2,
            data_parallel_size=2,
            capacity=DeploymentCapacity(
                weakest=Capacity(
                    "1",
                    round(28.61 * GIB),
                    round(30.1 * GIB),
                    102_400,
                    None,
                    None,
                    40960,
                    2.496,
                    TokenFigure.CONCURRENCY_TIMES_LEN,
                    {"max_concurrency": 0.005},
                ),
                engines=2,
                engines_expected=2,
                total_kv_cache_tokens=348_160,
                total_max_concurrency=8.5,
            ),
            engines=(
                Capacity("0", round(28.61 * GIB), round(48.25 * GIB), 245_760, None, None, 40960, 6.0),
                Capacity("1", round(28.61 * GIB), round(30.1 * GIB), 102_400, None, None, 40960, 2.496),
            ),
            memory=Memory(
                consumed=round(29.9 * GIB),
                activation_peak=round(1.5 * GIB),
                cuda_graphs_estimated=round(0.61 * GIB),
                kv_cache=round(30.1 * GIB),
            ),
            runtime=Runtime(
                samples=4,
                peak_running=4,
                peak_waiting=16,
                peak_kv_cache_usage=0.981,
                preemptions=3,
                place=place(88, "node-0.log"),
            ),
            warnings=(StartWarning("restart-loop", "three starts in a row never got ready", place(3, "node-1.log")),),
            first_place=place(60, "node-1.log"),
            last_place=place(91, "node-1.log"),
        ),
        history=(
            *(StartSummary(i, Phase.FAILED, "0.32.0", None, FailureKind.OOM, 20 * i - 19, 20 * i) for i in (1, 2, 3)),
            StartSummary(4, Phase.ALLOCATED, "0.32.0", 2.496, None, 60, 91),
        ),
        unrecognized=(Unrecognized(place(77, "node-0.log"), "GPU KV cache pool: 245760 tokens (new wording)"),),
        counts=LogCounts(bytes=9000, lines=182, matched=33, unrecognized=1, records=170),
    ),
    reasons=(
        Reason(
            "objective-missed",
            "maximum concurrency of engine 1 is 2.496, below the 2.5 asked for",
            place(81, "node-1.log"),
        ),
        Reason("warning", "three starts in a row never got ready", place(3, "node-1.log")),
    ),
    checks=(
        check(
            "min_concurrency",
            "requests",
            2.496,
            2.5,
            Outcome.FAIL,
            place=place(81, "node-1.log"),
            reason="maximum concurrency of engine 1 is 2.496, below the 2.5 asked for",
            remedy="give engine 1 the memory that engine 0 has: 18.15 GiB less are free on its cards",
        ),
        check(
            "concurrent_requests",
            "requests",
            5.0,
            6.0,
            Outcome.UNKNOWN,
            kind=CheckKind.COMPUTED,
            stage=Stage.WORKLOAD,
            low=4.79,
            high=11.46,
            reason="between 4.79 and 11.46 requests fit: the log does not say how its layers share the pool",
            remedy="give the model's config.json, or declare workload.layers: uniform",
        ),
        check(
            "max_waiting_requests",
            "requests",
            16,
            10,
            Outcome.FAIL,
            stage=Stage.RUNTIME,
            place=place(88, "node-0.log"),
            reason="16 requests waited, 10 are allowed",
        ),
        check(
            "max_kv_cache_usage",
            "ratio",
            0.981,
            0.95,
            Outcome.FAIL,
            stage=Stage.RUNTIME,
            place=place(88, "node-0.log"),
            reason="98.1 % of the KV cache was in use, 95 % are allowed",
            severity=Severity.WARN,
        ),
        check(
            "max_drop",
            "ratio",
            None,
            0.05,
            Outcome.UNKNOWN,
            kind=CheckKind.COMPUTED,
            stage=Stage.REGRESSION,
            reason="the baseline has no blocks to compare",
        ),
    ),
    warnings=(
        JudgedWarning("restart-loop", Severity.FAIL, "three starts in a row never got ready", place(3, "node-1.log")),
        JudgedWarning("start-not-finished", Severity.WARN, "the capacity is known, the server is not ready yet", None),
        JudgedWarning(
            "hybrid-token-figure",
            Severity.NOTE,
            "the token figure is concurrency × max_model_len, not the pool",
            place(80, "node-1.log"),
        ),
        JudgedWarning("thin-margin", Severity.IGNORE, "not shown", None),
    ),
)

EMPTY = Verdict(
    outcome=Outcome.UNKNOWN,
    report=CapacityReport(sources=("empty.log",)),
    reasons=(Reason("no-start", "the log is empty", None, "give the log of the vLLM process"),),
    checks=(
        check(
            "min_concurrency",
            "requests",
            None,
            2.5,
            Outcome.UNKNOWN,
            reason="the log has no line of a vLLM start",
            remedy="give the log from its first line on",
        ),
    ),
)

SPITEFUL = (
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m <script>alert(1)</script> & ]]> ::error::x\r\n%0A|cell|`tick` "
    "[a](javascript:b) hf_abcdefghijklmnopqrstuvwxyz012345 https://bob:hunter2@host/x \u202egnp.exe \u2028 \x00 "
    "\x9b31m @everyone --api-key sk-abcdefghijklmnopqrst"
)
"""What a model's name or a message could hold to break out of the place it is shown in, and secrets."""

HOSTILE = Verdict(
    outcome=Outcome.FAIL,
    report=CapacityReport(
        sources=("a,b:c\n%.log",),
        starts=1,
        start=Start(
            index=1,
            phase=Phase.FAILED,
            model=SPITEFUL,
            served_model_name=SPITEFUL,
            arguments={"hf_overrides": {"x": SPITEFUL}, "list": [SPITEFUL]},
            failure=Failure(FailureKind.OTHER, SPITEFUL, place(3, "a,b:c\n%.log")),
            warnings=(StartWarning("restarted", SPITEFUL, None),),
            missing=(SPITEFUL,),
        ),
        unrecognized=(Unrecognized(place(2, "a,b:c\n%.log"), SPITEFUL),),
    ),
    reasons=(Reason("start-failed", SPITEFUL, place(3, "a,b:c\n%.log")),),
    checks=(
        check(
            "expect_kv_cache_dtype",
            "",
            SPITEFUL,
            SPITEFUL,
            Outcome.FAIL,
            reason=SPITEFUL,
            remedy=SPITEFUL,
            place=place(3, "a,b:c\n%.log"),
            levers=(Lever(SPITEFUL, SPITEFUL, SPITEFUL, SPITEFUL, True),),
        ),
    ),
    warnings=(
        JudgedWarning("context-auto-reduced", Severity.FAIL, SPITEFUL, None),
        JudgedWarning("restarted", Severity.WARN, SPITEFUL, None),
    ),
    levers=(Lever(SPITEFUL, SPITEFUL, SPITEFUL, SPITEFUL, False),),
)

VERDICTS: dict[str, Verdict] = {
    "refused": REFUSED,
    "passed": PASSED,
    "weak-engine": WEAK_ENGINE,
    "empty": EMPTY,
    "hostile": HOSTILE,
}
