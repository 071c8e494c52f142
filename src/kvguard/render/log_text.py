"""Text out of a log, made fit to be shown: no secret, no control character, no bidirectional trick, bounded length.

Renderers pass everything through here that a log, a user or a model's author wrote, and then escape it for the place
it goes to. What is masked is what looks like a secret by its own form, or stands behind a name of one.
"""

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
LONGEST = 400
"""Characters of one text that are shown; a message of vLLM has less, and a prompt must not fill a report."""
LONGEST_READ = 10_000
"""Characters that are looked at: enough to mask a secret whole where it crosses the end of what is shown."""

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
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b[@-Z\\^_]")
_PIPELINE_COMMANDS = re.compile(r"##(?=\[|vso\[|teamcity\[)")
"""Azure, GitHub's first version and TeamCity obey these anywhere in a line of a job's output."""
_UNSHOWN = re.compile(
    # C0 and C1 controls, line and paragraph separators, marks that reverse or hide what stands around them, lone
    # surrogates; a tab is a space
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def masked(text: str) -> str:
    """The text, of bounded length, with every secret in it replaced by `***`; what names the secret stays."""
    return _SECRETS.sub(_mask, text[:LONGEST_READ])


def shown(text: str, longest: int = LONGEST) -> str:
    """One line of harmless text: secrets masked, controls taken out, cut to `longest` characters."""
    plain = _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", _SEQUENCES.sub("", text[:LONGEST_READ]).replace("\t", " "))
    safe = _PIPELINE_COMMANDS.sub("# #", masked(plain))
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def masked_deep(value: Any) -> Any:
    """The same JSON-like value with every text in it masked, and whatever stands under a secret's name."""
    if isinstance(value, str):
        return masked(str(value))
    if isinstance(value, Mapping):
        return {
            masked(str(key)): MASK if isinstance(item, str) and _SECRET_NAME.search(str(key)) else masked_deep(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked_deep(item) for item in value]
    return value


def escape_unshown(json_text: str) -> str:
    """JSON text with each character that a terminal obeys or hides written as `\\uXXXX`; line breaks stay."""
    return _UNSHOWN.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", json_text)


def _mask(found: re.Match[str]) -> str:
    if found["scheme"]:
        return f"{found['scheme']}{MASK}@"
    kept = found["auth"] or found["flag"] or found["name"] or found["token"] or ""
    return kept + MASK + (" " if found["flag"] and found[0].endswith(" ") else "")
