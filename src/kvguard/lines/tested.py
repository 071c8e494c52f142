"""What the table was tested with beyond its samples: whole logs of real servers, by release and platform."""

TESTED_RUNS: tuple[tuple[str, str, int], ...] = (
    ("0.8.5.post2", "cpu", 3),
    ("0.10.2.post2", "cpu", 4),
    ("0.13.0", "cpu", 4),
    ("0.20.2", "cpu", 5),
    ("0.27.1", "cpu", 3),
    ("0.32.0", "cpu", 21),
)
"""Release, platform, and how many start-ups of different shapes; a test compares it with the corpus."""
