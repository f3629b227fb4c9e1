"""Fold classic groups over columns: a bucket's GroupMetadata records in, Arrow columns of the tables out.

Read `record_columns` (the log), `column_fold` (all steps in order), `distinct_payloads` (members' bytes), `steps`
(who had what when) and `fact_tables` (the rows). Called by `engine.fold_slices`. tests/core/history hold it against
the fold of records.
"""
