"""Draw what the ledger holds. matplotlib is an extra: `pip install groupledger[report]`.

Read `pictures` (plots in notebooks), then `html` (pages). Called by `notebook` and `cli`.
"""
