"""Groups of the consumer protocol (KIP-848) on paper: the coordinator of Kafka 4.4, its members, their heartbeats.

`coordinator` decides, `client` and `classic_members` answer, `play` moves the clock, `conversion` changes the type of a
group while it runs.
"""
