"""Faults injected over every boundary of ingest and assign; `python -m tests.faults` runs them all."""
