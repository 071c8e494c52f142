"""Run-time lines: the periodic stats of an engine, and V0's preemption warning."""

from kvguard.events import Preempted, StatsLogged
from kvguard.lines.line_format import NUMBER, LineFormat, Scope

THROUGHPUT = rf"Avg prompt throughput: {NUMBER} tokens/s, Avg generation throughput: {NUMBER} tokens/s, "
USAGE = rf"\w++(?: \+ host)? KV cache usage: (?P<kv_cache_usage_percent>{NUMBER})%"

ROWS: tuple[LineFormat, ...] = (
    LineFormat(
        name="stats-v0-first",
        literal=" KV cache usage: ",
        pattern=rf"Throughput: {NUMBER} tokens/s, Running: (?P<running>\d++) reqs, Swapped: \d++ reqs, Pending: (?P<waiting>\d++) reqs, GPU KV cache usage: (?P<kv_cache_usage_percent>{NUMBER})%, CPU KV cache usage: {NUMBER}%",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.1.0",),
        upstream="core/scheduler.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v0",
        literal=" KV cache usage: ",
        pattern=rf"{THROUGHPUT}Running: (?P<running>\d++) reqs, Swapped: \d++ reqs, Pending: (?P<waiting>\d++) reqs, GPU KV cache usage: (?P<kv_cache_usage_percent>{NUMBER})%, CPU KV cache usage: {NUMBER}%\.?",
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
        pattern=r"Running: (?P<running>\d++) reqs, Waiting: (?P<waiting>\d++) reqs ?",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.7.0",),
        upstream="v1/metrics/loggers.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v1-first",
        literal=" | WAITING: ",
        pattern=r"RUNNING: (?P<running>\d++) \| WAITING: (?P<waiting>\d++)",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.6.4-0.6.6.post1",),
        upstream="v1/engine/core.py",
        amends=True,
    ),
    LineFormat(
        name="stats-v1",
        literal=" KV cache usage: ",
        pattern=rf"(?:Engine (?P<engine>\d++): |\d++ Engines Aggregated: )?(?:{THROUGHPUT})?Running: (?P<running>\d++) reqs, Waiting: (?P<waiting>\d++) reqs,?(?: Deferred: \d++ reqs,)?(?: KV fetch: \d++ waiting to start, \d++ in progress, \d++ completed waiting,)?(?: Preemptions: (?P<preemptions>\d++),)? {USAGE}(?:\.|(?:, [A-Z][\w ]++: {NUMBER}(?:%| reqs))*+)",
        emits=(StatsLogged,),
        scope=Scope.ENGINE,
        versions=("0.7.1-0.33.0",),
        upstream="v1/metrics/loggers.py; optional parts by version, any device's name from 0.30.0",
        amends=True,
    ),
    LineFormat(
        name="stats-rust",
        literal=" KV cache used: ",
        pattern=rf"Avg prompt tput: {NUMBER} toks/s, Avg generation tput: {NUMBER} toks/s, Reqs Running: (?P<running>\d++), Waiting: (?P<waiting>\d++),(?: Deferred: \d++ reqs,)?(?: Preemptions: (?P<preemptions>\d++),)? \w++ KV cache used: (?P<kv_cache_usage_percent>{NUMBER})%(?:, [A-Z][\w ]++: {NUMBER}%)*+",
        emits=(StatsLogged,),
        scope=Scope.PROCESS,
        versions=("0.22.0-0.33.0",),
        upstream="the Rust front end (log_stats.rs), over all its engines",
        amends=True,
    ),
    LineFormat(
        name="stats-preempted",
        literal=" total_num_cumulative_preemption=",
        pattern=r"Sequence group \S++ is preempted by [\w.]++ mode because there is not enough KV cache space\. .*?total_num_cumulative_preemption=(?P<preemptions_total>\d++)",
        emits=(Preempted,),
        scope=Scope.ENGINE,
        versions=("0.4.3-0.10.2",),
        upstream="core/scheduler.py: the 1st, 51st, 101st … preemption",
        amends=True,
    ),
)
