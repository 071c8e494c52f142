"""The release that a log names, as the arithmetic takes it."""

from kvguard.kvcache.releases import Release
from kvguard.startup.versions import release


def told_release(version: str | None) -> Release | None:
    """The release of a version text; `None` where it names none, as builds without a tag do."""
    found = release(version)
    return None if found is None else Release(*found)
