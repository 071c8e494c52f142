"""What stands below the options in a command's `--help`: how it is called, and what its exit status means."""

from collections.abc import Mapping
from types import MappingProxyType

_OF_A_VERDICT = (
    "0 every objective is met, 1 one is missed or the start failed, 2 usage or unreadable\n"
    "input, 3 the log does not say enough or the time ran out"
)
_SHOWN = "0 shown, whatever the log says, 2 usage or unreadable input"

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "check": (
            "kvguard check vllm.log --min-concurrency 2.5",
            "kubectl logs deploy/vllm | kvguard check - --slo slo.yaml",
            "kvguard check vllm.log --until ready --timeout 15m --min-concurrency 2.5",
            "kvguard check vllm.log --model-config llama-3.1-8b --prompt-tokens 7500 \\\n"
            "    --output-tokens 1000 --concurrent-requests 20",
        ),
        "plan": (
            "kvguard plan llama-3.1-8b --gpu-memory 24GiB --max-model-len 16384",
            "kvguard plan ./model --from-log vllm.log --kv-cache-dtype fp8 --min-concurrency 2.5",
        ),
        "diff": ("kvguard diff old.log new.log", "kvguard diff baseline.json new.log --format markdown"),
        "inspect": ("kvguard inspect vllm.log", "kvguard inspect vllm.log --format html=start.html"),
        "run": ("kvguard run --until ready --timeout 15m --min-concurrency 2.5 -- vllm serve MODEL",),
        "serve": ("kvguard serve --log /var/log/vllm/vllm.log --slo /etc/kvguard/slo.yaml",),
        "baseline": (
            "kvguard baseline good.log -o baseline.json",
            "kvguard check new.log --baseline baseline.json --max-drop 5%",
        ),
        "explain": ("kvguard explain vllm.log",),
        "slo": ("kvguard slo check slo.yaml", "kvguard slo schema > slo.schema.json"),
        "history": (
            "kvguard check vllm.log --min-concurrency 2.5 --record checks.jsonl",
            "kvguard history checks.jsonl",
        ),
        "fleet": ("kvguard fleet --prometheus http://prometheus:9090 --selector 'namespace=\"llm\"'",),
        "formats": ("kvguard formats --versions",),
    }
)
"""Command lines of each command, as they are typed."""

STATUSES: Mapping[str, str] = MappingProxyType(
    {
        "check": _OF_A_VERDICT,
        "plan": (
            "0 it would start and meets the target, 1 it would not or misses it, 2 usage or an unknown\n"
            "config, 3 the estimates leave it open"
        ),
        "diff": "0 shown, 1 with --exit-code where anything differs, 2 usage, 3 nothing can be compared",
        "inspect": _SHOWN,
        "run": f"without --until the command's own; with --until:\n{_OF_A_VERDICT}",
        "serve": "0 after SIGTERM, 2 usage, a bad SLO file or an address in use",
        "baseline": "0 written, 1 the start failed, 2 usage or unreadable input, 3 its capacity is unknown",
        "explain": _SHOWN,
        "slo": "0 fine, 1 a file is wrong, 2 usage or unreadable input",
        "history": "0 shown, 1 a line of the file is no record, 2 usage or unreadable input",
        "fleet": "0 every replica is fine, 1 one fails, 2 usage or no answer, 3 one is unknown",
        "formats": "0 shown, 2 usage",
    }
)
"""What the exit status of each command means."""


def below_options(command: str) -> str:
    """The end of the command's page of help."""
    examples = "\n".join(f"  {line}".replace("\n", "\n  ") for line in EXAMPLES[command])
    status = STATUSES[command].replace("\n", "\n  ")
    return f"examples:\n{examples}\n\nexit status:\n  {status}"
