"""Every cooperative-sticky record of the librdkafka groups, recomputed by librdkafka's algorithm: list for list."""

from collections import Counter

from groupledger.core import assignors
from groupledger.tables import columns as c
from tests.engine.bucket_rows import computed
from tests.engine.captured_rows import CAPTURES, captured_groups, rows_of


def verdicts():
    """Of the captured groups with librdkafka members alone."""
    counts: Counter[str] = Counter()
    for capture in CAPTURES:
        groups = [group for group in captured_groups(capture) if "rdk" in group]
        rows = [row for group in groups for row in rows_of(capture, group)]
        done = computed(rows)["rebalances"] if rows else []
        counts.update(row[c.VERDICT] for row in done if row[c.ASSIGNOR] == "cooperative-sticky")
    return counts


def test_all_records_are_exact(monkeypatch):
    assert verdicts() == {"exact": 11, "equal-sets": 24, "valid-different": 13}
    ours = assignors.ASSIGNORS["librdkafka-cooperative-sticky"]
    monkeypatch.setitem(assignors.ASSIGNORS, "cooperative-sticky", ours)
    assert verdicts() == {"exact": 48}
