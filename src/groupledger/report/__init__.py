"""Plots of what the ledger holds. matplotlib is an extra: `pip install groupledger[report]`."""
