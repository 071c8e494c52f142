"""Stamps of log lines to seconds, for differences inside one log: vLLM prints neither year nor zone."""

from kvguard.lines.patterns import compiled

_FULL = (
    r"(?:\d{4}[-/])?(?P<month>\d\d)[-/](?P<day>\d\d)[T ]"
    r"(?P<hours>\d\d):(?P<minutes>\d\d)(?::(?P<whole>\d\d)(?P<part>[.,]\d+)?)?"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS_BEFORE = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)
"""Days before each month of a leap year, so that February 29 has a place."""
DAY = 86400.0
YEAR = 366 * DAY
_LEAP_DAY = 59 * DAY
"""When February 29 begins."""


def seconds(text: str) -> float | None:
    """Seconds since the start of the stamp's own year; `None` for a clock without a date or an impossible one."""
    if text[:3] in MONTHS:  # "Jul  9", as the host's journal writes it
        text = f"{MONTHS.index(text[:3]) + 1:02}-{text[4:6].replace(' ', '0')}{text[6:]}"
    match = compiled(_FULL).match(text)
    if match is None:
        return None
    month, day = int(match["month"]), int(match["day"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    hours, minutes, whole = int(match["hours"]), int(match["minutes"]), int(match["whole"] or 0)
    part = float(f"0.{match['part'][1:]}") if match["part"] else 0.0
    return (_DAYS_BEFORE[month - 1] + day - 1) * 86400.0 + hours * 3600 + minutes * 60 + whole + part


def elapsed(start: float, end: float) -> float:
    """Seconds from one stamp to a later one; across New Year the year's end is not lost.

    Across the end of February there is no day between, as in most years: no start takes a day.
    """
    difference = end - start
    if start < _LEAP_DAY and end >= _LEAP_DAY + DAY:
        difference -= DAY
    return difference + YEAR if difference < -YEAR / 2 else difference
