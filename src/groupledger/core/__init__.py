"""Implement everything that needs no Spark: decoders, assignors, the step, the simulator, histories.

Read `faults` (errors a user can mend), then the packages in the order of the data: `wire` (Kafka's bytes), `log`
(records of a log), `history` (records to facts), `arrays` (groups as arrays), `assignors` and `rebalance` (targets,
step and verdict), `scenarios` (one group as JSON), `protocol` (whole groups on paper), `custom` (users' assignors).
Called by all other packages, and calls none of them.
"""
