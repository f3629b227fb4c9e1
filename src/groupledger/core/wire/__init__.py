"""Read and write Kafka's bytes by Kafka's own message specs: log records, consumer protocol, user data.

Read `codec` (a spec to a decoder), `records` and `offsets_log` (the log's keys and values), `consumer_protocol`
(subscriptions and assignments, and what assignors put in them); `group_metadata` decodes whole columns.
Called by `core.log`, `core.history`, `core.protocol` and `engine`.
"""
