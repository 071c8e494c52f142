"""Where a start begins and ends, in logs of several starts and of starts that come to nothing."""

import re
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.startup.report import FailureKind, Phase, Place
from tests.startup.lines import BOOT, CRASHED, READY, REFUSED, SIZED, STATS, STOPPED, log, read, start_of

RUNS = Path(__file__).parents[2] / "fixtures" / "logs" / "runs"
FIRST = {"api": 100, "core": 130, "hour": 10, "concurrency": "53.71"}
SECOND = {"api": 200, "core": 230, "hour": 12, "concurrency": "26.85"}
SAME_PIDS = {"api": 100, "core": 130, "hour": 12, "concurrency": "26.85"}


def outline(text: str) -> tuple[int, Phase, float | None]:
    report = read(text)
    assert report.start is not None
    return report.starts, report.start.phase, report.start.capacity.weakest.max_concurrency


def test_a_whole_start_is_ready():
    assert outline(log(BOOT, SIZED, READY, STATS)) == (1, Phase.READY, 53.71)


def test_a_start_that_just_stops_is_unfinished_and_not_failed():
    assert outline(log(BOOT)) == (1, Phase.LOADING, None)
    assert outline(log(BOOT, SIZED)) == (1, Phase.ALLOCATED, 53.71)


def test_a_restart_behind_an_orderly_end_is_the_one_that_counts():
    assert outline(log(BOOT, SIZED, READY, STOPPED, **FIRST) + log(BOOT, SIZED, READY, **SECOND)) == (
        2,
        Phase.READY,
        26.85,
    )


@pytest.mark.parametrize("pids", [SECOND, SAME_PIDS], ids=["other pids", "a container's pids again"])
def test_a_restart_that_has_not_reported_yet_is_unknown_never_yesterdays_pass(pids):
    text = log(BOOT, SIZED, READY, STOPPED, **FIRST) + log(BOOT, **pids)

    assert outline(text) == (2, Phase.LOADING, None)


def test_a_restart_behind_a_serving_start_is_known_by_its_new_pids():
    text = log(BOOT, SIZED, READY, STATS, **FIRST) + log(BOOT, SIZED, READY, STATS, **SECOND)

    assert outline(text) == (2, Phase.READY, 26.85)


def test_pids_that_repeat_behind_a_serving_start_are_a_restart_where_the_source_says_so():
    guard = Guard()
    guard.feed(log(BOOT, SIZED, READY, **FIRST).encode())
    guard.boundary()
    guard.feed(log(BOOT, SIZED, READY, **SAME_PIDS).encode())

    assert (guard.report.starts, guard.report.start.capacity.weakest.max_concurrency) == (2, 26.85)
    assert guard.report.contested_by is None


def test_a_crash_loop_is_counted_and_named():
    text = "".join(log(BOOT, REFUSED, api=100 + n, core=130 + n, hour=10 + n) for n in range(4))

    report = read(text)

    assert (report.starts, [start.phase for start in report.history]) == (4, [Phase.FAILED] * 4)
    assert "restart-loop" in {warning.code for warning in report.start.warnings}


def test_a_loop_in_one_container_has_the_same_pids_every_time():
    text = "".join(log(BOOT, REFUSED, hour=10 + n) for n in range(4))

    assert read(text).starts == 4


def test_a_loop_that_is_killed_without_a_word_is_seen_by_its_announcements():
    text = "".join(log(BOOT, hour=10 + n) for n in range(3))

    report = read(text)

    assert (report.starts, report.start.phase) == (3, Phase.LOADING)
    assert "restart-loop" in {warning.code for warning in report.start.warnings}


def test_lines_that_a_log_holds_twice_begin_no_start():
    doubled = "".join(line + line for line in log(BOOT, SIZED, READY).splitlines(keepends=True))

    assert outline(doubled) == (1, Phase.READY, 53.71)


def test_a_good_start_behind_a_failed_one():
    assert outline(log(BOOT, REFUSED, **FIRST) + log(BOOT, SIZED, READY, **SECOND)) == (2, Phase.READY, 26.85)


def test_a_failed_start_behind_a_good_one():
    report = read(log(BOOT, SIZED, READY, STOPPED, **FIRST) + log(BOOT, REFUSED, **SECOND))

    assert (report.starts, report.start.phase, report.start.failure.kind) == (
        2,
        Phase.FAILED,
        FailureKind.NO_KV_MEMORY,
    )
    assert report.start.capacity.weakest.max_concurrency is None


def test_an_orderly_end_after_ready_is_no_failure():
    start = start_of(log(BOOT, SIZED, READY, STATS, STOPPED))

    assert (start.phase, start.failure) == (Phase.STOPPED, None)


