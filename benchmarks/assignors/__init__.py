"""Our assignors against Kafka's Java and franz-go on the same groups: `python -m benchmarks.assignors`."""
