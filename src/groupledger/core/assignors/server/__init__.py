"""Run Kafka's server-side assignors (KIP-848, KIP-932, KIP-1071) as kafka-group-coordinator 4.1 to 4.4 does.

Sets and the order of the records are Kafka's, so a result can be the next round's input. See decision 0020. Read
`server_group` (the input), `server_batch`, `uniform` and `server_range`, `simple` and `tasks` (share and Streams
groups); then the orders that Java's collections give (`java_collections`, `iteration_orders`, `orders`) and
`judgement` (what a record shows). Called by `core.rebalance`, `core.scenarios` and `core.protocol`.
"""
