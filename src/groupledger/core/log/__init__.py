"""Read the log `__consumer_offsets` and topic listings as sources give them.

Read `lines` (JSON lines, names of columns), `record_batches` and `segments` (a broker's disk), `read_plan`
(offsets to read, and up to when a cluster is known), `listings` and `topic_partitions`, then `described_groups`.
Called by `sources` and `pipeline`.
"""
