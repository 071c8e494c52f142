"""What must never leave a log again: keys, tokens and passwords, in any text that a report repeats.

Masked is what looks like a secret by its own form, and what stands behind a secret's name, however the two are written:
as options, as a `repr`, as JSON inside JSON, as headers, as an environment's list of names and values.
"""

import re
from collections.abc import Mapping
from typing import Any

from kvguard.lines.patterns import compiled

MASK = "***"
MAX_TEXT = 500
"""Characters of a log line that a report repeats."""
LONGEST_READ = 10_000
"""Characters that are looked at: enough to mask a secret whole where it crosses the end of what is repeated."""

_QUOTE = r"""\\{0,8}['"]"""
"""A quote, inside other quotes with backslashes before it."""
_VALUE = r"""(?:[bru]?(?:'(?:[^'\\]|\\.){1,2000}+'?|"(?:[^"\\]|\\.){1,2000}+"?
    |\\{1,8}+"[^"\\]{1,2000}+|\\{1,8}+'[^'\\]{1,2000}+)
    |\[[^\]]{1,4000}+\]?|\([^)]{1,4000}+\)?|\{[^}]{1,4000}+\}?|[^\s'",;)}\]]{1,2000}+)"""
_IS = rf"""(?:(?:{_QUOTE})?\s{{0,3}}+(?:=>|[=:])\s{{0,3}}+|{_QUOTE}\s{{0,3}}+,\s{{0,3}}+(?=b?{_QUOTE}))"""
"""What stands between a name and its value; a comma where both are texts of a list, as in an argument vector."""
_NO_PATH = r"(?!(?<=/)[\w-]{0,60}+: )"
"""`/run/secrets/token: no such file` tells no secret."""
_NAMES = (
    r"(?:api|access|account|private|encryption|signing|shared|master|license)[ _-]?(?:access[ _-]?)?keys?"
    r"|secret|passwo?r?d|passphrase|credential|sharedaccesssignature|(?<![a-z])pwd|(?:session|security|refresh|access|auth|(?<![a-z])id)[_-]token"
)
_SECRETS = rf"""(?xi)
    (?P<scheme>\b[a-z][a-z0-9+.-]{{1,15}}+:/{{1,2}}+)(?:[^\s/@:'"]{{0,100}}+:(?!\d{{1,5}}+(?:[/?\#]|$))[^\s'"]{{1,300}}@
        |[^\s/?\#@'"]{{1,300}}+@)                                       # user and password in a URL
  | (?P<proxy>proxy(?:{_QUOTE})?\s{{0,2}}+[=:]\s{{0,2}}+['"]?)[^\s@:/'"]{{1,100}}+:[^\s@'"]{{1,300}}+@
  | (?P<user>\s(?:-u|--user|--proxy-user)[ =]{{1,2}}['"]?)[^\s:'"]{{1,100}}+:[^\s'"]{{1,300}}+
  | \b(?:hf_|sk-|sk_(?:live|test)_|gh[oprsu]_|github_pat_|ya29\.|glpat-|xox[abeprs]-|xapp-|nvapi-|npm_|pypi-|dckr_pat_
        |dapi|gsk_|r8_)[\w-]{{12,300}}+
  | \bA(?:KI|SI)A[A-Z0-9]{{12,20}}+
  | \bAIza[\w-]{{30,60}}+
  | \beyJ[\w-]{{8,1000}}+\.[\w-]{{8,2000}}+(?:\.[\w-]{{0,1000}}+)?        # a JSON web token
  | -----BEGIN\ [A-Z\ ]{{0,30}}PRIVATE\ KEY-----[\s\S]*+
  | (?P<hook>hooks\.slack\.com/services/)[\w/-]{{1,300}}+
  | (?P<query>[?&](?:sig|signature|key|code|auth|x-amz-[a-z-]{{1,30}}+|awsaccesskeyid)=)[^\s&'"]{{1,2000}}+
  | (?P<header>\b(?:authorization|(?:set-)?cookie){_IS})(?:b?{_QUOTE})?[^'"\\\r\n]{{1,4000}}+
  | (?P<auth>\b(?:bearer|basic)\s{{1,3}}+)[\w.~+/=-]{{8,2000}}+
  | (?P<flag>--api-keys?(?:=|\s{{1,3}}+))(?:(?!--)\S{{1,2000}}+\s?){{1,20}}+   # takes several, up to the next flag
  | (?P<option>(?<![\w-])--[\w-]{{0,40}}?(?:{_NAMES}|token)\s{{1,3}}+)(?!--){_VALUE}
  | (?P<name>{_NO_PATH}(?:{_NAMES})[\w-]{{0,40}}+{_IS})(?!None\b|null\b){_VALUE}
  | (?P<token>{_NO_PATH}token{_IS})(?!None\b|null\b|[\d.,]++(?:\s|$)){_VALUE}   # "bytes per token: 2,048"
  | (?P<pair>\bname{_IS}(?:{_QUOTE})?[\w.-]{{0,60}}?(?:{_NAMES}|token|key|auth)[\w.-]{{0,60}}+(?:{_QUOTE})?,?\s{{0,20}}+
        (?:{_QUOTE})?value{_IS}){_VALUE}                                          # an entry of a pod's environment
    """
_HINTS = (
    "key", "token", "secret", "passw", "pwd", "signature", "passphrase", "credential", "cookie", "auth", "bearer",
    "basic", "proxy", ":/", "-u", "--user", "?", "&", "hooks.", "hf_", "sk-", "sk_", "gh", "github_pat_", "ya29.",
    "glpat-", "xox", "xapp-", "nvapi-", "npm_", "pypi-", "dckr_", "dapi", "gsk_", "r8_", "akia", "asia", "aiza",
    "eyj",
)  # fmt: skip
"""Every secret holds one of them, in small letters: most texts hold none and need no search."""
_SECRET_NAME = rf"(?i:{_NAMES}|authorization|cookie|token$)"
_KEPT = ("proxy", "user", "hook", "query", "header", "auth", "flag", "option", "name", "token", "pair")


def mask(text: str) -> str:
    """The text, of bounded length, with every secret in it replaced by `***`; what names the secret stays."""
    beginning = text[:LONGEST_READ]
    plain = beginning.lower().replace("tokens", "")
    return compiled(_SECRETS).sub(_mask, beginning) if any(hint in plain for hint in _HINTS) else beginning


def redact(text: str) -> str:
    """The text on one line, cut to `MAX_TEXT` characters, control characters gone and secrets masked."""
    line = mask("".join(character if character.isprintable() else " " for character in text[:LONGEST_READ]))
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def mask_deep(value: Any) -> Any:
    """The same JSON-like value with every text in it masked, and whatever stands under a secret's name."""
    if isinstance(value, str):
        return mask(str(value))
    if isinstance(value, Mapping):
        return {mask(str(key)): MASK if _is_secret(str(key), item) else mask_deep(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_deep(item) for item in value]
    return value


def _is_secret(name: str, value: object) -> bool:
    """Whether a value is one by its name alone; a count of tokens is none."""
    return isinstance(value, str | bytes | list | tuple | Mapping) and compiled(_SECRET_NAME).search(name) is not None


def _mask(found: re.Match[str]) -> str:
    if found["scheme"]:
        return f"{found['scheme']}{MASK}@"
    if found["proxy"]:
        return f"{found['proxy']}{MASK}@"
    kept = next((found[group] for group in _KEPT if found[group]), "")
    return kept + MASK + (" " if found["flag"] and found[0].endswith(" ") else "")
