"""Run Kafka's server-side assignors (KIP-848, KIP-932, KIP-1071) as kafka-group-coordinator 4.1 to 4.4 does.

Sets and the order of the records are Kafka's, so a result can be the next round's input (decision 0020). Read
`server_group` (a group, and many as arrays), `assign` (the batch, tree buckets key by key), then `uniform` or
`server_range`; `simple` for share groups, `tasks` for Streams groups. `orders`, `iteration_orders` and
`java_collections` give the orders of Java's tables. `judgement` compares a recorded target with the answer,
`conversion` forecasts a classic group's target.
"""
