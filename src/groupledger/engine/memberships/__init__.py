"""Run assignors over users' tables of members and topics: many groups a call, with Spark or without.

Read `declared` (the columns, and those of one call), `bucket` (the rows of many groups), then `user_tables` (Spark,
pandas, Polars, Arrow, and the functions for SQL). Called by `notebook.assigned` and the package's public names.
"""
