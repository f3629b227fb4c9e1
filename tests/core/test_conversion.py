"""What a coordinator makes of a classic group when it is converted, and what its reasons amount to."""

import pytest

from groupledger.core.assignors.server.across_conversion import GroupBefore, MemberBefore, convert
from groupledger.core.obstacles import Obstacle, Readiness, readiness
from groupledger.core.wire.codec import uuid_text

LISTED = {topic: (uuid_text(topic.encode() * 16), 4) for topic in "ab"}


def group(*members, listed=LISTED):
    """Members as (name, topics, partitions of `a`)."""
    made = [
        MemberBefore(name, None, tuple(topics), frozenset(("a", number) for number in owned))
        for name, topics, owned in members
    ]
    return GroupBefore(tuple(made), listed)


@pytest.mark.parametrize(
    ("assignor", "of", "moves", "loads"),
    [
        ("uniform", group(("m", "a", (0, 1, 2, 3)), ("n", "a", ())), 2, (2, 2)),
        ("uniform", group(("m", "a", (0, 3)), ("n", "a", (1, 2))), 0, (2, 2)),
        ("uniform", group(("m", "a", (0, 1)), ("n", "a", ())), 0, (2, 2)),
        ("range", group(("m", "a", (0, 3)), ("n", "a", (1, 2))), 2, (2, 2)),
        ("uniform", group(("m", "a", (0, 1, 2, 3)), ("n", "ab", ())), 0, (4, 4)),
        ("uniform", group(("m", "a", (0, 1, 2, 3, 9)), ("n", "a", ())), 2, (2, 2)),
        ("uniform", group(("m", "a", (0, 1, 2, 3, 4)), ("n", "ab", ())), 0, (4, 4)),
    ],
)
def test_what_moves_is_what_another_member_has_afterwards(assignor, of, moves, loads):
    [answer] = convert(assignor, [of])
    assert answer.why is None
    assert tuple(len(answer.after[name]) for name in "mn") == loads
    assert answer.moves(of) == moves


def test_a_group_that_cannot_be_told_stands_beside_the_others():
    fine, strange = group(("m", "a", ())), group(("m", "x", ()))
    found = convert("range", [strange, fine, strange, group(("n", "b", ()))])
    assert [each.after is None for each in found] == [True, False, True, False]
    assert found[0].why == "no listing has the partitions of x"
    assert found[1].after["m"] == {("a", number) for number in range(4)}
    assert found[3].after["n"] == {("b", number) for number in range(4)}
    assert [each.why for each in convert("uniform", [strange])] == ["no listing has the partitions of x"]


def test_one_reason_that_blocks_decides():
    def state(*codes):
        return readiness(Obstacle[code] for code in codes)

    assert state() is Readiness.READY
    assert state("STATIC_MEMBERS") is Readiness.READY
    assert state("STATIC_MEMBERS", "CUSTOM_ASSIGNOR") is Readiness.UNKNOWN
    assert state("CUSTOM_ASSIGNOR", "STREAMS", "EMPTY_NOW") is Readiness.BLOCKED
    assert state("CLIENT_LACKS_KIP_848", "EMPTY_NOW") is Readiness.CONVERTS
    assert state("CLIENT_LACKS_KIP_848", "CUSTOM_ASSIGNOR") is Readiness.UNKNOWN
