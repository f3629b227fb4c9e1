"""Writing the ledger: its tables, attempts that count once, and the one definition of what readers see."""
