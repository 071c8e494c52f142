"""Whatever a command writes goes through byte for byte, and hides no start that stands behind it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.programs import ENVIRON, command, ran, start_of_vllm

ODD = {
    "nothing": b"",
    "NUL bytes": b"before\0\0after\0\n" + bytes(5000),
    "no UTF-8": b"Caf\xe9 \xff\xfe\xc3\x28 \xe2\x82 \xf0\x9f\x92\n\x80",
    "every byte": bytes(range(256)) * 40,
    "a progress bar": b"".join(b"\rLoading safetensors: %3d%%|%s" % (n, b"#" * n) for n in range(101)),
    "colours": b"\x1b[1;32mINFO\x1b[0m \x1b]0;title\x07\x1b[2K\x1b[1A",
    "line ends of other systems": "one\r\ntwo\rthree\u2028four\u0085five\x0bsix\x0c".encode(),
    "ten thousand empty lines": b"\n" * 10_000,
    "a line of 8 MB": b"x" * 8_000_000,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("output", ["stdout", "stderr"])
def test_it_goes_through_and_the_start_behind_it_is_judged(odd: bytes, output: str, tmp_path: Path) -> None:
    whole = odd + b"\n" + start_of_vllm()
    (tmp_path / "whole").write_bytes(whole)
    script = f'cat "{tmp_path}/whole" {"" if output == "stdout" else ">&2"}; exec sleep 60'
    done = ran(["run", "-q", "--until", "ready", "--min-concurrency", "2", "--", "sh", "-c", script])

    assert done.returncode == 0
    assert {"stdout": done.stdout, "stderr": done.stderr} == {"stdout": b"", "stderr": b"", output: whole}


def test_a_line_without_end_costs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "start").write_bytes(start_of_vllm())
    script = f'head -c 50000000 /dev/zero | tr "\\0" x; echo; cat "{tmp_path}/start"; exec sleep 60'
    program = (
        "import sys; from pathlib import Path; from kvguard.cli import main; status = main(sys.argv[1:])\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0], file=sys.stderr)\n"
        "sys.exit(status)"
    )
    words = ["run", "-q", "--until", "ready", "--min-concurrency", "2", "--", "sh", "-c", script]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRON
    )
    assert done.returncode == 0
    assert int(done.stderr) < 64 * 1024


def test_the_command_sees_no_terminal_where_we_have_one() -> None:
    """It writes as under Kubernetes, each output apart; `script` gives it a terminal where it wants one."""
    terminal, ours = pty.openpty()
    asks = "import os; print([os.isatty(number) for number in (0, 1, 2)])"
    words = command("run", "-q", "--", sys.executable, "-c", asks)
    running = subprocess.Popen(words, stdin=ours, stdout=subprocess.PIPE, stderr=ours, env=ENVIRON)
    out, _ = running.communicate(timeout=60)
    os.close(ours)
    os.close(terminal)

    assert out == b"[True, False, False]\n"


@pytest.mark.parametrize("end", ["", "\\n"], ids=["in a line", "behind one"])
def test_what_we_say_begins_a_line_wherever_the_command_left_it(end: str, tmp_path: Path) -> None:
    (tmp_path / "start").write_bytes(start_of_vllm())
    script = f'cat "{tmp_path}/start"; printf "Loading: 50%%|##{end}" >&2; exec sleep 60'
    done = ran(["run", "--until", "ready", "--min-concurrency", "2", "--", "sh", "-c", script])

    lines = done.stderr.decode().splitlines()
    assert "Loading: 50%|##" in lines  # by itself
    assert [line[:4] for line in lines if line.startswith("PASS")] == ["PASS"]
    assert "" not in lines[: lines.index("Loading: 50%|##") + 2]
