"""The metrics of kvguard itself: how its reading goes, and which SLO file is in force."""

from collections.abc import Callable, Iterable

from kvguard.serve.metric_row import Kind, MetricRow, Sample, Value, one, state_set
from kvguard.serve.snapshot import Snapshot
from kvguard.sources.source import State
from kvguard.version import __version__


def _slo_file(pick: Callable[[Snapshot], Value]) -> Callable[[Snapshot], Iterable[Sample]]:
    return lambda snapshot: [] if snapshot.slo.path is None else one(pick(snapshot))


OWN_METRIC_ROWS: tuple[MetricRow, ...] = (
    MetricRow(
        "log_bytes",
        Kind.COUNTER,
        "Bytes of the log that were read.",
        lambda snapshot: one(snapshot.source.bytes_read),
    ),
    MetricRow(
        "log_unread_bytes",
        Kind.GAUGE,
        "Bytes of the log that are there and were not read yet; absent where nobody can tell (a pipe, a pod's log).",
        lambda snapshot: one(snapshot.source.unread),
    ),
    MetricRow(
        "log_lines",
        Kind.COUNTER,
        "Lines of the log that were read.",
        lambda snapshot: one(snapshot.verdict.report.counts.lines),
    ),
    MetricRow(
        "log_lines_matched",
        Kind.COUNTER,
        "Lines that told something, in a wording that kvguard knows.",
        lambda snapshot: one(snapshot.verdict.report.counts.matched),
    ),
    MetricRow(
        "log_lines_unrecognized",
        Kind.COUNTER,
        "Lines that look like capacity in a wording that kvguard does not know: any is worth a look.",
        lambda snapshot: one(snapshot.verdict.report.counts.unrecognized),
    ),
    MetricRow(
        "log_rotations",
        Kind.COUNTER,
        "Times that another file stood under the log's name, or another container or writer wrote it.",
        lambda snapshot: one(snapshot.source.rotations),
    ),
    MetricRow(
        "log_truncations",
        Kind.COUNTER,
        "Times that the log began anew in the same file.",
        lambda snapshot: one(snapshot.source.truncations),
    ),
    MetricRow(
        "log_read_errors",
        Kind.COUNTER,
        "Failed tries to read the log; one that does not exist yet is none.",
        lambda snapshot: one(snapshot.source.read_errors),
    ),
    MetricRow(
        "log_last_read_timestamp_seconds",
        Kind.GAUGE,
        "When the log was last read without an error, whether or not it had grown, in seconds since 1970.",
        lambda snapshot: one(snapshot.looked_at),
    ),
    MetricRow(
        "log_source_state",
        Kind.STATE_SET,
        "What the source of the log is doing: exactly one state is 1.",
        lambda snapshot: state_set(State, snapshot.source.state),
    ),
    MetricRow(
        "log_source_since_timestamp_seconds",
        Kind.GAUGE,
        "When the source of the log entered its state, in seconds since 1970.",
        lambda snapshot: one(snapshot.source_since),
    ),
    MetricRow(
        "slo_reload_successful",
        Kind.GAUGE,
        "1 if the SLO file on disk is the one in force, 0 if its last edit was refused; absent without an SLO file.",
        _slo_file(lambda snapshot: snapshot.slo.problem is None),
    ),
    MetricRow(
        "slo_reload_success_timestamp_seconds",
        Kind.GAUGE,
        "When the SLO file in force was read, in seconds since 1970; absent without an SLO file.",
        _slo_file(lambda snapshot: snapshot.slo.loaded_at),
    ),
    MetricRow(
        "slo_reload_failures",
        Kind.COUNTER,
        "Edits of the SLO file that were refused; absent without an SLO file.",
        _slo_file(lambda snapshot: snapshot.slo.failures),
    ),
    MetricRow(
        "build",
        Kind.INFO,
        "Version of kvguard.",
        lambda snapshot: [((), {"version": __version__})],
    ),
)
