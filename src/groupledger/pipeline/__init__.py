"""Run the jobs in order: facts in, results out, questions answered. Session, clock and run id are arguments.

Read `ingest` with `reading`, `past` and `fold_input`; `assign`; `enveloped` (rows out); then
the jobs beside them: `maintain`, `rebuild`, `grid`, `doctor`. `few_records` is an ingest without Spark jobs.
Called by `cli`, `notebook` and `jobs`.
"""
