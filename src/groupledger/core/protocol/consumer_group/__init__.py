"""Groups of the consumer protocol (KIP-848) on paper: the coordinator of Kafka 4.4, its members, their heartbeats.

`consumer_coordinator` decides, `exchange` has what its members do, `coordinated_group` the queue, `consumer_events` the
events; `conversion` changes the type of a group while it runs. `share_group` and `streams_group` are subclasses.
"""
