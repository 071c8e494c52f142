"""Targets for a coverage-guided fuzzer: `python -m fuzz TARGET`; `tests/attacks/test_fuzz.py` runs a short slice."""
