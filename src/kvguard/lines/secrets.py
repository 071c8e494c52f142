"""What must never leave a log again: keys, tokens and passwords, in any text that a report repeats.

Masked is what looks like a secret by its own form, and what stands behind a secret's name.
"""

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
MAX_TEXT = 500
"""Characters of a log line that a report repeats."""
LONGEST_READ = 10_000
"""Characters that are looked at: enough to mask a secret whole where it crosses the end of what is repeated."""

_VALUE = r"""(?:\[[^\]]{1,4000}+\]?|'[^']{1,2000}+'?|"[^"]{1,2000}+"?|[^\s'",;)}\]]{1,2000}+)"""
_SECRETS = re.compile(
    rf"""
    (?P<scheme>\b[a-z][a-z0-9+.-]{{1,15}}+://)[^\s/@'"]{{1,300}}+@     # user and password in a URL
  | \b(?:hf_|sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|nvapi-|npm_|pypi-)[\w-]{{12,300}}+
  | \bAKIA[A-Z0-9]{{12,20}}+
  | \bAIza[\w-]{{30,60}}+
  | \beyJ[\w-]{{8,1000}}+\.[\w-]{{8,2000}}+(?:\.[\w-]{{0,1000}}+)?        # a JSON web token
  | (?P<auth>\b(?:bearer|basic)\s{{1,3}}+)[\w.~+/=-]{{8,2000}}+
  | (?P<flag>--api-keys?(?:=|\s{{1,3}}+))(?:(?!--)\S{{1,2000}}+\s?){{1,20}}+   # takes several, up to the next flag
  | (?P<name>(?:api[_-]?keys?|access[_-]?keys?|private[_-]?key|secret|passwo?r?d|passphrase|credentials?|authorization
      |cookie)['"]?\s?[=:]\s{{0,3}}+)(?!None\b|null\b)(?:(?:bearer|basic)\s{{1,3}})?{_VALUE}
  | (?P<token>token['"]?\s?[=:]\s{{0,3}}+)(?!None\b|null\b|[\d.,]++(?:\s|$)){_VALUE}   # "bytes per token: 2,048"
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SECRET_NAME = re.compile(
    r"api[_-]?key|access[_-]?key|private[_-]?key|secret|passwo?r?d|passphrase|credential|authorization|cookie|token$",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """The text, of bounded length, with every secret in it replaced by `***`; what names the secret stays."""
    return _SECRETS.sub(_mask, text[:LONGEST_READ])


def redact(text: str) -> str:
    """The text on one line, cut to `MAX_TEXT` characters, control characters gone and secrets masked."""
    line = mask("".join(character if character.isprintable() else " " for character in text[:LONGEST_READ]))
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def mask_deep(value: Any) -> Any:
    """The same JSON-like value with every text in it masked, and whatever stands under a secret's name."""
    if isinstance(value, str):
        return mask(str(value))
    if isinstance(value, Mapping):
        return {
            mask(str(key)): MASK if isinstance(item, str) and _SECRET_NAME.search(str(key)) else mask_deep(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_deep(item) for item in value]
    return value


def _mask(found: re.Match[str]) -> str:
    if found["scheme"]:
        return f"{found['scheme']}{MASK}@"
    kept = found["auth"] or found["flag"] or found["name"] or found["token"] or ""
    return kept + MASK + (" " if found["flag"] and found[0].endswith(" ") else "")
