"""What is asked of a start, and the one place that decides."""
