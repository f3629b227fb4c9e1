"""Moments and assignments as tests write them."""

from datetime import UTC, datetime


def at(minute, hour=14):
    return datetime(2026, 11, 21, hour, minute, tzinfo=UTC)


def wire(text):
    """`a:0,1 b/B1:2` -> the wire layout of facts: topic b has the id B1, of a no id is known."""
    pairs = (entry.split(":") for entry in text.split())
    return [
        {"topic_id": topic_id or None, "topic": topic, "partitions": [int(number) for number in numbers.split(",")]}
        for (topic, _, topic_id), numbers in ((name.partition("/"), numbers) for name, numbers in pairs)
    ]
