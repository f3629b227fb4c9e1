"""Moments and assignments as tests write them."""

from datetime import UTC, datetime


def at(minute, hour=14):
    return datetime(2026, 11, 21, hour, minute, tzinfo=UTC)


def wire(text):
    """`a:0,1 b:2` -> the wire layout of facts, without topic ids."""
    pairs = (entry.split(":") for entry in text.split())
    return [
        {"topic_id": None, "topic": topic, "partitions": [int(number) for number in numbers.split(",")]}
        for topic, numbers in pairs
    ]
