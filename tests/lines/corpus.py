"""The annotated samples under `fixtures/logs`: what each raw line must tell, one file a row of a table."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
LINES = FIXTURES / "logs" / "lines"
PREFIXES = FIXTURES / "logs" / "prefixes"
EXPECT = "# expect: "


@dataclass(frozen=True)
class Sample:
    """One raw line and what it must tell."""

    file: Path
    number: int
    """Of the raw line in its file, from 1."""
    about: str
    """The comment above: where the line comes from, or what makes it a near-miss."""
    expected: object
    line: str

    @property
    def row(self) -> str:
        return self.file.stem

    @property
    def near_miss(self) -> bool:
        return self.about.startswith("near-miss: ")

    def failing(self, got: object) -> str:
        """What to print when the line told something else."""
        return (
            f"\n{self.file.parent.name}/{self.file.name}:{self.number} ({self.about})\n  line      {self.line}"
            f"\n  expected  {json.dumps(self.expected, ensure_ascii=False)}\n  got       {got}"
        )


def samples(folder: Path) -> list[Sample]:
    """Every sample of every file in the folder, by file name."""
    return [sample for file in sorted(folder.glob("*.log")) for sample in _of_file(file)]


def _of_file(file: Path) -> Iterator[Sample]:
    raw = file.read_text(encoding="utf-8").split("\n")
    about = ""
    for index, line in enumerate(raw):
        if line.startswith(EXPECT):
            yield Sample(file, index + 2, about, json.loads(line.removeprefix(EXPECT)), raw[index + 1])
        elif line.startswith("# "):
            about = line.removeprefix("# ")


def catalogue() -> list[dict[str, Any]]:
    """The entries of what vLLM prints, release by release."""
    entries: list[dict[str, Any]] = json.loads((FIXTURES / "catalogue.json").read_text(encoding="utf-8"))
    return entries


def lines_of(entry: dict[str, Any]) -> list[str]:
    """The physical lines of an entry's example."""
    return [line for line in re.split(r"[\n\r]", entry["example"]) if line]
