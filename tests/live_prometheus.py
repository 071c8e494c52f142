"""A real Prometheus on loopback that scrapes pages of metrics held by the test."""

import contextlib
import http.server
import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Target:
    """One scraped process: its job, the labels that service discovery gives it, and what it exposes or where it is."""

    job: str
    labels: Mapping[str, str]
    page: str = ""
    address: str | None = None
    """Of a process that answers on /metrics itself; else the test serves `page`."""


@dataclass(frozen=True)
class Prometheus:
    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector."""
        asked = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    def wait_for(self, expression: str, count: int = 1) -> None:
        """Until a query has that many series."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.query(expression)) < count:
            assert time.monotonic() < deadline, f"Prometheus never had {count} of {expression}"
            time.sleep(0.05)


@contextlib.contextmanager
def scraping(targets: Sequence[Target], folder: Path, rules: Sequence[Path] = ()) -> Iterator[Prometheus]:
    """A Prometheus that has scraped all targets at least once."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.fail("prometheus is missing: apt-get install prometheus")
    with serving([target.page for target in targets]) as port:
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump(_config(targets, port, rules)))
        address = f"127.0.0.1:{free_port()}"
        command = [
            binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address={address}",
        ]
        with (folder / "prometheus.log").open("w") as log:
            process = subprocess.Popen([*command, "--log.level=warn"], stdout=log, stderr=log)
        try:
            server = Prometheus(f"http://{address}")
            _wait_until_it_answers(server, process, folder)
            server.wait_for("up == 1", len(targets))
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)


def _config(targets: Sequence[Target], port: int, rules: Sequence[Path]) -> dict[str, Any]:
    jobs: dict[str, list[dict[str, Any]]] = {}
    for number, target in enumerate(targets):
        path, address = ("/metrics", target.address) if target.address else (f"/{number}", f"127.0.0.1:{port}")
        labels = {"__metrics_path__": path, "instance": f"10.0.0.{number}:9400", **target.labels}
        jobs.setdefault(target.job, []).append({"targets": [address], "labels": labels})
    return {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(rule.absolute()) for rule in rules],
        "scrape_configs": [{"job_name": job, "static_configs": configs} for job, configs in jobs.items()],
    }


def _wait_until_it_answers(server: Prometheus, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            server.query("up")
            return
        except OSError:
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)


@contextlib.contextmanager
def serving(pages: Sequence[str]) -> Iterator[int]:
    """Page n at /n on loopback; the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = self.path.strip("/")
            known = number.isdigit() and int(number) < len(pages)
            body = pages[int(number)].encode() if known else b"not here"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a Prometheus that ends breaks off
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
