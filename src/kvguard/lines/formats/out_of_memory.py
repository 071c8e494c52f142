"""Memory that ran out: of a device, in the words of each allocator, or of the host, in the words of who killed.

Allocators say how much was asked for, and how much the device has and has left; none of it is the KV cache's. Advice
that merely names these words stands in INFO and WARNING records, which nobody believes.
"""

from kvguard.lines.formats.failures import ALL, RAYLET, failure
from kvguard.lines.line_format import COUNT, NUMBER, SIZED, LineFormat, Scope, up_to

DEVICE: tuple[LineFormat, ...] = (
    failure(
        "fail-oom",
        " out of memory. Tried to allocate ",
        rf"(?:CUDA|HIP|XPU|NPU) out of memory\. Tried to allocate (?P<needed_sized>{SIZED})"
        rf"(?:(?:\. GPU {COUNT} has a total capaci?+ty of | \([A-Z]PU {COUNT}; )(?P<total_gpu_gib>{NUMBER}) GiB"
        rf"(?:(?: of which| total capacity; {SIZED} already allocated;(?: {SIZED} current active;)?) (?P<available_sized>{SIZED})"
        r"(?: is)? free)?)?"
        r".*+",
        "oom",
        ALL,
        "PyTorch and torch_npu; the words vary with their releases",
        Scope.RANK,
    ),
    failure(
        "fail-oom-cuda-error",
        " error: ",
        r"(?:CUDA|HIP)(?: driver)? error: (?:out of memory|CUBLAS_STATUS_ALLOC_FAILED when calling ).*+",
        "oom",
        ALL,
        "PyTorch: the driver or a library of it refuses, outside of PyTorch's allocator",
        Scope.RANK,
    ),
    failure(
        "fail-oom-level-zero",
        "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        r"level_zero backend failed with error: 39 \(UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY\)",
        "oom",
        ALL,
        "the SYCL runtime, on XPU",
        Scope.RANK,
    ),
    failure(
        "fail-oom-hpu",
        "MODULE:PT_DEVMEM Allocation failed for size::",
        rf"\[Rank:{COUNT}\] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::{COUNT} \({COUNT}\)MB",
        "oom",
        ALL,
        "the Habana bridge of PyTorch, on Gaudi",
        Scope.RANK,
    ),
    failure(
        "fail-oom-jax",
        "RESOURCE_EXHAUSTED: ",
        r"RESOURCE_EXHAUSTED: (?:Out of memory|E\d++: RuntimeProgramAllocationFailure).*+",
        "oom",
        ALL,
        "JAX, on TPU",
        Scope.RANK,
    ),
    failure(
        "fail-oom-host-allocator",
        "DefaultCPUAllocator: ",
        rf"\[enforce fail at [\w./]++:{COUNT}\] (?:err == 0|data)?+\.? ?+DefaultCPUAllocator: (?:can't allocate|not enough) "
        rf"memory: you tried to allocate {COUNT} bytes\..*+",
        "oom",
        ALL,
        "PyTorch's allocator of host memory",
        Scope.RANK,
    ),
    failure(
        "fail-oom-loading",
        "Failed to load model - not enough GPU memory.",
        r"Failed to load model - not enough GPU memory\. Try lowering --gpu-memory-utilization .++",
        "oom",
        ("0.13.0-0.33.0",),
        "v1/worker/gpu_model_runner.py",
        Scope.RANK,
    ),
    failure(
        "fail-oom-warm-up",
        " out of memory occurred when warming up ",
        rf"CUDA out of memory occurred when warming up (?:sampler|pooler(?: \(task='\w++'\))?) with {COUNT} dummy requests\. "
        r"Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine\.",
        "oom",
        ("0.8.0-0.33.0",),
        "v1/worker/gpu_model_runner.py, after healthy capacity lines; the word CUDA is fixed on every platform",
        Scope.RANK,
    ),
    failure(
        "fail-oom-tpu",
        "Unable to load model, a likely reason is ",
        r"Unable to load model, a likely reason is the model is too large for the current device's HBM memory\. .++",
        "oom",
        ("tpu 0.10.0-0.13.0",),
        "v1/worker/tpu_model_runner.py",
        Scope.RANK,
    ),
)

KILLED: tuple[LineFormat, ...] = (
    failure(
        "fail-killed",
        "illed",
        rf"(?:{up_to(': line ')}{COUNT}: ++{COUNT} )?Killed(?:  .*+)?",
        "killed",
        ALL,
        "the shell, of a process that somebody ended: the kernel, most of the time",
        Scope.PROCESS,
        of_outsiders=True,
    ),
    failure(
        "fail-exit-137",
        "137",
        rf"(?:{up_to('exit')}(?:ed)?+(?: with)?+(?: exit)?+(?: code| status)?+:? 137|Exit Code: ++137)(?: \([^()]++\))?\.?",
        "killed",
        ALL,
        "docker compose, kubectl, wrapper scripts: 128 + SIGKILL",
        Scope.PROCESS,
        of_outsiders=True,
    ),
    failure(
        "fail-killed-by-kernel",
        " of memory: Killed process ",
        rf"(?:kernel: )?(?:Memory cgroup out|Out) of memory: Killed process {COUNT} \([^()]++\).*+",
        "killed",
        ALL,
        "Linux",
        Scope.PROCESS,
        of_outsiders=True,
    ),
    failure(
        "fail-killed-by-systemd",
        ".service: ",
        rf"{up_to('.service: ')}(?:A process of this unit has been killed by the OOM killer\.|Main process exited, code=killed, "
        r"status=9/KILL|Failed with result 'oom-kill'\.)",
        "killed",
        ALL,
        "systemd, in the journal of the unit",
        Scope.PROCESS,
        of_outsiders=True,
    ),
    failure(
        "fail-killed-by-slurm",
        "error: ",
        rf"(?:slurmstepd: error: Detected {COUNT} oom[_-]kill events? in \S++ Some of the step tasks have been OOM Killed\."
        rf"|srun: error: {up_to(': task ')}{COUNT}: (?:Out Of Memory|Killed))",
        "killed",
        ALL,
        "Slurm",
        Scope.PROCESS,
        of_outsiders=True,
    ),
    failure(
        "fail-killed-by-ray",
        "killed due to ",
        rf"(?:Task was killed due to the node running low on memory\.|{RAYLET}(?:[a-z_]++\.cc:{COUNT}: )?+{COUNT} Workers \(tasks / actors\) killed "
        r"due to memory pressure \(OOM\), .++)",
        "killed",
        ALL,
        "Ray's memory monitor",
        Scope.PROCESS,
        of_outsiders=True,
    ),
)

ROWS: tuple[LineFormat, ...] = DEVICE + KILLED
