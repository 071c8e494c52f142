"""vLLM's logging configuration and the pod of `helm test`, run against what they are for."""

import json
import logging
import logging.config
import subprocess
import sys

import pytest

from kvguard.guard import Guard
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Outcome
from tests.helm.conftest import CHART
from tests.serve.driven import READY
from tests.serve.process import served

CONFIG = CHART / "kustomize/logging/logging.json"


@pytest.fixture
def configured(tmp_path):
    """The configuration in force, with a formatter that needs no vLLM and a file of the test's."""
    text = CONFIG.read_text().replace("vllm.logging_utils.NewLineFormatter", "logging.Formatter")
    log = tmp_path / "vllm.log"
    logging.config.dictConfig(json.loads(text.replace("/var/log/vllm/vllm.log", str(log))))
    logger = logging.getLogger("vllm")
    yield logger, log
    for handler in list(logger.handlers):
        handler.close()
        logger.removeHandler(handler)
    logger.propagate = True


def test_what_the_logging_configuration_writes_is_read_back(configured):
    logger, log = configured
    line = "GPU KV cache size: 58,976 tokens, Maximum concurrency for 16,384 tokens per request: 3.60x"
    logger.getChild("v1.core.kv_cache_utils").info(line)
    guard = Guard(Slo(), "vllm.log")
    guard.feed(log.read_bytes())
    guard.end()
    capacity = guard.verdict.report.start.capacity.weakest
    assert (capacity.kv_cache_tokens, capacity.max_concurrency) == (58976, 3.6)


def test_the_file_rotates_before_it_can_fill_the_volume(configured):
    logger, log = configured
    (handler,) = [one for one in logger.handlers if hasattr(one, "maxBytes")]
    handler.maxBytes = 1000
    for number in range(100):
        logger.info("a line that says nothing, %d", number)
    assert log.stat().st_size <= 1000
    assert sorted(path.name for path in log.parent.iterdir()) == ["vllm.log", "vllm.log.1"]


def ask(port, environment=None):
    """The script of the test pod, as its container runs it."""
    script = (CHART / "files/ask-report.py").read_text()
    address = f"http://127.0.0.1:{port}/v1/report"
    return subprocess.run(
        [sys.executable, "-c", script, address], capture_output=True, text=True, env=environment or {}, check=False
    )


@pytest.mark.parametrize("bound,outcome", [("2.5", Outcome.PASS), ("1000", Outcome.FAIL)])
def test_the_test_pod_says_the_verdict_whatever_it_is(tmp_path, bound, outcome):
    (tmp_path / "vllm.log").write_bytes(READY)
    with served("--log", str(tmp_path / "vllm.log"), "--min-concurrency", bound) as sidecar:
        sidecar.log_line(phase="ready")
        answer = ask(sidecar.port)
    assert answer.returncode == 0
    assert answer.stdout.startswith(f"verdict: {outcome}\n- ")


def test_the_test_pod_shows_its_token_and_fails_without(tmp_path):
    (tmp_path / "token").write_text("s3cret")
    with served("--log", str(tmp_path / "vllm.log"), "--token-file", str(tmp_path / "token")) as sidecar:
        assert ask(sidecar.port, {"KVGUARD_TOKEN": "s3cret"}).returncode == 0
        assert ask(sidecar.port).returncode != 0
