"""Groups of the consumer protocol (KIP-848) on paper: the coordinator of Kafka 4.4, its members, their heartbeats.

Read `consumer_coordinator` (decides), `exchange` (what members do), `coordinated_group` (the queue), `consumer_events`
(the events), `conversion` (the type of a group while it runs), then the subclasses `share_group` and `streams_group`.
Called by `core.protocol.simulator`.
"""
