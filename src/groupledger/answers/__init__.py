"""Answer questions from a ledger without Spark: the views of what counts, the engine that runs them, and what follows.

Nothing here imports pyspark, pandas or numba: a small answer takes less time than that would. Read `reader` (the ledger
and its engine), `queries` (records of a query), `scope` (of what, and up to when it is known), `states` and `causes`;
then an answer from end to end: `explanation` or `storms`. The others follow the same form: a question as SQL,
a type as the answer. Called by `cli`, `notebook` and `report`.
"""
