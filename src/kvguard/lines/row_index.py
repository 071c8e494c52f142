"""`RowIndex`: which rows a text need be held against. There are hundreds, and most lines of most logs are of none."""

import functools
from collections.abc import Iterator, Sequence

from kvguard.lines.line_format import LineFormat
from kvguard.lines.openings import Opening, agree, behind_class, openings, rules_out, takes_class

LEAST_BEGINNING = 12
"""Characters of a format's literal that a text must end with to be taken for its beginning."""
MAX_CHARACTERS = 512
"""First characters whose rows are remembered: a log of every sign there is fills no memory."""


class RowIndex:
    """The rows of a table by words that their messages hold, and by how they begin; built when it is first asked."""

    def __init__(self, rows: Sequence[LineFormat]) -> None:
        self._rows = rows
        self._openings: dict[tuple[str, bool], dict[Opening, list[LineFormat]]] = {}

    def holding(self, text: str) -> list[LineFormat]:
        """The rows whose literal the text holds, in the table's order."""
        by_word = self._by_word
        asked = [entry for word in {"", *text.split()} if word in by_word for entry in by_word[word]]
        return [self._rows[place] for place, literal in sorted(asked) if literal in text]

    @functools.cached_property
    def _by_word(self) -> dict[str, list[tuple[int, str]]]:
        """Places and literals of the rows by a word that blanks enclose in the literal; "" where there is none."""
        found: dict[str, list[tuple[int, str]]] = {}
        for place, row in enumerate(self._rows):
            word = max(row.literal.split(" ")[1:-1], key=len, default="")
            found.setdefault(word, []).append((place, row.literal))
        return found

    def opened_by(self, text: str) -> Iterator[LineFormat]:
        """The rows that could begin like the text, without those that could begin like any; some may come twice."""
        yield from self._beginning_like(text, of_exceptions=False)
        behind = behind_class(text)
        if behind is not None:
            yield from self._beginning_like(behind, of_exceptions=True)

    def _beginning_like(self, text: str, of_exceptions: bool) -> Iterator[LineFormat]:
        """The rows that could, an exception's class apart: many share an opening, which is compared once."""
        key = text[:1], of_exceptions
        near = self._openings.get(key)
        if near is None:
            if len(self._openings) >= MAX_CHARACTERS:
                self._openings.clear()
            near = self._openings[key] = self._near(*key)
        return (row for opening, rows in near.items() if agree(opening, text) for row in rows)

    def _near(self, character: str, of_exceptions: bool) -> dict[Opening, list[LineFormat]]:
        """The openings that can begin with the character, each with its rows."""
        found: dict[Opening, list[LineFormat]] = {}
        for row in self._rows:
            if (of_exceptions and not takes_class(row.pattern)) or rules_out(row.pattern, character):
                continue
            known = openings(row.pattern)
            for opening in () if "" in known else known:
                if agree(opening, character):
                    found.setdefault(opening, []).append(row)
        return found

    def ends_with_beginning(self, text: str) -> bool:
        """Whether the text ends with the beginning of a row's literal."""
        longest, literals = self._by_beginning
        for place in range(max(len(text) - longest, 0), len(text) - LEAST_BEGINNING + 1):
            near = literals.get(text[place : place + LEAST_BEGINNING])
            if near and any(len(text) - place < len(literal) and literal.startswith(text[place:]) for literal in near):
                return True
        return False

    @functools.cached_property
    def _by_beginning(self) -> tuple[int, dict[str, list[str]]]:
        """The length of the longest literal, and the literals by their beginning."""
        found: dict[str, list[str]] = {}
        for row in self._rows:
            found.setdefault(row.literal[:LEAST_BEGINNING], []).append(row.literal)
        return max((len(row.literal) for row in self._rows), default=0), found
