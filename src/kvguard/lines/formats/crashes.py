"""Processes that give up: they, or one that they wait for, have failed; the cause stands elsewhere."""

from kvguard.events import ExceptionRaised, FailureReported, ProcessFailed
from kvguard.lines.formats.failures import ALL, KNOWN_CAUSE, KNOWN_REFUSAL, RAYLET, SEE_ABOVE
from kvguard.lines.line_format import COUNT, LineFormat, Scope, up_to
from kvguard.lines.openings import CLASS

EXIT_CODE = rf"(?:-?+{COUNT}|None)"
FRAME = " [type=value_error, "
"""What pydantic puts behind a validator's own words."""


def _gives_up(
    name: str,
    literal: str,
    pattern: str,
    versions: tuple[str, ...],
    upstream: str,
    kind: str = "engine_crash",
    of_outsiders: bool = False,
) -> LineFormat:
    return LineFormat(
        name=name,
        literal=literal,
        pattern=rf"(?P<message>{CLASS}{pattern})",
        emits=(ProcessFailed,),
        scope=Scope.PROCESS,
        versions=versions,
        upstream=upstream,
        fixed={"kind": kind},
        of_outsiders=of_outsiders,
    )


ENGINES: tuple[LineFormat, ...] = (
    _gives_up(
        "process-engine-core-failed",
        "EngineCore failed to start.",
        r"EngineCore failed to start\.",
        ("0.8.5-0.33.0",),
        "v1/engine/core.py; the traceback follows in the same record",
    ),
    _gives_up(
        "process-engine-core-exception",
        "EngineCore hit an exception: ",
        r"EngineCore hit an exception: .*+",
        ("0.7.0-0.8.4",),
        "v1/engine/core.py",
    ),
    _gives_up(
        "process-initialization-failed",
        "ngine core initialization failed. See root cause above.",
        r"Engine core initialization failed\. See root cause above\.(?: Failed core proc\(s\): \{[^{}]*+"
        r"(?:\}(?:, failed frontend proc\(s\): \{[^{}]*+\}?)?)?)?",
        ("0.8.4-0.33.0",),
        "v1/engine/utils.py, core_client.py: the last line, the cause is above",
    ),
    _gives_up(
        "process-initialization-failed-named",
        " initialization failed. See root cause above.",
        r"(?!Engine core)\w++ initialization failed\. See root cause above\.",
        ("0.7.0-0.8.3",),
        "v1/engine/core_client.py",
    ),
    _gives_up(
        "process-engine-failed",
        " failed to start.",
        r"(?:Engine process|EngineCoreProc) failed to start\.(?: See stack trace for the root cause\.)?",
        ("0.6.2-0.10.2",),
        "entrypoints/openai/api_server.py (V0), v1/engine/core.py (early V1)",
    ),
    _gives_up(
        "process-fatal-signal",
        "ot fatal signal from worker processes, shutting down.",
        r"(?:MulitprocExecutor g|MultiprocExecutor g|G)ot fatal signal from worker processes, shutting down\. See stack trace "
        r"above for root cause issue\.",
        ("0.7.0-0.8.5.post1",),
        "v1/executor/multiproc_executor.py, v1/engine/core_client.py",
    ),
    _gives_up(
        "process-engine-fatal",
        "EngineCore encountered a fatal error.",
        r"EngineCore encountered a fatal error\.",
        ("0.8.5-0.33.0",),
        "v1/engine/core.py, of an engine that had started",
    ),
    _gives_up(
        "process-engine-dead",
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        r"EngineCore encountered an issue\. See stack trace \(above\) for the root cause\.",
        ("0.8.5-0.33.0",),
        "v1/engine/exceptions.py: what a front end says after its engine has died, or while it is shut down",
    ),
    _gives_up(
        "process-start-timed-out",
        "Timed out waiting for engine",
        r"Timed out waiting for engine(?: core processes to start\. .++|s to send ?+initial message on input socket\.)",
        ("0.9.1-0.33.0",),
        "v1/engine/core_client.py",
        kind="other",
    ),
    _gives_up(
        "process-engine-task-failed",
        "Engine ",
        r"Engine (?:background task failed|iteration timed out\. This should never happen!)",
        ("0.4.1-0.10.2",),
        "engine/async_llm_engine.py (V0): every request is refused from here on",
    ),
    _gives_up(
        "process-engine-loop-dead",
        "Background loop ",
        r"Background loop (?:is not running\. If it was running|has errored already).*+",
        ("0.2.0-0.10.2",),
        "engine/async_llm_engine.py (V0)",
    ),
)

