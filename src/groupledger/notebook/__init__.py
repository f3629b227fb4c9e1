"""Offer the ledger and the assignors to notebooks and jobs: questions as methods, answers that display themselves.

The words and tables are those of the commands: what a person reads is written once, in `cli`. Read `ledger` (gl.open),
`replies`, `assigned` (gl.assign, gl.ingest) and `plain` (gl.solve, gl.simulate). Called by users, through
`groupledger`.
"""
