"""Answers from a ledger without Spark: the views of what counts, the engine that runs them, and what is made of it.

Nothing here imports pyspark, pandas or numba: a small answer takes less time than that would.
"""
