"""`python -m fuzz TARGET [SECONDS]`: atheris over one target, from the seeds and regressions in the repository.

What breaks a target is written to `fuzz/regressions/TARGET/`, where the tests find it from then on.
"""

import sys
import tempfile
from pathlib import Path

import atheris

# without the one module that asks each row about each line: it would take nine tenths of the time
with atheris.instrument_imports(include=["kvguard"], exclude=["kvguard.lines.openings", "kvguard.lines.row_index"]):
    from fuzz import seeds
    from fuzz.targets import TARGETS, within_its_time
    from kvguard.lines import parser as parsers
    from kvguard.lines.format_table import FormatTable
    from kvguard.lines.formats import FORMATS

LONGEST_INPUT = 4096
_TABLE = FormatTable(FORMATS)
vars(parsers)["FormatTable"] = lambda rows: _TABLE  # it never changes, and takes longer to make than an input to read


def main(target: str, seconds: str = "3600") -> None:
    """Fuzz until the time is over or something breaks; libFuzzer ends the process."""
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
    for number, data in enumerate([*seeds.seeds(target), *(file.read_bytes() for file in seeds.regressions(target))]):
        (folder / f"seed-{number}").write_bytes(data)
    dictionary = folder.with_suffix(".dict")
    dictionary.write_text("".join(f'"{_quoted(word)}"\n' for word in seeds.words()))

    def fuzzed(data: bytes) -> None:
        within_its_time(TARGETS[target], data)

    flags = {
        "max_total_time": seconds,
        "max_len": LONGEST_INPUT,
        "timeout": 120,  # by the clock on the wall, and a machine may be busy: `within_its_time` asks the processor
        "rss_limit_mb": 1024,
        "dict": dictionary,
        "artifact_prefix": f"{seeds.REGRESSIONS / target}/",
        "print_final_stats": 1,
    }
    atheris.Setup([sys.argv[0], *(f"-{name}={value}" for name, value in flags.items()), str(folder)], fuzzed)
    atheris.Fuzz()


def _quoted(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


main(*sys.argv[1:])
