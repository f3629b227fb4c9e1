"""Read users' data: the raw offsets log, topic listings, tables of snapshots and of memberships.

Read `opening` (what each source gives) and `files`, then one source: `offsets_records`, `segment_files`, `kafka_log`,
`topic_listings` or `snapshot_tables`. `delta_growth` reads only what a table gained. Called by `pipeline.reading`.
"""
