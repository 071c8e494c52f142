"""A server that was killed without a word and started again in the same log: yesterday's pass is never told."""

from kvguard.startup.report import Phase
from tests.startup.lines import read


def start(workers: tuple[int, int], tokens: tuple[str, str], concurrency: tuple[str, str]) -> str:
    """A start of vLLM 0.10.0 with two workers, in its own wordings: the API server's lines carry no pid."""
    return "".join(
        (
            "INFO 07-25 10:00:00 [api_server.py:1755] vLLM API server version 0.10.0\n",
            "INFO 07-25 10:00:00 [cli_args.py:261] non-default args: {'model': 'acme/Quill-8B', ",
            "'tensor_parallel_size': 2}\n",
            "INFO 07-25 10:00:20 [core.py:71] Initializing a V1 LLM engine (v0.10.0) with config: ",
            "model='acme/Quill-8B', max_seq_len=40960, tensor_parallel_size=2, pipeline_parallel_size=1, seed=0\n",
            *(
                f"(VllmWorker rank={rank} pid={pid}) INFO 07-25 10:01:00 [gpu_worker.py:232] "
                "Available KV cache memory: 54.39 GiB\n"
                for rank, pid in enumerate(workers)
            ),
            *(
                f"INFO 07-25 10:01:01 [kv_cache_utils.py:716] GPU KV cache size: {count} tokens\n"
                "INFO 07-25 10:01:01 [kv_cache_utils.py:720] "
                f"Maximum concurrency for 40,960 tokens per request: {figure}x\n"
                for count, figure in zip(tokens, concurrency, strict=True)
            ),
            "INFO:     Started server process [1]\nINFO:     Application startup complete.\n",
        )
    )


def test_the_api_server_without_a_pid_may_announce_itself_again() -> None:
    good = start((11, 12), ("509,600", "508,000"), ("12.44", "12.40"))
    low = start((21, 22), ("401,600", "400,000"), ("9.80", "9.77"))

    report = read(good + 'INFO:     10.0.0.7:51234 - "GET /health HTTP/1.1" 200 OK\n' + low)

    assert report.start is not None
    assert (report.starts, report.start.phase) == (2, Phase.READY)
    assert report.start.capacity.weakest.max_concurrency == 9.77
    assert [summary.max_concurrency for summary in report.history] == [12.4, 9.77]
