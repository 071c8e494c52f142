"""No secret comes out again: whatever its form, wherever it stood in the log, through whichever face."""

from pathlib import Path

import pytest

from kvguard.cli import main
from tests.attacks.faces import leaking, reports, served
from tests.attacks.secrets_in_logs import CANARY, FORMS, PLACES
from tests.attacks.strangers import CARRIERS, pid_of, until_ready


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_of_a_log_comes_out(place: str) -> None:
    for number, (form, text) in enumerate(FORMS.items()):
        log = "".join(f"{line}\n" for line in PLACES[place](text)).encode()

        assert leaking(reports(log), CANARY) == {}, form
        if number % len(PLACES) == list(PLACES).index(place):
            assert leaking(served(log), CANARY) == {}, form


@pytest.mark.parametrize("carrier", CARRIERS)
def test_no_prompt_comes_out(carrier: str) -> None:
    """A prompt has no form to know it by: what a client writes is not repeated at all."""
    ready = until_ready("vllm-0.32.0-cpu-base")
    prompts = (f"KV cache size 5 tokens {CANARY}", f"ValueError: {CANARY}", f"GPU KV cache size: 5 tokens {CANARY}")
    written = "".join(f"{CARRIERS[carrier](pid_of(ready), prompt)}\n" for prompt in prompts)
    log = ready + written.encode()

    assert leaking(reports(log), CANARY) == {}
    assert leaking(served(log), CANARY) == {}


WORDS_OF_COMMANDS = (
    "check {log} --min-concurrency 2",
    "check {log} {log} --format json",
    "check {log} --format github",
    "check {log} --format junit",
    "check {log} --format html",
    "check {log} --record {record}",
    "check {log} --min-concurrency {secret}",
    "check {log} --expect-kv-cache-dtype {secret}",
    "check {log} --api-key {secret}",
    "check {log} --baseline {folder}/missing",
    "check {log} --baseline prometheus:{server}?namespace=x",
    "check {log} --baseline prometheus:{query}",
    "check {log} --baseline prometheus:{server}?range={secret}",
    "check {log} --model-config {folder}",
    "check {log} --formats {folder}/missing",
    "check {log} --slo {slo}",
    "check {log} --slo {folder}/missing",
    "check {log} --warnings {secret}=fail",
    "check {log} --until ready --timeout 1s",
    "check {log}.missing",
    "check {folder}",
    "check {server}/log",
    "check {log} --output {folder}/none/report",
    "inspect {log}",
    "explain {log}",
    "explain {log} --format json",
    "baseline {log}",
    "baseline {failed}",
    "diff {log} {failed}",
    "diff {log} {server}",
    "diff {log} prometheus:{server}?namespace={secret}",
    "fleet --prometheus {server}",
    "fleet --prometheus {server} --selector {secret}",
    "fleet --prometheus {server} --token-file {folder}/none",
    "history {record}",
    "history {log}",
    "history {folder}/none",
    "slo check {slo}",
    "slo check {folder}/none",
    "plan {secret}",
    "plan {folder}/none --gpu-memory 24GiB",
    "plan llama-3.1-8b --gpu-memory {secret}",
    "plan llama-3.1-8b --kv-cache-dtype {secret}",
    "plan llama-3.1-8b --log {log} --format json",
    "formats {secret}",
    "serve --log pod:{secret}/x/y",
    "serve --log {log} --listen {secret}",
    "serve --log {log} --vllm-url {server}/x?{secret} --listen 127.0.0.1:x",
    "serve --log {log} --token-file {folder}/none",
    "serve --log {log} --slo {slo}",
    "run --until ready --timeout 5s -- true --api-key {secret}",
    "run --until ready --timeout 5s --format json -- true --api-key {secret}",
    "run -- {folder}/none serve --api-key {secret}",
    "run -- false --api-key {secret}",
    "{secret}",
)
"""Command lines of every command, with a secret in the file, in its name, in a URL, or mistyped into a flag."""


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / f"token={CANARY}"
    folder.mkdir()
    files = {"log": "unknown wording", "failed": "failure"}
    for name, place in files.items():
        lines = [line for text in FORMS.values() for line in PLACES[place](text)]
        (folder / f"{name}.log").write_text("\n".join(lines))
    (folder / "slo.yaml").write_text(
        f"objectives: {{min_concurrency: hf_{CANARY}, hf_{CANARY}: 1}}\nregression: {{baseline: hf_{CANARY}.json}}\n"
    )
    return {
        "folder": str(folder),
        "log": str(folder / "log.log"),
        "failed": str(folder / "failed.log"),
        "slo": str(folder / "slo.yaml"),
        "record": str(folder / "record"),
        "server": f"http://bob:{CANARY}@127.0.0.1:9",
        "query": f"http://127.0.0.1:9?token={CANARY}",
        "secret": f"hf_{CANARY}",
    }


def test_no_command_tells_a_secret(words: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    leaks = {}
    for line in WORDS_OF_COMMANDS:
        status = main([word.format(**words) for word in line.split()])
        told = capfd.readouterr()
        leaks |= leaking(iter([(f"{line}: {status}", told.out + told.err)]), CANARY)

    assert leaks == {}
    assert CANARY not in Path(words["record"]).read_text()
