"""Which records need no assignor to be asked, which cannot be attributed, and what an asked one comes to."""

from __future__ import annotations

import numpy as np
import pytest

from groupledger.core.arrays.batch import NONE
from groupledger.core.rebalance.attribution import Judged, attributed, is_foreign, settled, unless_it_ran
from groupledger.core.rebalance.registry import Attributed, in_words
from groupledger.core.rebalance.verdict import Verdict
from tests.core.test_attribution import happened

PEOPLED = {"peopled": True, "modern": False, "rejected": False, "foreign": False}


@pytest.mark.parametrize(
    ("verdict", "but", "expected"),
    [
        (Verdict.EXACT, {}, Attributed.EXACT),
        (Verdict.EXACT, {"foreign": True}, NONE),
        (Verdict.EXACT, {"modern": True}, Attributed.NO_LEADER),
        (Verdict.EXACT_UNLESS_NEIGHBOURS, {"modern": True}, Attributed.NO_LEADER),
        (Verdict.CANNOT_TELL_SHARE_GROUP, {"modern": True, "peopled": False}, Attributed.NO_MEMBERS),
        (Verdict.REWRITE, {}, Attributed.REWRITE),
        (Verdict.REWRITE, {"rejected": True}, Attributed.REJECTED),
        (Verdict.NOT_COMPARED, {}, Attributed.NOT_COMPARED),
        (Verdict.NOT_COMPARED, {"peopled": False}, Attributed.NO_MEMBERS),
        (Verdict.CANNOT_TELL_NO_RECORD, {}, Attributed.NO_RECORD),
        (Verdict.CANNOT_TELL_NO_ASSIGNOR, {}, Attributed.NO_ASSIGNOR_RECORDED),
        (Verdict.CANNOT_TELL_INCOMPLETE, {}, Attributed.INCOMPLETE_SNAPSHOT),
        (Verdict.CANNOT_TELL_PROTOCOL_TYPE, {}, Attributed.OTHER_PROTOCOL_TYPE),
        (Verdict.EQUAL_SETS, {}, NONE),
        (Verdict.EXACT_OLDER_TOPICS, {}, NONE),
        (Verdict.TOPIC_UNKNOWN_TO_LEADER, {}, NONE),
        (Verdict.VALID_DIFFERENT, {}, NONE),
        (Verdict.INVALID, {}, NONE),
        (Verdict.CANNOT_TELL_ASSIGNOR, {}, NONE),
        (Verdict.CANNOT_TELL_NO_COUNTS, {}, NONE),
        (Verdict.CANNOT_TELL_ASSIGNOR_FAILS, {}, NONE),
    ],
)
def test_what_is_known_without_asking(verdict, but, expected):
    said = {name: np.array([value]) for name, value in (PEOPLED | but).items()}
    assert settled(Judged(np.array([verdict]), **said)).tolist() == [expected]


@pytest.mark.parametrize(
    ("protocol", "version", "user_data", "foreign"),
    [
        ("range", 3, None, False),
        ("range", 3, b"", True),
        ("range", 3, b"?", False),
        ("cooperative-sticky", 1, b"\0\0\0\5", True),
        ("cooperative-sticky", 3, b"\0\0\0\5", False),
        ("range", 2, None, True),
        ("cooperative-sticky", 0, b"\0\0\0\5", True),
        ("cooperative-sticky", 3, b"\0\0\0\0", True),
        ("sticky", 3, None, False),
        ("sticky", 0, b"", True),
        ("sticky", 0, b"\0\1\0\0\0\0\0\0\0\1", True),
        (None, None, None, False),
    ],
)
def test_bytes_that_java_does_not_write(protocol, version, user_data, foreign):
    """What nobody is known to write may be anybody's; Sarama writes as Java clients before 3.5 do."""
    assert is_foreign(protocol, version, user_data) is foreign


FIVE = ({"t": 5},)
OTHERS = ("kafka-python-range",)


@pytest.mark.parametrize(
    ("lists", "verdict", "ran", "expected", "named"),
    [
        ([[0, 1, 2], [3, 4]], Verdict.VALID_DIFFERENT, "range", Attributed.EXACT, "java-range"),
        ([[0, 1], [2, 3, 4]], Verdict.VALID_DIFFERENT, "range", Attributed.EXACT, "kafka-go-range"),
        ([[0], [1, 2, 3, 4]], Verdict.VALID_DIFFERENT, "range", Attributed.NO_KNOWN_ASSIGNOR, None),
        ([[0], [1, 2, 3, 4]], Verdict.EXACT, "range", Attributed.EXACT, "java-range"),
        ([[0], [1, 2, 3, 4]], Verdict.EQUAL_SETS, "range", Attributed.EQUAL_SETS, "java-range"),
        ([[0], [1, 2, 3, 4]], Verdict.EXACT_NEWER_TOPICS, "my:own", Attributed.EQUAL_SETS, "my:own"),
        ([[0, 1], [2, 3, 4]], Verdict.EQUAL_SETS, "range", Attributed.EXACT, "kafka-go-range"),
        ([[0, 1], [2, 5]], Verdict.INVALID, "range", Attributed.PARTITIONS_NOT_LISTED, None),
        ([[0, 1], [2, 5]], Verdict.TOPIC_UNKNOWN_TO_LEADER, "range", Attributed.EQUAL_SETS, "java-range"),
        ([[0], [1, 2, 3, 4]], Verdict.CANNOT_TELL_ASSIGNOR, None, Attributed.NO_KNOWN_ASSIGNOR, None),
    ],
)
def test_the_one_that_ran_is_named_where_it_agrees_best(lists, verdict, ran, expected, named):
    """By its verdict, which knows racks; the others are asked without."""
    code, names = attributed(happened("range", lists), FIVE, verdict, ran)
    assert (code, named is None or named in names, bool(names)) == (expected, True, named is not None)


def test_what_ran_is_java_s_or_goes_by_its_own_name():
    assert unless_it_ran(Attributed.TOO_LARGE, Verdict.EXACT, "range") == (Attributed.EXACT, ("java-range",))
    assert unless_it_ran(Attributed.TOO_LARGE, Verdict.EXACT, "sticky-stream-join")[1] == ("sticky-stream-join",)
    assert unless_it_ran(Attributed.TOO_LARGE, Verdict.VALID_DIFFERENT, "range") == (Attributed.TOO_LARGE, ())
    assert unless_it_ran(Attributed.EQUAL_SETS, Verdict.EQUAL_SETS, "range", OTHERS)[1] == OTHERS


@pytest.mark.parametrize(
    ("attribution", "names", "words"),
    [
        ("exact", ["a", "b"], "exact as a or b"),
        ("equal-sets", ["a"], "equal sets as a"),
        ("perhaps", ["a"], "perhaps a"),
        ("no-known-assignor", [], "no known assignor"),
        ("not-applicable: no-leader", None, "not applicable: no leader"),
        (
            None,
            None,
            "not known: an older groupledger computed this; `groupledger assign` computes it again",
        ),
    ],
)
def test_in_words(attribution, names, words):
    assert in_words(attribution, names) == words
