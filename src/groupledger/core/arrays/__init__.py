"""Hold groups as flat integer arrays: lists of lists, Java's orders, and the kernels that run over them.

Read `batch` (groups), `ragged` (lists and slots), `snapshots` (with plain values to arrays) and
`java_orders` (orders of ids), then `kernels` with `kernel_cache` (compiled code, and where it is kept).
Called by everything that computes.
"""