SERVERS: tuple[LineFormat, ...] = (
    _gives_up(
        "process-server-terminating",
        ", terminating server process",
        r"(?:Async|MQ)LLMEngine (?:is already dead|has failed), terminating server process",
        ("0.5.4-0.10.2",),
        "entrypoints/launcher.py (V0), at a request",
    ),
    _gives_up(
        "process-engine-process-died",
        "Engine process (pid ",
        rf"(?:RuntimeError\(['\"])?Engine process \(pid {COUNT}\) died\.(?:['\"]\))?",
        ("0.6.2-0.10.2",),
        "engine/multiprocessing/client.py (V0)",
    ),
    _gives_up(
        "process-triton-engine-failed",
        "[vllm] Failed to start engine: ",
        r"(?:\"\[vllm\]|\[vllm\]) Failed to start engine: .++",
        ALL,
        "Triton's vLLM backend (model.py)",
    ),
)

WORKERS: tuple[LineFormat, ...] = (
    _gives_up(
        "process-worker-failed",
        "WorkerProc failed to start.",
        r"WorkerProc failed to start\.",
        ("0.6.5-0.33.0",),
        "v1/executor/multiproc_executor.py; the cause follows",
    ),
    _gives_up(
        "process-worker-initialization-failed",
        "WorkerProc initialization failed due to an exception in a background process",
        r"WorkerProc initialization failed due to an exception in a background process\. See stack trace for root cause\.",
        ("0.8.5-0.33.0",),
        "v1/executor/multiproc_executor.py",
    ),
    _gives_up(
        "process-worker-exception",
        "WorkerProc hit an exception",
        r"WorkerProc hit an exception(?:: %s|\.)",
        ("0.7.0-0.33.0",),
        "v1/executor/multiproc_executor.py; to 0.8.5 the placeholder stays in the text",
    ),
    _gives_up(
        "process-worker-method-failed",
        "This might cause deadlock in distributed execution.",
        r"Error executing method '?+\w++'?+\. This might cause deadlock in distributed execution\.",
        ("0.4.0.post1-0.33.0",),
        "worker/worker_base.py; the traceback follows in the same record",
    ),
    _gives_up(
        "process-worker-exception-v0",
        "Exception in worker ",
        rf"Exception in worker \w++ while processing method \w++(?:\.|: (?!{KNOWN_CAUSE}|The model's max seq len ).++)",
        ("0.4.2-0.10.2",),
        "executor/multiproc_worker_utils.py (V0); the traceback follows in the same record",
    ),
    _gives_up(
        "process-worker-error",
        "Worker failed with error ",
        rf"\(?+['\"]?+Worker failed with error (?!['\"]{KNOWN_CAUSE})(?!%s, {SEE_ABOVE}', ['\"]{KNOWN_CAUSE}).++",
        ("0.8.0-0.33.0",),
        "v1/executor/multiproc_executor.py: of another error than memory; the worker's own traceback has it",
    ),
    _gives_up(
        "process-worker-died",
        " died unexpectedly",
        rf"(?:(?:Worker|Engine core) proc \S++|RayWorkerProc rank=\S++) died unexpectedly(?: \(exit code: {EXIT_CODE}\))?, "
        r"shutting down (?:executor|client)\.",
        ("0.8.5-0.33.0",),
        "v1/executor/multiproc_executor.py, ray_executor_v2.py, v1/engine/core_client.py",
    ),
    _gives_up(
        "process-worker-died-v0",
        " died, exit code: ",
        rf"Worker \S++ pid {COUNT} died, exit code: {EXIT_CODE}",
        ("0.4.2-0.10.2",),
        "executor/multiproc_worker_utils.py",
    ),
    _gives_up(
        "process-died",
        " died",
        rf"(?:Engine core process \S++ died unexpectedly\.|Process \S++ \(PID: {COUNT}\) died with exit code "
        rf"(?!-9)-?+{COUNT}|Input socket thread died during startup)",
        ("0.9.1-0.33.0",),
        "v1/utils.py, v1/engine/core.py: a front end or the launcher, of a child",
    ),
    _gives_up(
        "process-died-of-sigkill",
        " died with exit code -9",
        rf"Process \S++ \(PID: {COUNT}\) died with exit code -9",
        ("0.9.1-0.33.0",),
        "v1/utils.py",
        kind="killed",
    ),
    _gives_up(
        "process-ray-actor-died",
        "actor died ",
        r"The actor died (?:unexpectedly before finishing this task\.|because (?:of an error raised in its creation task, .++|its "
        r"node has died.*+))",
        ALL,
        "Ray, of a worker; the exception's own text follows",
    ),
    _gives_up(
        "process-ray-worker-died",
        "A worker died or was killed while executing a task",
        rf"{RAYLET}A worker died or was killed while executing a task by an unexpected system error\. .++",
        ALL,
        "Ray's raylet",
    ),
    _gives_up(
        "process-dumped-core",
        " (core dumped)",
        rf"(?:{up_to(': line ')}{COUNT}: ++{COUNT} )?(?:Segmentation fault|Aborted|Bus error|Illegal instruction) ++\(core dumped\)"
        r"(?: .*+)?",
        ALL,
        "the shell",
        of_outsiders=True,
    ),
    _gives_up(
        "process-watchdog",
        "watchdog thread terminated with exception: ",
        r"(?:NCCL|HCCL|Process group) watchdog thread terminated with exception: (?!(?:CUDA|HIP) error: out of memory).++",
        ALL,
        "PyTorch's ProcessGroupNCCL, which aborts its process on it",
        of_outsiders=True,
    ),
    _gives_up(
        "process-python-fatal",
        "Fatal Python error: ",
        r"Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction)",
        ALL,
        "Python's faulthandler",
        of_outsiders=True,
    ),
)

