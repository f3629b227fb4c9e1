"""What groupledger knows without Spark: decoders, assignors, step, history."""
