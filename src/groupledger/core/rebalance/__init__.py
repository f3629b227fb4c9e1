"""Compute rebalances from snapshots: the target, the cooperative step towards it, the verdict on the record.

Read `computation` (from top to bottom), `step` (KIP-429), `verdict`, `registry` (facts by assignor), `least_moves` (the
bound), `attribution` (whose algorithm it was) and `findings` (invariants). Called by `engine.buckets` and the answers.
"""
