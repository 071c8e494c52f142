"""Asking a vLLM: what it says, how seldom it is asked, and what a bad one cannot do."""

import gzip
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kvguard.errors import ConfigError
from kvguard.sources.vllm.answers import ServedModel
from kvguard.sources.vllm.witness import KEPT_S, LARGEST_BODY_BYTES, LARGEST_DOCUMENT_BYTES, VllmWitness

RUNS = Path(__file__).parents[3] / "fixtures" / "logs" / "runs"


class FakeVllm:
    """Answers as a recorded run did, or as its test says."""

    def __init__(self, run: str) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {
            "/health": (200, b""),
            "/metrics": (200, (RUNS / run / "metrics.txt").read_bytes()),
            "/version": (200, (RUNS / run / "version.json").read_bytes()),
            "/v1/models": (200, (RUNS / run / "models.json").read_bytes()),
        }
        self.headers: dict[str, str] = {}
        self.before_answer: Callable[[], None] = lambda: None
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.asked.append(self.path)
                fake.before_answer()
                status, body = fake.answers[self.path]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in fake.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients break off
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def vllm() -> Iterator[FakeVllm]:
    fake = FakeVllm("vllm-0.32.0-cpu-gemma3-hybrid")
    yield fake
    fake.stop()


@pytest.fixture
def witness(vllm: FakeVllm) -> Iterator[VllmWitness]:
    witness = VllmWitness(vllm.url)
    yield witness
    witness.close()


def test_everything_at_once(witness: VllmWitness) -> None:
    answer = witness.ask(5.0)
    assert answer is not None
    assert (answer.asked_at, answer.healthy, answer.version, answer.problems) == (5.0, True, "0.32.0", ())
    assert answer.models == (ServedModel("/models/tiny-gemma3", 32768, is_adapter=False),)
    assert answer.max_model_len == 32768
    assert answer.cache is not None
    assert answer.cache.kv_cache_tokens == 900790
    assert [load.engine for load in answer.loads] == ["0"]


def test_an_answer_is_kept_for_ten_seconds(vllm: FakeVllm, witness: VllmWitness) -> None:
    first = witness.ask(5.0)
    assert witness.ask(5.0 + KEPT_S - 0.1) is first
    assert len(vllm.asked) == 4
    assert witness.ask(5.0 + KEPT_S) is not first
    assert len(vllm.asked) == 8


def test_one_asks_at_a_time_and_the_others_are_not_kept_waiting(vllm: FakeVllm, witness: VllmWitness) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        asked.set()
        go_on.wait()

    vllm.before_answer = hold
    first = threading.Thread(target=witness.ask, args=(5.0,))
    first.start()
    asked.wait()
    assert witness.ask(5.0) is None
    assert vllm.asked == ["/health"]
    go_on.set()
    first.join()
    assert witness.ask(6.0) is not None


def test_nobody_there(vllm: FakeVllm, witness: VllmWitness) -> None:
    vllm.stop()
    answer = witness.ask(5.0)
    assert answer is not None
    assert (answer.gone, answer.healthy, answer.cache, len(answer.problems)) == (True, False, None, 1)
    assert answer.problems[0].startswith("/health: no answer (")


def test_a_server_that_is_not_healthy_is_still_asked(vllm: FakeVllm, witness: VllmWitness) -> None:
    vllm.answers["/health"] = (503, b"")
    answer = witness.ask(5.0)
    assert answer is not None
    assert (answer.healthy, answer.version, answer.problems) == (False, "0.32.0", ("/health: status 503",))


def test_an_api_key_hides_the_models_only(vllm: FakeVllm, witness: VllmWitness) -> None:
    vllm.answers["/v1/models"] = (401, b'{"error": "Unauthorized"}')
    answer = witness.ask(5.0)
    assert answer is not None
    assert (answer.models, answer.version) == ((), "0.32.0")
    assert answer.problems == ("/v1/models: status 401, it wants an API key",)


