"""Write the ledger: its tables, attempts that count once, and the one definition of what readers see.

Read `location` (where it is, locks, errors of engines), `ledger_tables` (what it holds, and its upkeep), `attempts`
(attempts, guards, the log of commits), `append` (every write) and `current` (what counts). Called by `pipeline`.
"""
