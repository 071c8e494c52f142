"""The sidecar as it runs in a pod: start, answers, Prometheus, and its ends."""

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.live_prometheus import Prometheus, Target, free_port, scraping
from tests.serve.driven import LOADING, READY, RUNS
from tests.serve.process import ENVIRON, Served, command, served


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a real server that serves."""
    path = tmp_path_factory.mktemp("log") / "vllm.log"
    path.write_bytes(READY)
    return str(path)


@pytest.fixture(scope="module")
def sidecar(log: str) -> Iterator[Served]:
    with served("--log", log, "--min-concurrency", "2.5") as running:
        running.log_line(phase="ready")
        yield running


def test_it_answers_as_the_verdict_is(sidecar: Served) -> None:
    answer = sidecar.get("/readyz")

    assert (answer.status, answer.headers["X-Kvguard-Verdict"]) == (200, "pass")


def test_a_log_that_appears_late_and_grows_opens_the_gate(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    said = tmp_path / "termination-log"
    with served("--log", str(log), "--min-concurrency", "2.5", "--termination-log", str(said)) as running:
        waiting = running.log_line(source_state="waiting")
        before = running.get("/readyz").status
        log.write_bytes(LOADING)
        loading = running.log_line(phase="profiling")
        with log.open("ab") as file:
            file.write(READY[len(LOADING) :])
        ready = running.log_line(phase="ready")

        assert (waiting["source_state"], before) == ("waiting", 503)
        assert (loading["phase"], loading["gate"]) == ("profiling", "closed")
        assert (ready["phase"], ready["gate"]) == ("ready", "open")
        assert running.get("/readyz").status == 200
        assert said.read_text().startswith("kvguard: pass: maximum concurrency at 4,096 tokens is 256 requests")


def test_an_edited_slo_file_changes_the_verdict_and_not_the_gate(tmp_path: Path) -> None:
    log, slo = tmp_path / "vllm.log", tmp_path / "slo.yaml"
    log.write_bytes(READY)
    slo.write_text("objectives: {min_concurrency: 2.5}\n")
    with served("--log", str(log), "--slo", str(slo)) as running:
        running.log_line(verdict="pass", gate="open")
        slo.write_text("objectives: {min_concurrency: 300}\n")

        assert running.log_line(verdict="fail")["gate"] == "open"


def test_a_restart_with_a_record_leaves_a_server_in_service(tmp_path: Path) -> None:
    log, record = tmp_path / "vllm.log", str(tmp_path / "record.jsonl")
    log.write_bytes(READY)
    gates = []
    for target in ("2.5", "300"):
        with served("--log", str(log), "--record", record, "--min-concurrency", target) as running:
            line = running.log_line(phase="ready")
            gates.append((line["verdict"], line["gate"], running.get("/readyz").status))
            running.end(signal.SIGKILL)

    assert gates == [("pass", "open", 200), ("fail", "open", 200)]


def test_a_wording_of_ones_own_is_told(tmp_path: Path) -> None:
    log = tmp_path / "acme.log"
    log.write_text("(EngineCore pid=7) INFO 11-29 16:54:34 [worker.py:7] ACME pool ready: 40,960 tokens\n")
    rows = str(FIXTURES / "formats" / "acme.yaml")
    with served("--log", str(log), "--formats", rows, "--min-kv-cache-tokens", "40960") as running:
        assert running.log_line(source_state="reading", verdict="pass")["kv_cache_tokens"] == 40960


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_and_cleanly(number: int, tmp_path: Path) -> None:
    with served("--log", str(tmp_path / "vllm.log")) as running:
        running.get("/livez")
        began = time.monotonic()

        status = running.end(number)

        assert (status, time.monotonic() - began < 2.0) == (0, True)


def test_a_signal_ends_it_while_somebody_holds_a_connection(tmp_path: Path) -> None:
    with (
        served("--log", str(tmp_path / "vllm.log")) as running,
        socket.create_connection(("127.0.0.1", running.port)),
    ):
        running.get("/livez")

        assert running.end() == 0


def refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=30, env=ENVIRON)
    return done.returncode, done.stderr


def test_an_address_in_use_is_told_in_one_line(sidecar: Served) -> None:
    assert refused("--log", "x.log", "--listen", f"127.0.0.1:{sidecar.port}") == (
        2,
        f"kvguard: --listen 127.0.0.1:{sidecar.port}: address already in use\n",
    )


def test_a_wrong_slo_file_is_told_in_one_line(tmp_path: Path) -> None:
    slo = tmp_path / "slo.yaml"
    slo.write_text("objectives: {min_concurency: 2.5}\n")

    assert refused("--log", "x.log", "--slo", str(slo)) == (
        2,
        f"kvguard: {slo}:1: objectives.min_concurency: no such key; did you mean min_concurrency?\n",
    )


@pytest.mark.parametrize("address", ["9400", "127.0.0.1", "127.0.0.1:99999", "::1:9400", "host:port"])
def test_an_address_that_is_none_is_told_in_one_line(address: str) -> None:
    status, said = refused("--log", "x.log", "--listen", address)

    assert (status, said.count("\n"), address in said) == (2, 1, True)


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    assert refused("--log", str(tmp_path)) == (2, f"kvguard: {tmp_path}: is a directory: name the log file in it\n")


def test_a_missing_token_file_is_told_in_one_line(tmp_path: Path) -> None:
    status, said = refused("--log", "x.log", "--token-file", str(tmp_path / "token"))

    assert (status, said.startswith(f"kvguard: {tmp_path}/token: no such file or directory")) == (2, True)


def test_a_rotated_token_counts_from_then_on(log: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    with served("--log", log, "--token-file", str(token)) as running:
        before = running.get("/metrics", Authorization="Bearer old").status
        token.write_text("new\n")
        while running.get("/metrics", Authorization="Bearer old").status == 200:
            pass  # it is read every second

        after = [running.get(path, Authorization="Bearer new").status for path in ("/metrics", "/readyz")]
        assert (before, after) == (200, [200, 200])


def test_prometheus_scrapes_it_and_a_query_gives_the_maximum_concurrency(sidecar: Served, tmp_path: Path) -> None:
    with prometheus(tmp_path, f"127.0.0.1:{sidecar.port}") as server:
        expected = [("fail", "0"), ("pass", "1"), ("unknown", "0")]
        assert query(server, "kvguard_max_concurrency") == [("0", "256")]
        assert sorted(query(server, "kvguard_verdict", "kvguard_verdict")) == expected


def test_a_restart_of_either_leaves_the_other_as_it_was(log: str, tmp_path: Path) -> None:
    target = f"127.0.0.1:{free_port()}"
    arguments = ("--log", log, "--listen", target)
    with contextlib.ExitStack() as both:
        with served(*arguments):
            server = both.enter_context(prometheus(tmp_path, target))  # it outlives the sidecar
            assert query(server, "up == 1", "instance") == [(target, "1")]
        assert query(server, "up == 0", "instance") == [(target, "0")]
        with served(*arguments):
            assert query(server, "up == 1", "instance") == [(target, "1")]
            assert query(server, "kvguard_starts_total", "instance") == [(target, "1")]
    with served(*arguments), prometheus(tmp_path, target) as server:
        assert query(server, "kvguard_starts_total", "instance") == [(target, "1")]
        assert query(server, "max_over_time(kvguard_gate_open[10m])", "instance") == [(target, "1")]


def prometheus(folder: Path, target: str) -> contextlib.AbstractContextManager[Prometheus]:
    """A real one that scrapes that address; what one in the same folder has stored is still there."""
    return scraping([Target("kvguard", {"instance": target}, address=target)], folder)


def query(server: Prometheus, expression: str, label: str = "engine") -> list[tuple[str, str]]:
    """The label and the value of each sample, once there are any."""
    server.wait_for(expression)
    return [(sample["metric"][label], sample["value"][1]) for sample in server.query(expression)]


def test_a_crowd_that_says_nothing_keeps_no_probe_out(log: str) -> None:
    with served("--log", log) as running, contextlib.ExitStack() as crowd:
        running.log_line(phase="ready")
        for _ in range(600):
            crowd.enter_context(socket.create_connection(("127.0.0.1", running.port)))

        assert running.get("/readyz").status == 200
        assert resident_mib(running.process.pid) < 96


def test_where_few_files_may_be_open_a_crowd_leaves_some_for_the_log(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_bytes(READY)
    limited = ("bash", "-c", 'ulimit -n 100; exec "$@"', "limited")
    with served("--log", str(log), through=limited) as running, contextlib.ExitStack() as crowd:
        for _ in range(300):
            crowd.enter_context(socket.create_connection(("127.0.0.1", running.port)))
        assert running.get("/metrics").status == 200
        log.rename(tmp_path / "vllm.log.1")
        log.write_bytes((RUNS / "vllm-0.32.0-cpu-toolong/server.log").read_bytes())

        assert running.log_line(phase="failed")["verdict"] == "fail"


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
