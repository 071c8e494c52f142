"""`kvguard baseline`: keep a start's capacity, memory and options as a small file to hold later starts against."""

import argparse
from pathlib import Path

from kvguard.cli import exit_status


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the logs and where the file goes."""
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="a vLLM log (.gz and .zst as they are), - for stdin; several starts of one deployment give their spread",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the baseline goes (default: stdout)")


def run(arguments: argparse.Namespace) -> int:
    """Write the baseline; of a start that failed, or that has told no capacity, nothing is written."""
    from kvguard.cli.output import keep_what_is_read, write_file
    from kvguard.cli.standard_streams import put, say
    from kvguard.lines.secrets import mask_deep
    from kvguard.render.json_report import render_json
    from kvguard.render.log_text import shown
    from kvguard.render.start_facts import log_name
    from kvguard.slo.baselines.baseline import baseline_of
    from kvguard.slo.baselines.document import document_of
    from kvguard.slo.evaluate import evaluate
    from kvguard.slo.objectives import DEFAULT_SEVERITIES, Severity, Slo
    from kvguard.slo.verdict import Outcome
    from kvguard.sources.documents import read_log

    keep_what_is_read(arguments.output, arguments)
    # a warning bears on what is asked, not on what is kept; but nothing is kept of a start without room
    judged = Slo(severities=dict.fromkeys(DEFAULT_SEVERITIES.keys() - {"no-kv-cache-memory"}, Severity.NOTE))
    reports = [read_log(name) for name in arguments.logs]
    for name, report in zip(arguments.logs, reports, strict=True):
        verdict = evaluate(report, judged)
        if verdict.outcome is not Outcome.PASS:
            say(f"kvguard: {log_name(name)}: {shown(verdict.reasons[0].message)}: no baseline is written")
            return exit_status.MISSED if verdict.outcome is Outcome.FAIL else exit_status.UNKNOWN
    document = mask_deep(document_of(baseline_of(reports)))
    if arguments.output is None:
        put(render_json(document))
    else:
        write_file(arguments.output, render_json(document))
    return exit_status.MET
