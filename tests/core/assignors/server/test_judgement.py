"""The verdict on a coordinator's target: what a broker wrote is exact, what was changed afterwards is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from groupledger.core.assignors.server import ServerMember, Topic, TopicId
from groupledger.core.assignors.server.certainty import Certainty
from groupledger.core.assignors.server.judgement import View, judge
from groupledger.core.assignors.server.log import Written
from groupledger.core.verdict import Verdict
from tests.core.assignors.server.test_captures import listings, targets

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)
TOPICS = {"t": Topic(T, 4), "u": Topic(U, 2)}
NOW = View(Verdict.EXACT, TOPICS)


def written(after, assignor="range", members=("A", "B"), **values):
    told = tuple(ServerMember(each, ("t",)) for each in members)
    given = {"before_known": True, "history_known": True, "has_regex": False, **values}
    return Written(3, 9, 0, assignor, told, (1,) * len(told), None, after, **given)


RANGE = {"A": ((T, (0, 1)),), "B": ((T, (2, 3)),)}


@pytest.mark.parametrize(
    ("after", "views", "text"),
    [
        (RANGE, [NOW], "exact"),
        (
            RANGE,
            [View(Verdict.EXACT, {"t": Topic(T, 5)}), View(Verdict.EXACT_OLDER_TOPICS, TOPICS)],
            "exact-older-topics",
        ),
        ({"A": ((T, (1, 0)),), "B": ((T, (2, 3)),)}, [NOW], "equal-sets"),
        ({"A": ((T, (2, 3)),), "B": ((T, (0, 1)),)}, [NOW], "valid-different"),
        ({"A": ((T, (0, 1)),), "B": ((T, (1, 2)),)}, [NOW], "invalid"),
        ({"A": ((U, (0,)),), "B": ()}, [NOW], "invalid"),
        (RANGE, [View(Verdict.EXACT, {"u": TOPICS["u"]})], "cannot-tell: no partition counts"),
        (RANGE, [], "cannot-tell: no partition counts"),
    ],
)
def test_a_target_is_judged_among_the_topics_of_its_moment(after, views, text):
    assert judge(written(after), views).verdict.text == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"before_known": False}, "cannot-tell: the group before is not known"),
        ({"has_regex": True}, "cannot-tell: a regular expression subscribes"),
    ],
)
def test_nothing_is_said_where_what_it_was_computed_from_is_unknown(values, text):
    assert judge(written(RANGE, **values), [NOW]).verdict.text == text


def neighbours():
    """Two members that share a bucket and a slot: their hashes are equal, as Java has it."""
    return written({}, "uniform", ("Aa", "BB"), history_known=False)


def test_where_neighbours_may_compete_equality_says_so_and_a_difference_tells_nothing():
    texts = Counter(
        judge(replace(neighbours(), after=after), [NOW]).verdict.text
        for after in (
            {"Aa": ((T, (0, 1)),), "BB": ((T, (2, 3)),)},
            {"Aa": ((T, (2, 3)),), "BB": ((T, (0, 1)),)},
        )
    )
    assert texts == {"exact, unless bucket neighbours compete": 1, "cannot-tell: bucket neighbours compete": 1}


@pytest.mark.parity
@pytest.mark.parametrize(
    ("capture", "name", "count"), [("dev", "offsets", 24), ("edge", "offsets", 50), ("compacted", "offsets-before", 4)]
)
def test_what_a_broker_wrote_is_exact(capture, name, count):
    views = [View(Verdict.EXACT, topics) for topics in listings(capture)]
    found = [judge(target, views) for target in targets(capture, name) if target.before_known]
    assert len(found) == count
    assert {each.verdict.text.split(",")[0] for each in found} == {"exact"}
    assert Certainty.EXACT in {each.certainty for each in found}


def test_what_compaction_took_is_not_judged():
    (left,) = targets("compacted")
    assert judge(left, [View(Verdict.EXACT, topics) for topics in listings("compacted")]).certainty is None
