"""The top of the page: the verdict in words, why, and what the gate answers."""

from collections.abc import Mapping
from types import MappingProxyType

from kvguard.render.html.markup import Markup, element, fragment, prose
from kvguard.render.start_facts import WAITED_OUT, headline_of, place_of, refusal, said_live
from kvguard.slo.verdict import Outcome, Reason, Verdict
from kvguard.slotted import dataclass
from kvguard.startup.report import ENDED, CapacityReport


@dataclass(frozen=True, slots=True)
class Live:
    """What only a running sidecar knows; times as ISO 8601 in UTC."""

    gate_open: bool
    gate_why: str
    """Why the gate answers so, where that is not the verdict alone; may be empty."""
    source: str
    """What the source is doing, since when, and how fresh it is, in words."""
    source_fine: bool
    as_of: str
    """When this page was made."""
    slo_problem: str | None
    """Why the SLO file on disk is not the one in force."""
    revision: str
    """Names what the page shows: the same text, the same page."""


CLOSED = "Closed"
"""The word of a gate that is closed after a pass."""
LONG_HEADLINE = 110
"""Characters from which a headline is set smaller."""
OUTCOME_WORDS: Mapping[Outcome, str] = MappingProxyType(
    {Outcome.PASS: "Pass", Outcome.FAIL: "Fail", Outcome.UNKNOWN: "Unknown"}
)
_SIGNS: Mapping[Outcome, str] = MappingProxyType({Outcome.PASS: "✓", Outcome.FAIL: "✕", Outcome.UNKNOWN: "?"})


def outcome_mark(outcome: Outcome, word: str = "") -> Markup:
    """The outcome as a sign and a word (its own, or another one), never as a colour alone."""
    sign = element("span", _SIGNS[outcome], class_="sign", aria_hidden="true")
    return element("span", sign, " ", word or OUTCOME_WORDS[outcome], class_=f"mark {outcome}")


def colour_of(verdict: Verdict, live: Live | None) -> Outcome:
    """The outcome whose colour the page has: the verdict's, but no pass while the gate is closed all the same."""
    if live is None or live.gate_open or verdict.outcome is not Outcome.PASS:
        return verdict.outcome
    start = verdict.report.start
    return Outcome.FAIL if start is not None and start.phase in ENDED else Outcome.UNKNOWN


def judged(verdict: Verdict, live: Live | None) -> Markup:
    """The verdict: its word, the first reason as the headline, the others below, and the gate.

    What closes the gate after a pass, as a server's end, stands before the verdict.
    """
    first, others = headline_of(verdict), verdict.reasons[1:]
    already = {check.reason for check in verdict.checks}
    rest = [reason for reason in others if reason.message not in already]
    told = said_live(first) if live else first.message
    colour = colour_of(verdict, live)
    closed = live is not None and colour is not verdict.outcome
    headline = live.gate_why if live and closed else told
    return element(
        "section",
        element(
            "h1",
            outcome_mark(colour, CLOSED if closed else ""),
            element("span", " – ", class_="unseen"),
            element("span", prose(_sentence(headline)), class_="headline"),
            id="verdict",
            class_="long" if len(headline) > LONG_HEADLINE else None,
        ),
        element("p", outcome_mark(verdict.outcome), " ", prose(_sentence(told))) if closed else None,
        _where(first, verdict.report, live),
        _refused(verdict.report),
        element("ul", [element("li", prose(_sentence(reason.message))) for reason in rest]) if rest else None,
        _gate(live, "" if closed else live.gate_why) if live else None,
        class_=f"hero {colour}",
        aria_labelledby="verdict",
    )


def shown_only(report: CapacityReport, why: Reason | None) -> Markup:
    """The headline of a report that nobody judged; `why` it holds no capacity."""
    phase = report.start.phase if report.start else "none"
    sentence = _sentence(why.message) if why else "What the log says of this start."
    return element(
        "section",
        element("h1", element("span", prose(sentence), class_="headline"), id="verdict"),
        _where(why, report, None) if why else None,
        _refused(report),
        class_=f"hero phase-{phase}",
        aria_labelledby="verdict",
    )


def _where(reason: Reason, report: CapacityReport, live: Live | None) -> Markup | None:
    place = place_of(reason.place, report)
    texts = [element("span", place, class_="place") if place else None]
    waits = live is not None and reason.code in WAITED_OUT
    if reason.remedy and not waits:
        texts += [element("span", element("b", "Do this: "), prose(_sentence(reason.remedy)), class_="remedy")]
    return element("p", *texts, class_="why") if any(texts) else None


def _refused(report: CapacityReport) -> Markup | None:
    failure = report.start.failure if report.start else None
    rows = refusal(failure) if failure else []
    pairs = [element("div", element("dt", name), element("dd", text)) for name, text in rows]
    return element("dl", pairs, class_="pairs") if pairs else None


def _gate(live: Live, why: str) -> Markup:
    answer = "open: /readyz answers 200" if live.gate_open else "closed: /readyz answers 503"
    state = "open" if live.gate_open else "closed"
    broken = f"{live.slo_problem}; the last good one is in force"
    problem = element("p", element("b", "SLO file: "), broken, class_="problem") if live.slo_problem else None
    gate = element("p", element("b", f"Gate {answer}"), f" – {why}" if why else "", class_=f"gate {state}")
    return fragment(gate, problem)


def _sentence(text: str) -> str:
    # an option's name, and our own, keep their spelling, wherever they stand
    first = text.split(" ", 1)[0]
    whole = text[:1].upper() + text[1:] if first.isalpha() and first != "kvguard" else text
    return whole if whole.endswith((".", "…", "!", "?")) else whole + "."
