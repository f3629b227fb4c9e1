"""Fold classic groups over columns: a bucket's GroupMetadata records in, Arrow columns of the tables out.

Read `columns` (the log), `fold` (all steps in order), `payloads` (members' bytes), `timeline` (who had what when) and
`tables` (the rows). Called by `engine.fold_slices`. tests/core/history hold it against the fold of records.
"""
