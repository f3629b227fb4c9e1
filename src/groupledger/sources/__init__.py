"""Read users' data: the raw offsets log, topic listings, tables of snapshots and of memberships.

Read `opening` (what each source gives) and `files`, then one source: `offsets_records` with `line_files`,
`segment_files`, `kafka_log`, `topic_listings`, `snapshot_tables` or `memberships`. `delta_growth` reads only what a
table gained. Called by `pipeline.reading`.
"""
