"""Run-time lines: the periodic stats of an engine, and V0's preemption warning."""

from kvguard.events import Preempted, StatsLogged
from kvguard.lines.line_format import COUNT, NUMBER, LineFormat, Scope, up_to

THROUGHPUT = rf"Avg prompt throughput: {NUMBER} tokens/s, Avg generation throughput: {NUMBER} tokens/s, "
V0_LOAD = (
    rf"Running: (?P<running>{COUNT}) reqs, Swapped: {COUNT} reqs, Pending: (?P<waiting>{COUNT}) reqs, "
    rf"GPU KV cache usage: (?P<kv_cache_usage_percent>{NUMBER})%, CPU KV cache usage: {NUMBER}%"
)
WHOSE = rf"(?:Engine (?P<engine>{COUNT}): |{COUNT} Engines Aggregated: )?"
USAGE = rf"\w++(?: \+ host)? KV cache usage: (?P<kv_cache_usage_percent>{NUMBER})%"

ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="stats-v0-first",
        literal=" KV cache usage: ",
        pattern=rf"Throughput: {NUMBER} tokens/s, {V0_LOAD}",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.1.0",),
        upstream="core/scheduler.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v0",
        literal=" KV cache usage: ",
        pattern=rf"{THROUGHPUT}{V0_LOAD}\.?+",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.1.7-0.10.2",),
        upstream="engine/llm_engine.py, engine/metrics.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v0-prefix-cache",
        literal="Prefix cache hit rate: GPU: ",
        pattern=rf"Prefix cache hit rate: GPU: {NUMBER}%, CPU: {NUMBER}%",
        emits=(),
        scope=Scope.ENGINE,
        versions=("0.5.5-0.10.2",),
        upstream="engine/metrics.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v1-counts",
        literal="unning: ",
        pattern=rf"Running: (?P<running>{COUNT}) reqs, Waiting: (?P<waiting>{COUNT}) reqs ?+",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.7.0",),
        upstream="v1/metrics/loggers.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v1-first",
        literal=" | WAITING: ",
        pattern=rf"RUNNING: (?P<running>{COUNT}) \| WAITING: (?P<waiting>{COUNT})",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.6.4-0.6.6.post1",),
        upstream="v1/engine/core.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v1",
        literal=" KV cache usage: ",
        pattern=rf"{WHOSE}(?:{THROUGHPUT})?Running: (?P<running>{COUNT}) reqs, Waiting: (?P<waiting>{COUNT}) reqs,?+"
        rf"(?: Deferred: {COUNT} reqs,)?(?: KV fetch: {COUNT} waiting to start, {COUNT} in progress, {COUNT} completed "
        rf"waiting,)?(?: Preemptions: (?P<preemptions>{COUNT}),)? {USAGE}"
        rf"(?:\.|(?:, [A-Z][\w ]++: {NUMBER}(?:%| reqs))*+)",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.7.1-0.33.0",),
        upstream="v1/metrics/loggers.py; optional parts by version, any device's name from 0.30.0",
        amends=True,
    ),
    LineFormat(
        name="stats-iteration",
        literal=" iteration elapsed time: ",
        pattern=rf"{WHOSE}Iteration\({COUNT}\): {COUNT} context requests, {COUNT} context tokens, {COUNT} generation requests, "
        rf"{COUNT} generation tokens, iteration elapsed time: {NUMBER} ms(?: \(dummy\))?, {USAGE}(?:, encoder inputs: .++)?",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.26.0-0.33.0",),
        upstream="v1/metrics/loggers.py, with iteration details logged",
        amends=True,
    ),
    LineFormat(
        name="stats-rust",
        literal=" KV cache used: ",
        pattern=rf"Avg prompt tput: {NUMBER} toks/s, Avg generation tput: {NUMBER} toks/s, Reqs Running: (?P<running>{COUNT}), "
        rf"Waiting: (?P<waiting>{COUNT}),(?: Deferred: {COUNT} reqs,)?(?: Preemptions: (?P<preemptions>{COUNT}),)? \w++ KV "
        rf"cache used: (?P<kv_cache_usage_percent>{NUMBER})%(?:, [A-Z][\w ]++: {NUMBER}%)*+",
        emits=(StatsLogged,),
        scope=Scope.PROCESS,
        versions=("0.22.0-0.33.0",),
        upstream="the Rust front end (log_stats.rs), over all its engines",
        amends=True,
    ),
    LineFormat(
        name="stats-preempted",
        literal=" total_num_cumulative_preemption=",
        pattern=r"Sequence group \S++ is preempted by [\w.]++ mode because there is not enough KV cache space\. "
        rf"{up_to('total_num_cumulative_preemption=')}(?P<preemptions_total>{COUNT})",
        emits=(Preempted,),
        scope=Scope.ENGINE,
        versions=("0.4.3-0.10.2",),
        upstream="core/scheduler.py: the 1st, 51st, 101st … preemption",
        amends=True,
    ),
    LineFormat(
        name="stats-request-failed",
        literal="not enough kv cache blocks to run the entire sequence",
        pattern=r"Failing the request \S++ because there's not enough kv cache blocks to run the entire sequence\.",
        emits=(),
        scope=Scope.ENGINE,
        versions=("0.4.0.post1-0.10.2",),
        upstream="core/scheduler.py: one request is refused, the server goes on",
    ),
)
