"""The logs that are read: a real start, then access and stats lines as vLLM prints them, for as long as it takes.

Recipe: the lines of a real start (`fixtures/logs/runs/vllm-0.32.0-cpu-{base,json,color}`) to the one that proves it
ready; then `ratio` access lines for each stats line, repeated; on demand another real start, in the middle or at the
end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUNS = Path(__file__).parent.parent / "fixtures" / "logs" / "runs"
KINDS = ("plain", "json", "cri", "coloured")
MIB = 2**20

READY = b"Application startup complete."
_ACCESS = '{tag}INFO:     10.0.{a}.{b}:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
_JSON_ACCESS = '10.0.{a}.{b}:{port} - \\"POST /v1/chat/completions HTTP/1.1\\" 200'
_STATS = (
    "Engine 000: Avg prompt throughput: {a}.{c} tokens/s, Avg generation throughput: {b}.{c} tokens/s, "
    "Running: {b} reqs, Waiting: {c} reqs, GPU KV cache usage: {b}.{c}%, Prefix cache hit rate: {a}.{c}%"
)
_RECORD = "{tag}INFO 11-30 {hour:02d}:{minute:02d}:{second:02d} [loggers.py:273] "


@dataclass(frozen=True)
class Recipe:
    """One log: the logging format, its size, how many access lines a stats line, and where a second start stands."""

    kind: str = "plain"
    size: int = 1024 * MIB
    ratio: int = 200
    restart: str = "none"
    """`none`, `middle` or `end`."""

    @property
    def name(self) -> str:
        """The file that holds it."""
        return f"{self.kind}-{self.size // MIB}m-1to{self.ratio}-{self.restart}.log"


def write(folder: Path, recipe: Recipe) -> Path:
    """Write the log where it is not there yet."""
    path = folder / recipe.name
    if not path.exists():
        partial = path.with_suffix(".part")
        with partial.open("wb") as file:
            for block in blocks(recipe):
                file.write(block)
        partial.rename(path)
    return path


def blocks(recipe: Recipe) -> Iterator[bytes]:
    """The log's content, without ever holding it."""
    served = _serving(recipe)
    rounds = max(1, recipe.size // len(served))
    yield start(recipe.kind)
    for done in range(rounds):
        if recipe.restart == "middle" and done == rounds // 2:
            yield start(recipe.kind, again=True)
        yield served
    if recipe.restart == "end":
        yield start(recipe.kind, again=True)


def until_ready(log: bytes, proof: bytes = READY) -> bytes:
    """A log up to and with the line that proves its first start ready."""
    head, mark, rest = log.partition(proof)
    return head + mark + rest.partition(b"\n")[0] + b"\n"


def start(kind: str, again: bool = False) -> bytes:
    """The lines of a real start up to the one that proves it ready; `again`: of another process."""
    run = {"json": "json", "coloured": "color"}.get(kind, "base")
    text = (RUNS / f"vllm-0.32.0-cpu-{run}" / "server.log").read_bytes()
    lines = until_ready(text, b"Available routes are:" if kind == "json" else READY)
    if again:
        lines = lines.replace(b"pid=", b"pid=9")
    return _framed(lines) if kind == "cri" else lines


def _serving(recipe: Recipe) -> bytes:
    """About four mebibytes of what a server prints, so that every block looks alike and none is cached by chance."""
    lines: list[str] = []
    written = 0
    while written < 4 * MIB:
        number = len(lines)
        lines.append(_line(recipe, number))
        written += len(lines[-1])
    text = "\n".join(lines).encode() + b"\n"
    return _framed(text) if recipe.kind == "cri" else text


def _line(recipe: Recipe, number: int) -> str:
    pid = _pid(recipe.kind)
    colours = ("\x1b[0;36m", "\x1b[0;0m") if recipe.kind == "coloured" else ("", "")
    tag = f"{colours[0]}(APIServer pid={pid}){colours[1]} "
    a, b, c = number % 251, number % 97, number % 10
    is_stats = number % (recipe.ratio + 1) == recipe.ratio
    if recipe.kind == "json":
        text = _STATS.format(a=a, b=b, c=c) if is_stats else _JSON_ACCESS.format(a=a, b=b, port=40000 + number % 9999)
        return f'{{"message": "{text}", "vllm_process_name": "APIServer"}}'
    if not is_stats:
        return _ACCESS.format(tag=tag, a=a, b=b, port=40000 + number % 9999)
    minute = number // (recipe.ratio + 1)
    record = _RECORD.format(tag=tag, hour=minute // 60 % 24, minute=minute % 60, second=number % 60)
    return record + _STATS.format(a=a, b=b, c=c)


def _pid(kind: str) -> str:
    return start(kind if kind != "cri" else "plain").partition(b"(APIServer pid=")[2].partition(b")")[0].decode()


def _framed(text: bytes) -> bytes:
    """As containerd keeps it: a stamp, the stream, and that the line is whole."""
    return b"".join(b"2026-11-30T08:02:21.417162534Z stdout F " + line + b"\n" for line in text.splitlines())
