"""Every face's text over one log, as somebody would get it to see."""

import io
from collections.abc import Iterator, Mapping

from kvguard.cli.serve import line_of
from kvguard.guard import Guard
from kvguard.render.diff_formats import DIFF_RENDERERS
from kvguard.render.explanation import explanation_document, render_explanation
from kvguard.render.formats import RENDERERS, REPORT_RENDERERS
from kvguard.render.json_report import record_line, render_json
from kvguard.render.layout import Terminal
from kvguard.serve.evidence import termination_message
from kvguard.serve.state_changes import state_line
from kvguard.slo.baselines.baseline import baseline_of
from kvguard.slo.baselines.difference import difference
from kvguard.slo.objectives import Slo
from kvguard.trace import trace
from tests.serve.driven import Driven, slo

PLAIN = Terminal()
ASKED = slo(min_concurrency=99.0, expect_kv_cache_dtype="fp8")
OTHER = Guard()
OTHER.feed(b"GPU KV cache size: 5,000 tokens\n")
PAGES = ("/readyz?verbose", "/healthz", "/v1/report", "/metrics", "/")


def reports(log: bytes, source: str = "vllm.log", asked: Slo = ASKED) -> Iterator[tuple[str, str]]:
    """What the commands print that read a log once, by face."""
    guard = Guard(asked, source)
    guard.feed(log)
    guard.end()
    for form, draw in RENDERERS.items():
        yield f"check, {form}", draw(guard.verdict, PLAIN)
    for form, draw_report in REPORT_RENDERERS.items():
        yield f"inspect, {form}", draw_report(guard.verdict, PLAIN)
    yield "check, record", record_line(guard.verdict, "2026-11-29T00:00:00Z")
    traced = trace([log], source)
    yield "explain, text", render_explanation(traced, PLAIN)
    yield "explain, json", render_json(explanation_document(traced))
    if guard.report.start is not None:
        found = difference(baseline_of([guard.report]), baseline_of([OTHER.report]))
        for form, draw_diff in DIFF_RENDERERS.items():
            yield f"diff, {form}", draw_diff(found, PLAIN)


def served(log: bytes, asked: Slo = ASKED) -> Iterator[tuple[str, str]]:
    """What a sidecar tells: over HTTP, in its own log, and as the container's last words."""
    sidecar = Driven(asked).read(log)
    for path in PAGES:
        yield f"serve, {path}", sidecar.get(path).text
    yield "serve, termination message", termination_message(sidecar.snapshot.verdict).decode()
    yield "serve, state", line_of(state_line(sidecar.snapshot), 0.0)


def leaking(pages: Iterator[tuple[str, str]], secret: str) -> Mapping[str, str]:
    """The faces that a secret comes out of, each with the line that holds it."""
    found = {}
    for face, text in pages:
        line = next((line for line in io.StringIO(text) if secret.lower() in line.lower()), None)
        if line is not None:
            at = line.lower().index(secret.lower())
            found[face] = line[max(at - 60, 0) : at + 60]
    return found
