"""Reading what users have: the raw offsets log, topic listings, tables of snapshots."""
