"""Partitions in words, for evidence: `clicks 0-3,7`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MOST_SPANS = 40
"""A hostile assignment must not make an evidence of megabytes."""


def spans(partitions: Iterable[int]) -> str:
    """`{0, 1, 2, 3, 7}` -> `0-3,7`."""
    runs: list[list[int]] = []
    for partition in sorted(partitions):
        if runs and partition <= runs[-1][1] + 1:
            runs[-1][1] = partition
        else:
            runs.append([partition, partition])
    shown = [f"{first}-{last}" if last > first else str(first) for first, last in runs[:MOST_SPANS]]
    return ",".join(shown) + (f",... ({len(runs) - MOST_SPANS} more)" if len(runs) > MOST_SPANS else "")


def topic_spans(partitions: Mapping[str, Iterable[int]]) -> str:
    """`{"clicks": {0, 1}, "grow": {4}}` -> `clicks 0-1; grow 4`; `nothing` for none."""
    texts = [f"{topic} {spans(numbers)}" for topic, numbers in sorted(partitions.items())]
    more = f"; ... ({len(texts) - MOST_SPANS} more topics)" if len(texts) > MOST_SPANS else ""
    return "; ".join(texts[:MOST_SPANS]) + more if texts else "nothing"