CAUSES_BELOW: tuple[LineFormat, ...] = (
    LineFormat(
        name="process-ray-task-error",
        literal="RayTaskError(",
        pattern=r"(?:ray\.exceptions\.)?RayTaskError(?:\(\w++\))?: ray::.++",
        emits=(),
        scope=Scope.PROCESS,
        versions=ALL,
        upstream="Ray: head of a remote traceback, whose last line is the cause",
    ),
    LineFormat(
        name="fail-validation",
        literal=" validation error",
        pattern=rf"(?P<message>{CLASS}{COUNT} validation errors? for \w++)",
        emits=(ExceptionRaised,),
        scope=Scope.PROCESS,
        versions=("0.10.0-0.33.0",),
        upstream="pydantic, for vLLM's configuration classes: the cause follows",
    ),
)

CAUSES: tuple[LineFormat, ...] = (
    LineFormat(
        name="fail-value-error",
        literal=FRAME,
        pattern=rf"(?P<message>Value error, (?!{KNOWN_REFUSAL}){up_to(FRAME)}).*+",
        emits=(FailureReported,),
        scope=Scope.PROCESS,
        versions=("0.10.0-0.33.0",),
        upstream="pydantic, for a check of vLLM's configuration classes that has no row of its own",
        fixed={"kind": "invalid_config"},
        read=lambda groups: {"message": groups["message"].removesuffix(FRAME)},
    ),
)

ROWS: tuple[LineFormat, ...] = ENGINES + SERVERS + WORKERS + CAUSES_BELOW + CAUSES
