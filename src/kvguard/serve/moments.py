"""Moments as every face writes them."""

from datetime import UTC, datetime


def iso(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_micro(seconds: float) -> str:
    """The same to the microsecond, as Kubernetes wants it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
