"""Text out of a log, made fit to be shown: no secret, no control character, no bidirectional trick, bounded length.

Renderers pass everything through here that a log, a user or a model's author wrote, and then escape it for the place
it goes to. What is masked is what looks like a secret by its own form, or stands behind a name of one.
"""

import re

from kvguard.lines.secrets import LONGEST_READ, mask

LONGEST = 400
"""Characters of one text that are shown; a message of vLLM has less, and a prompt must not fill a report."""

_SEQUENCES = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b[@-Z\\^_]"
_PIPELINE_COMMANDS = r"##(?=\[|vso\[|teamcity\[)"
"""Azure, GitHub's first version and TeamCity obey these anywhere in a line of a job's output."""
_UNSHOWN = (
    # C0 and C1 controls, line and paragraph separators, marks that reverse or hide what stands around them, lone
    # surrogates; a tab is a space
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def shown(text: str, longest: int = LONGEST) -> str:
    """One line of harmless text: secrets masked, controls taken out, cut to `longest` characters."""
    plain = text[:LONGEST_READ]
    if not plain.isprintable():
        plain = re.sub(_UNSHOWN, "\N{REPLACEMENT CHARACTER}", re.sub(_SEQUENCES, "", plain).replace("\t", " "))
    safe = re.sub(_PIPELINE_COMMANDS, "# #", mask(plain))
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def escape_unshown(json_text: str) -> str:
    """JSON text with each character that a terminal obeys or hides, and the marks that a pipeline obeys, written as
    `\\uXXXX`; line breaks stay."""
    inert = re.sub(_PIPELINE_COMMANDS, r"#\\u0023", json_text)
    return re.sub(_UNSHOWN, lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", inert)
