"""What must never leave a log again: keys, tokens and passwords in any text that a report repeats."""

import regex

MAX_TEXT = 500
"""Characters of a log line that a report repeats."""

_SECRETS = regex.compile(
    r"(?P<url>[a-z][\w+.-]*+://)[^\s/@]++@"
    r"|(?P<name>(?i:[\w-]*+(?:api[_-]?key|token|secret|passw(?:or)?d|authorization|credential|private[_-]?key)[\w-]*+))"
    r"(?P<sep>['\"]?\s*+[:=]\s*+|\s++)(?P<value>(?i:bearer\s++)?(?:\[[^\]]*+\]|'[^']*+'|\"[^\"]*+\"|[^\s,;)}\]]++))"
    r"|\b(?:hf|sk|ghp|gho|ghs|glpat|xox[abpr]|npm|pypi)[_-][A-Za-z0-9_-]{8,}+"
    r"|\beyJ[\w-]{8,}+\.[\w-]++\.[\w-]++"
    r"|\bAKIA[0-9A-Z]{12,}+",
    regex.VERSION1,
)
_COUNTED = frozenset({"tokens", "token", "max_tokens", "num_tokens", "tokens_per_request"})


def redact(text: str) -> str:
    """The text on one line, cut to `MAX_TEXT` characters, control characters gone and secrets masked."""
    line = "".join(character if character.isprintable() else " " for character in text[: MAX_TEXT * 4])
    line = _SECRETS.sub(_mask, line)
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def _mask(match: "regex.Match[str]") -> str:
    if match["url"]:
        return f"{match['url']}***@"
    if match["name"]:
        value = match["value"]
        if match["name"].lower() in _COUNTED and (
            match["sep"].isspace() or value.strip("'\"").replace(",", "").isdecimal()
        ):
            return match[0]  # "28432 tokens per request", "max_tokens=100": a count, not a credential
        if match["sep"].isspace() and not value.lower().startswith("bearer"):
            return match[0] if not _looks_random(value) else f"{match['name']}{match['sep']}***"
        return f"{match['name']}{match['sep']}***"
    return "***"


def _looks_random(value: str) -> bool:
    """A word after `--api-key`: prose does not mix digits and letters at length."""
    return len(value) >= 6 and any(character.isdigit() for character in value)
