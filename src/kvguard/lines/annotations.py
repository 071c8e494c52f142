"""What people do to a message when they paste it: align it, quote it in a sentence, write a note behind it."""

from kvguard.lines.patterns import compiled

_NOTE = r"(?P<message>\S.{7,}?)(?: {1,40}(?:\([^()]*+\)|(?:<[-=~]{1,40}+|←|⟵|⬅)(?!\S*+>).*+)| {2,40}# .*+)"
_QUOTED = r"`?(?P<message>[^`]{8,})` {0,3}[:：=—–→-].*+"


def readings(message: str) -> tuple[str, ...]:
    """Other texts that the message may stand for, each to be matched whole as the message is.

    Blanks that align a column become one; of a quotation (`…`: what it means) and of a message with a note behind it
    (an arrow, or something in brackets) only the message is left.
    """
    texts = [" ".join(message.split())] if "  " in message else []
    for form, signs in ((_QUOTED, "`"), (_NOTE, "(<←⟵⬅#")):
        if not any(sign in message for sign in signs):
            continue
        match = compiled(form).fullmatch(message.strip())
        if match is not None:
            texts.append(match["message"])
    return tuple(texts)
