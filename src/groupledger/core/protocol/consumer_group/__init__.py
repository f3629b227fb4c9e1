"""Groups of the consumer protocol (KIP-848) on paper: the coordinator of Kafka 4.4, its members, their heartbeats.

Read `consumer_coordinator` (decides), `exchange` (what members do), `coordinated_group` (the queue), `consumer_events`
(the events), then `streams_group`. `core.protocol.simulator` changes the type of a group while it runs.
Called by `core.protocol.simulator`.
"""
