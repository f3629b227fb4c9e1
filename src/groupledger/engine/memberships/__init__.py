"""Run assignors over users' tables of members and topics: many groups a call, with Spark or without.

Read `declared` (the columns), `input_columns` (names and types of one call), `bucket` (the rows of many groups), then
`spark`, `local_tables` (pandas, Polars, Arrow) and `udfs`. Called by `notebook.assigned` and the package's public
names.
"""
