"""Connect Spark to `core`: the session, its jars, and Arrow in and out of each bucket of groups.

Read `session`, `buckets` (groups gathered into Arrow calls), `group_arrays` and `result_rows` (what an assign takes
and gives), `fold_slices` with `classic` (records to facts), `envelope` (files and digests that workers write), then
`memberships` (gl.assign). Called by `pipeline`, and by `notebook` for tables of users.
"""
