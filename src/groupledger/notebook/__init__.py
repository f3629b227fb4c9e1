"""The ledger in a notebook: questions as methods, answers as values that display themselves.

The words and tables are those of the commands: what a person reads is written once, in `cli`.
"""
