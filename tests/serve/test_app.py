"""The HTTP face, asked without a socket: probes, report, page, and what nobody may do with them."""

import json
from base64 import b64encode
from types import SimpleNamespace

import pytest

from kvguard.render.json_report import verdict_document
from kvguard.serve.app import create_app
from kvguard.slo.objectives import Gate, GateMode
from kvguard.sources.source import State
from kvguard.sources.vllm.answers import VllmAnswer
from tests.serve.driven import LOADING, NOON, READY, RUNS, Driven, run, slo

PATHS = ("/livez", "/readyz", "/healthz", "/v1/report", "/metrics", "/")
GUARDED = ("/v1/report", "/metrics", "/")


@pytest.fixture(scope="module")
def passing() -> Driven:
    return Driven(slo(min_concurrency=2.5)).read(READY)


@pytest.fixture(scope="module")
def missing() -> Driven:
    return Driven(slo(min_concurrency=300)).read(READY)


@pytest.mark.parametrize("path", PATHS)
def test_everything_answers_from_the_first_moment(path: str) -> None:
    assert Driven().get(path).status == (503 if path in ("/readyz", "/healthz") else 200)


def test_a_pass_is_a_short_ok(passing: Driven) -> None:
    answer = passing.get("/readyz")

    assert (answer.status, answer.text, answer.headers["x-kvguard-verdict"]) == (200, "ok\n", "pass")


def test_a_miss_says_which_objective_and_why(missing: Driven) -> None:
    answer = missing.get("/readyz")

    assert (answer.status, answer.headers["x-kvguard-verdict"]) == (503, "fail")
    assert "[-]min_concurrency failed: maximum concurrency at 4,096 tokens is 256 requests" in answer.text
    assert answer.text.endswith("verdict: fail\nreadyz check failed\n")


def test_verbose_lists_every_check(passing: Driven) -> None:
    assert passing.get("/readyz?verbose").text == (
        "[?]source unknown: not looked at yet since 2025-11-29T07:06:40Z, last bytes 2025-11-29T07:06:40Z\n"
        "[+]start ok: start 1, ready\n"
        "[+]min_concurrency ok: maximum concurrency at 4,096 tokens is 256 requests, at least the 2.50 asked "
        "for\n"
        "verdict: pass\n"
        "readyz check passed\n"
    )


def test_a_start_under_way_says_what_is_waited_for() -> None:
    answer = Driven(slo(min_concurrency=2.5)).read(LOADING).get("/readyz")

    assert answer.status == 503
    assert "[?]capacity-not-reported unknown: memory is still being profiled where the log ends" in answer.text
    assert "do this" not in answer.text


def test_a_log_that_is_not_there_yet_is_neither_fine_nor_a_failure() -> None:
    answer = Driven().change(State.WAITING, "vllm.log does not exist yet: waiting for it").get("/readyz")

    assert answer.text.startswith("[?]source unknown: vllm.log does not exist yet: waiting for it")
    assert "[?]empty-log unknown: no line of the log has been read yet\n" in answer.text


def test_the_page_does_not_call_a_log_empty_that_is_not_there_yet() -> None:
    page = Driven().turn().get("/").text

    assert "No line of the log has been read yet." in page
    assert "Do this" not in page


@pytest.mark.parametrize("log, mark", [(LOADING, "[?]vllm-endpoint unknown"), (READY, "[-]vllm-endpoint failed")])
def test_a_server_that_starts_does_not_answer_yet(log: bytes, mark: str) -> None:
    silent = VllmAnswer(asked_at=100.0, problems=("/health: no answer",))
    driven = Driven(witness=SimpleNamespace(name="http://vllm", answer=silent)).read(log)

    assert f"{mark}: /health: no answer\n" in driven.get("/readyz?verbose").text


def test_a_refused_start_says_what_would_help() -> None:
    answer = run("vllm-0.32.0-cpu-toolong").get("/readyz")

    assert answer.status == 503
    assert "[-]start-failed failed: the start failed: a context of" in answer.text
    assert "do this: " in answer.text


def test_observing_answers_200_and_tells_the_verdict() -> None:
    answer = Driven(slo(Gate(mode=GateMode.OBSERVE), min_concurrency=300)).read(READY).get("/readyz")

    assert (answer.status, answer.headers["x-kvguard-verdict"]) == (200, "fail")


def test_a_failing_source_is_told_and_does_not_close_the_gate(passing: Driven) -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY).change(State.FAILING, "vllm.log: permission denied")

    assert driven.get("/readyz").status == 200
    assert "[-]source failed: vllm.log: permission denied" in driven.get("/readyz?verbose").text