def test_a_crash_after_ready_is_an_end_with_a_warning_and_no_failed_start():
    start = start_of(log(BOOT, SIZED, READY, STATS, CRASHED))

    assert (start.phase, start.failure) == (Phase.STOPPED, None)
    assert [warning.code for warning in start.warnings] == ["died-after-ready"]


def test_a_death_is_taken_back_when_the_server_plainly_goes_on():
    once = start_of(log(BOOT, SIZED, READY, STATS, CRASHED) + log(STATS, hour=11))
    twice = start_of(log(BOOT, SIZED, READY, STATS, CRASHED) + log(STATS, hour=11) + log(STATS, hour=12))

    assert (once.phase, [warning.code for warning in once.warnings]) == (Phase.STOPPED, ["died-after-ready"])
    assert (twice.phase, twice.warnings) == (Phase.READY, ())


def test_an_engine_found_dead_while_the_server_is_shut_down_is_no_crash():
    dead = CRASHED.splitlines(keepends=True)[-1]
    start = start_of(log(BOOT, SIZED, READY, STOPPED, dead))

    assert (start.phase, start.warnings) == (Phase.STOPPED, ())


def test_memory_that_runs_out_after_healthy_lines_is_a_failed_start():
    late = (
        "(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:41 [core.py:868] EngineCore failed to start.\n"
        "(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:41 [core.py:868] Traceback (most recent call last):\n"
        "(EngineCore_DP0 pid={core}) ERROR 12-08 {hour}:15:41 [core.py:868] RuntimeError: CUDA out of memory occurred "
        "when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or "
        "`gpu_memory_utilization` when initializing the engine.\n"
    )
    sized = "".join(SIZED.splitlines(keepends=True)[:-1])

    start = start_of(log(BOOT, sized, late))

    assert (start.phase, start.failure.kind) == (Phase.FAILED, FailureKind.OOM)
    assert start.capacity.weakest.max_concurrency == 53.71


@pytest.mark.parametrize(
    "word", ["Killed\n", "/entrypoint.sh: line 12:    31 Killed                  vllm serve acme/Quill-8B\n"]
)
def test_a_killed_process_is_a_failed_start(word):
    start = start_of(log(BOOT) + word)

    assert (start.phase, start.failure.kind) == (Phase.FAILED, FailureKind.KILLED)


@pytest.mark.parametrize(
    ("status", "kind"), [(-9, FailureKind.KILLED), (-99, FailureKind.ENGINE_CRASH), (1, FailureKind.ENGINE_CRASH)]
)
def test_a_worker_that_sigkill_has_ended_was_killed(status, kind):
    died = f"Worker proc VllmWorker-1 died unexpectedly (exit code: {status}), shutting down executor."
    start = start_of(log(BOOT) + f"(EngineCore pid=40) ERROR 09-18 15:00:00 [multiproc_executor.py:314] {died}\n")

    assert (start.phase, start.failure.kind) == (Phase.FAILED, kind)


def test_an_offline_engine_is_ready_when_it_is_initialised():
    offline = BOOT.splitlines(keepends=True)[-1].replace("(EngineCore_DP0 pid={core}) ", "")
    sized = SIZED.replace("(EngineCore_DP0 pid={core}) ", "")

    start = start_of(log(offline, sized))

    assert (start.phase, start.timings.ready) == (Phase.READY, 79.0)


def test_with_an_api_server_an_initialised_engine_is_not_ready_yet():
    assert start_of(log(BOOT, SIZED)).phase is Phase.ALLOCATED


def test_a_stripped_log_begins_anew_with_the_first_fact_behind_a_fatal_line():
    text = (
        "Available KV cache memory: -0.87 GiB\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.\n"
        "Available KV cache memory: 4.13 GiB\n"
        "GPU KV cache size: 28,432 tokens\n"
    )

    report = read(text)

    assert (report.starts, report.start.phase, report.start.failure) == (2, Phase.ALLOCATED, None)
    assert report.start.capacity.weakest.kv_cache_bytes == round(4.13 * 2**30)


def test_a_stripped_log_begins_anew_with_another_value_of_a_line_printed_once():
    report = read("# GPU blocks: 1464, # CPU blocks: 512\n# GPU blocks: 112, # CPU blocks: 512\n")

    assert (report.starts, report.start.capacity.weakest.gpu_blocks) == (2, 112)


def test_an_engine_that_speaks_again_as_another_process_has_started_anew():
    text = (
        "(EngineCore_DP0 pid=591074) INFO 11-06 12:08:55 [kv_cache_utils.py:1229] GPU KV cache size: 715,072 tokens\n"
        "(EngineCore_DP0 pid=666657) INFO 11-06 15:34:59 [kv_cache_utils.py:1229] GPU KV cache size: 5,721,088 tokens\n"
    )

    report = read(text)

    assert (report.starts, report.start.capacity.weakest.kv_cache_tokens) == (2, 5721088)


