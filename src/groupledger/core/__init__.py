"""Implement everything that needs no Spark: decoders, assignors, step, history."""
