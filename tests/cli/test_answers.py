"""What an answer of `show` looks like, from values made by hand."""

import json
from datetime import UTC, datetime

import pytest

from groupledger.answers.listings import Listing
from groupledger.answers.ownership import Change, Holding, Member, Ownership
from groupledger.answers.rebalance import MemberMove, Rebalance, Result
from groupledger.answers.topics import TopicLife
from groupledger.cli.answers import LOWER_BOUND, as_json, spans, tell
from groupledger.cli.output import Output
from groupledger.core.least_moves import Certainty


def at(minute):
    return datetime(2026, 11, 21, 14, minute, tzinfo=UTC)


def said(capsys, answer):
    tell(Output(as_json=False), answer)
    return capsys.readouterr().out


def given(minute, before, after, offset):
    return Change(at(minute), before, after, None, f"log/dev/0/{offset}", offset)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([], "-"),
        ([("a", 0)], "a:0"),
        ([("b", 1), ("a", 2), ("b", 0), ("b", 3)], "a:2 b:0-1,3"),
        ([("a", number) for number in range(1000)], "a:0-999"),
    ],
)
def test_partitions_are_written_as_spans(places, expected):
    assert spans(places) == expected


@pytest.mark.parametrize(
    ("holding", "expected"),
    [
        (
            Holding(
                "dev", "pay", None, given(1, None, "m1", 5), given(9, "m1", "m2", 8), Member("m1", "app", "i1"), True
            ),
            "dev pay m1 app i1 2026-11-21T14:01:00.000Z 2026-11-21T14:09:00.000Z m2 log/dev/0/5 -",
        ),
        (
            Holding("dev", "pay", "Id0", given(1, "m1", None, 5), None, None, True),
            "dev pay nobody - - 2026-11-21T14:01:00.000Z - - log/dev/0/5 Id0",
        ),
        (
            Holding("dev", "pay", None, None, given(9, None, "m2", 8), None, True),
            "dev pay nobody - - - 2026-11-21T14:09:00.000Z m2 - -",
        ),
        (
            Holding("dev", "pay", None, None, given(9, None, "m2", 8), None, False),
            "dev pay not known: its record begins later - - - 2026-11-21T14:09:00.000Z m2 - -",
        ),
        (
            Holding("dev", "pay", None, given(1, None, "m1", 5), given(9, "m1", None, 8), Member("m1"), True),
            "dev pay m1 - - 2026-11-21T14:01:00.000Z 2026-11-21T14:09:00.000Z nobody log/dev/0/5 -",
        ),
    ],
)
def test_a_holding_is_a_line(capsys, holding, expected):
    lines = said(capsys, Ownership("orders", 7, at(3), (holding,), (), ("mind the gap",))).splitlines()
    assert lines[:2] == ["", "orders-7 at 2026-11-21T14:03:00.000Z, as the coordinator recorded it"]
    assert [" ".join(line.split()) for line in lines[3:]] == [expected, "note: mind the gap"]


def test_a_topic_made_again_shows_its_lives(capsys):
    lives = (TopicLife("dev", "A", 3, at(0), at(2)), TopicLife("dev", "B", 5, at(2), None))
    out = said(capsys, Ownership("orders", 0, at(3), (), lives, ()))
    assert [line.split()[:3] for line in out.splitlines() if line.startswith("dev")] == [
        ["dev", "A", "3"],
        ["dev", "B", "5"],
    ]


REBALANCE = Rebalance(
    "dev", "pay", "classic", "log/dev/0/9", "generation", 0, 3, None, "range", "Stable", True, at(3),
    (MemberMove("m1", None, None, True, (("a", 0), ("a", 1)), (("a", 0),)),
     MemberMove("m2", None, None, False, (), ())),
    (Result("baseline", "range", "EAGER", "ASSIGNED", "exact", 1, 1, 0, False, "lower-bound", 1, "exact", ("a", "b")),
     Result("older", "range", "EAGER", "ASSIGNED", "exact", 1, 1, 0, False, None, None, None, None),
     Result("what-if", "range", "EAGER", "ASSIGNED", "not-compared", 1, None, 0, False,
            "not-applicable: topic-unknown", None, "not-applicable: not-compared", None)),
    ("STALE_CLAIM: m1 said 2",), ("log/dev/0/11",), ("fold-cut: the log ends here",), ("a", "b"),
)  # fmt: skip


def test_a_rebalance_is_members_results_and_findings(capsys):
    out = said(capsys, REBALANCE)
    lines = [line.split() for line in out.splitlines()]
    assert ["m1", "a:0-1", "a:0", "-", "a:1"] in lines
    assert ["m2", "(gone)", "-", "-", "-", "-"] in lines
    assert ["baseline", "range", "EAGER", "ASSIGNED", "exact", "1", "1", "or", "more", "0", "no"] in lines
    assert ["older", "range", "EAGER", "ASSIGNED", "exact", "1", "1", "0", "no"] in lines
    assert ["what-if", "range", "EAGER", "ASSIGNED", "not-compared", "1", "topic", "unknown", "0", "no"] in lines
    said_of_records = [line for line in out.splitlines() if line.startswith("whose")]
    assert said_of_records == [
        "whose algorithm (scenario baseline): exact as a or b",
        "whose algorithm (scenario older): not known: an older groupledger computed this; "
        "`groupledger assign` computes it again",
    ]
    assert "finding: STALE_CLAIM: m1 said 2" in out
    assert "gap since the snapshot before: fold-cut: the log ends here" in out
    assert "in no topic listing at that time, so that partition counts are not known: a, b" in out
    assert "other records of this generation: log/dev/0/11" in out


def test_the_words_for_the_least_moves_are_those_of_the_ledger():
    assert Certainty.LOWER_BOUND.text == LOWER_BOUND


def test_a_listing_says_what_it_left_off(capsys):
    out = said(
        capsys, [Listing("groups", ("group_id", "members"), (("pay", 1200),), 7), Listing("runs", ("kind",), (), 0)]
    )
    lines = [" ".join(line.split()) for line in out.splitlines() if line]
    assert lines == ["groups", "group id members", "pay 1,200", "... and 6 more (--limit)", "runs", "none"]


@pytest.mark.parametrize(
    "answer", [REBALANCE, Ownership("orders", 0, at(3), (), (), ()), [Listing("runs", ("at",), ((at(1),),), 1)]]
)
def test_json_is_one_line_and_says_the_same(capsys, answer):
    output = Output(as_json=True)
    tell(output, answer)
    output.result(as_json(answer))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "2026-11-21T14:0" in json.dumps(json.loads(out))
