"""Fold classic groups over columns: a bucket's GroupMetadata records in, Arrow columns of the tables out.

Read `record_columns` (the log), `column_fold` (all steps in order, and the rows), `distinct_payloads` (members' bytes)
and `steps` (who had what when). Called by `engine.fold_slices`. tests/core/history hold it against
the fold of records.
"""
