"""Write the ledger: its tables, attempts that count once, and the one definition of what readers see.

Read `location` and `ledger_tables` (where it is, what it holds), `attempts` (attempts, guards) with `commit_log` (a
folder's or Spark's), `append` and `changes` (every write), `current` (what counts), `spark_errors` (errors of
engines), then `upkeep`. Called by `pipeline`.
"""