@pytest.mark.parametrize(
    "path, body",
    [
        ("/version", b"0.32.0"),
        ("/version", b"[]"),
        ("/v1/models", b'{"data": [{"max_model_len": 1}]}'),
        ("/v1/models", b'{"data": ["a"]}'),
        ("/metrics", b"vllm:num_requests_running{engine="),
    ],
)
def test_an_answer_of_something_else_is_noted(vllm: FakeVllm, witness: VllmWitness, path: str, body: bytes) -> None:
    vllm.answers[path] = (200, body)
    answer = witness.ask(5.0)
    assert answer is not None
    assert answer.problems == (f"{path}: not what vLLM answers there",)


def test_adapters_do_not_speak_for_the_model(vllm: FakeVllm, witness: VllmWitness) -> None:
    vllm.answers["/v1/models"] = (
        200,
        b'{"data": [{"id": "base", "max_model_len": 4096, "parent": null},'
        b' {"id": "lora", "max_model_len": 1, "parent": "base"}, {"id": "old"}]}',
    )
    answer = witness.ask(5.0)
    assert answer is not None
    assert [model.name for model in answer.models] == ["base", "lora", "old"]
    assert answer.max_model_len == 4096


def test_no_more_is_read_than_a_server_can_have_to_say(vllm: FakeVllm, witness: VllmWitness) -> None:
    vllm.answers["/metrics"] = (200, b"#" * (LARGEST_BODY_BYTES + 1))
    answer = witness.ask(5.0)
    assert answer is not None
    assert answer.cache is None
    assert answer.problems == ("/metrics: no answer (more than 16777216 bytes)",)


@pytest.mark.parametrize("path", ["/version", "/v1/models"])
def test_a_document_is_small(vllm: FakeVllm, witness: VllmWitness, path: str) -> None:
    vllm.answers[path] = (200, b"[" + b"[]," * LARGEST_DOCUMENT_BYTES + b"[]]")
    answer = witness.ask(5.0)
    assert answer is not None
    assert answer.problems == (f"{path}: no answer (more than 1048576 bytes)",)


def test_nothing_is_unpacked(vllm: FakeVllm, witness: VllmWitness) -> None:
    """A bomb: 64 KiB that hold 64 MiB."""
    vllm.answers["/metrics"] = (200, gzip.compress(b"#" * 2**26, mtime=0))
    vllm.headers["Content-Encoding"] = "gzip"
    tracemalloc.start()
    answer = witness.ask(5.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer is not None
    assert (answer.cache, answer.loads) == (None, ())
    assert peak < 8 * 2**20


@pytest.mark.parametrize("where", ["http://127.0.0.1:1/metrics", "file:///etc/passwd", "//127.0.0.1:1/"])
def test_it_is_followed_nowhere_else(vllm: FakeVllm, witness: VllmWitness, where: str) -> None:
    vllm.answers["/metrics"] = (302, b"")
    vllm.headers["Location"] = where
    answer = witness.ask(5.0)
    assert answer is not None
    assert answer.problems == ("/metrics: status 302",)


def test_a_proxy_of_the_environment_is_not_asked(vllm: FakeVllm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    witness = VllmWitness(vllm.url)
    answer = witness.ask(5.0)
    witness.close()
    assert answer is not None
    assert answer.problems == ()


def test_an_answer_that_trickles_is_given_up(vllm: FakeVllm) -> None:
    moments = iter(range(100))
    witness = VllmWitness(vllm.url, clock=lambda: float(next(moments)) * 3)
    vllm.answers["/health"] = (200, b"x")
    answer = witness.ask(5.0)
    assert answer is not None
    assert (answer.gone, answer.problems) == (False, ("/health: no answer (not whole after 2 s)",))
    witness.close()


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http:///metrics"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigError, match="write it as http"):
        VllmWitness(url)


def test_a_password_in_the_address_is_never_shown() -> None:
    witness = VllmWitness("http://user:secret@127.0.0.1:8000/")
    assert witness.name == "http://127.0.0.1:8000"
    witness.close()
