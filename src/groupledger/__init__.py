"""groupledger: flight recorder and simulator for Kafka consumer-group rebalances."""

__version__ = "0.1.0"
