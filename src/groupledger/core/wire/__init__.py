"""Kafka's bytes, read and written by Kafka's own message specs: log records, consumer protocol, user data."""