@pytest.mark.parametrize(
    "gate, target, status, health",
    [(Gate(), 2.5, 200, "pass"), (Gate(), 300, 503, "fail"), (Gate(mode=GateMode.OBSERVE), 300, 200, "warn")],
)
def test_healthz_is_a_health_document_with_the_status_of_readyz(
    gate: Gate, target: float, status: int, health: str
) -> None:
    answer = Driven(slo(gate, min_concurrency=target)).read(READY).get("/healthz")
    document = json.loads(answer.body)

    assert (answer.status, document["status"]) == (status, health)
    assert answer.headers["content-type"] == "application/health+json"
    assert document["checks"]["min_concurrency"][0]["observedValue"] == 256.0


def test_livez_speaks_of_the_reader_and_of_nothing_else(missing: Driven) -> None:
    assert missing.get("/livez").status == 200

    dead = Driven()
    dead.alive = False

    assert dead.get("/livez").status == 503


@pytest.mark.parametrize("name", sorted(folder.name for folder in RUNS.iterdir()))
def test_the_report_is_that_of_check(name: str) -> None:
    driven = run(name)
    document = json.loads(driven.get("/v1/report").body)

    expected = json.loads(json.dumps(verdict_document(driven.snapshot.verdict)))
    assert {key: document[key] for key in expected} == expected


def test_the_report_tells_gate_and_source(missing: Driven) -> None:
    document = json.loads(missing.get("/v1/report").body)

    assert document["gate"] == {"open": False, "why": None, "mode": "enforce", "on_unknown": "block", "recheck": False}
    assert document["source"]["last_bytes"] == "2025-11-29T07:06:40Z"


def test_the_page_is_not_sent_again_while_nothing_has_changed() -> None:
    driven = Driven().read(LOADING)
    tag = driven.get("/").headers["etag"]

    same = driven.get("/", if_none_match=tag)
    changed = driven.read(READY[len(LOADING) :]).get("/", if_none_match=tag)

    assert (same.status, same.body, changed.status) == (304, b"", 200)


def test_the_page_of_a_busy_log_is_as_fresh_as_ten_seconds() -> None:
    access = b'(APIServer pid=14455) INFO:     192.0.2.1:50000 - "GET /health HTTP/1.1" 200 OK\n'
    driven = Driven().read(READY)
    tag = driven.get("/").headers["etag"]

    driven.now += 30.0
    driven.read(access)

    assert driven.get("/", if_none_match=tag).status == 200
    assert "last bytes 2025-11-29T07:07:10Z" in driven.get("/").text


def test_the_page_of_an_earlier_process_is_sent_anew() -> None:
    driven = Driven().read(READY)
    tag = driven.get("/").headers["etag"]

    later = create_app(driven, lambda: NOON + 3600)

    assert tag != later
    driven._wall = lambda: NOON + 3600
    del driven.app
    assert driven.get("/", if_none_match=tag).status == 200


@pytest.mark.parametrize("path", [*PATHS, "/nowhere"])
def test_every_answer_is_sealed(path: str, passing: Driven) -> None:
    headers = passing.get(path).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.mark.parametrize(
    "path", ["/docs", "/redoc", "/openapi.json", "/livez/", "/readyz/", "//readyz", "/../readyz", "/v1", "/v1/report/"]
)
def test_nothing_else_is_there_and_nothing_redirects(path: str, passing: Driven) -> None:
    assert passing.get(path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", PATHS)
def test_no_method_but_get_and_head(path: str, method: str, passing: Driven) -> None:
    assert passing.get(path, method).status == 405


@pytest.mark.parametrize("path", PATHS)
def test_head_answers_as_get(path: str, passing: Driven) -> None:
    assert passing.get(path, "HEAD").status == 200


def test_no_request_changes_anything(passing: Driven) -> None:
    before = passing.snapshot

    for path in PATHS:
        passing.get(path, "POST")
        passing.get(f"{path}?verbose=1&exclude=source")

    assert passing.snapshot is before


@pytest.fixture(scope="module")
def guarded() -> Driven:
    return Driven(token=lambda: "s3cret").read(READY)


def basic(password: str) -> str:
    return "Basic " + b64encode(f"anyone:{password}".encode()).decode()


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(
    "given", ["", "Bearer wrong", "Bearer ", "Basic !!!", basic("wrong"), "s3cret", "Bearer s3cre"]
)
def test_without_the_token_nothing_is_told(path: str, given: str, guarded: Driven) -> None:
    answer = guarded.get(path, **({"authorization": given} if given else {}))

    assert (answer.status, answer.text) == (401, "a token is needed here\n")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize("given", ["Bearer s3cret", "bearer s3cret", basic("s3cret")])
def test_the_token_opens_as_a_scraper_or_a_browser_sends_it(path: str, given: str, guarded: Driven) -> None:
    assert guarded.get(path, authorization=given).status == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_probes_need_no_token(path: str, guarded: Driven) -> None:
    assert guarded.get(path).status == 200


def test_the_framework_describes_every_view(passing: Driven) -> None:
    schema = create_app(passing, lambda: NOON).openapi()

    assert set(schema["paths"]) == set(GUARDED)