def test_an_excerpt_with_its_beginning_last_is_one_start():
    boot, sized = log(BOOT), log(SIZED)

    assert outline(sized + boot) == (1, Phase.ALLOCATED, 53.71)


def test_a_second_failure_text_is_the_same_failure():
    report = read(log(BOOT, REFUSED))

    assert (report.starts, report.start.failure.place.line) == (1, 7)


def test_a_wrappers_own_ready_line_is_not_the_servers():
    wrapper = "INFO:     Started server process [7]\nINFO:     Application startup complete.\n"

    assert outline(wrapper + log(BOOT, SIZED)) == (1, Phase.ALLOCATED, 53.71)


def test_another_programs_log_shows_no_start():
    report = read("INFO:     Started server process [7]\nINFO:     Application startup complete.\n")

    assert (report.start, report.starts) == (None, 0)


def test_workers_that_name_no_rank_are_one_start_s():
    """VllmWorkerProcess (0.4.2 to 0.10) names a pid alone, and the driver's own lines not even that."""
    text = (
        "(VllmWorkerProcess pid=534) INFO 07-23 20:49:31 model_runner.py:1060] Loading model weights took 21.6700 GB\n"
        "INFO 07-23 20:49:32 distributed_gpu_executor.py:57] # GPU blocks: 5065, # CPU blocks: 6553\n"
        "INFO 07-23 20:49:32 distributed_gpu_executor.py:61] Maximum concurrency for 8192 tokens per request: 9.89x\n"
    )

    assert outline(text) == (1, Phase.ALLOCATED, 9.89)


def test_the_blocks_are_counted_after_the_engine_alone_was_ready_and_show_that_a_server_is_to_come():
    counted = (
        "(APIServer pid=1) INFO 12-08 10:15:42 [loggers.py:147] Engine 000: vllm cache_config_info with initialization "
        "after num_gpu_blocks is: {blocks}\n"
    )
    start = start_of(log(SIZED) + counted.format(blocks=27500) + counted.format(blocks=99999))

    assert start.phase is Phase.ALLOCATED
    assert start.capacity.weakest.gpu_blocks == 27500


def test_a_record_that_the_kubelets_runtime_cuts_for_the_first_time_while_the_server_serves_is_read():
    access = '(APIServer pid=100) INFO:     127.0.0.1:5 - "GET / HTTP/1.1" 200 OK\n' * 50
    end = log(STOPPED).splitlines()[0]
    half = end.index("]") - 1

    def framed(text: str, partial: str = "F") -> str:
        return "".join(f"2026-12-08T10:00:00.000000Z stdout {partial} {line}\n" for line in text.splitlines())

    guard = Guard()
    guard.feed(framed(log(BOOT, SIZED, READY, STATS) + access).encode())
    guard.feed((framed(access) + framed(end[:half], "P") + framed(end[half:]) + framed(access)).encode())

    assert guard.report.start.phase is Phase.STOPPED


def test_a_stats_line_that_a_terminal_has_wrapped_over_three_lines_is_read():
    old = (
        "INFO 04-08 20:18:10 [api_server.py:1034] vLLM API server version 0.8.3\n"
        "INFO 04-08 20:18:47 [executor_base.py:112] # cuda blocks: 4527, # CPU blocks: 2048\n"
        "INFO 04-08 20:18:47 [executor_base.py:117] Maximum concurrency for 4096 tokens per request: 17.68x\n"
        "INFO:     Application startup complete.\n"
        "INFO 04-08 20:28:47 [metrics.py:488] Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: 90.0 "
        "tokens/s, Running: 7 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 3.1%, CPU KV cache usage: "
        "0.0%.\n"
    )
    wrapped = "".join(line[at : at + 80] + "\n" for line in old.splitlines() for at in range(0, len(line), 80))

    start = start_of(wrapped + 'INFO:     127.0.0.1:5 - "GET / HTTP/1.1" 200 OK\n')

    assert (start.runtime.peak_running, start.runtime.peak_waiting) == (7, 3)
    assert start.runtime.peak_kv_cache_usage == 0.031
    assert start.capacity.weakest.gpu_blocks == 4527


def test_what_a_process_prints_before_it_names_itself_is_its_starts_first_line():
    """To 0.11.0 it says which platform it has found half a minute before it says what it is."""
    text = (RUNS / "vllm-0.8.5.post2-cpu-base-load" / "server.log").read_text(encoding="utf-8")
    later = re.sub(r"(?<=11-29 )17", "18", text)

    first, second = read(text).start, read(text + later).start

    assert first is not None
    assert second is not None
    assert (second.index, second.timings.ready) == (2, first.timings.ready) == (2, 67.0)
    assert second.first_place == Place("log", text.count("\n") + 1)
