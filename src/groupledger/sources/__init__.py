"""Read users' data: the raw offsets log, topic listings, tables of snapshots."""
