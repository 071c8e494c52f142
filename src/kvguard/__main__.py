"""`python -m kvguard`."""

from kvguard.cli import entry_point

entry_point()
