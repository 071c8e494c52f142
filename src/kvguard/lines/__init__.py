"""Bytes to events: framing, what stands before a message, and what a message means."""
