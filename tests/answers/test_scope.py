"""What part of a ledger a question is about: patterns mean no more than they say, periods are half open."""

from datetime import timedelta

import pytest

from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope, scope
from groupledger.answers.storms import storms
from groupledger.core.faults import Fault
from tests.answers.group_histories import history, second, together
from tests.answers.ledgers import write

NAMES = ("a_b", "axb", "a%b", "a\\b", "a*b", "O'Brien", "a")


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    groups = [history(name).state(number * 60, 1, {"m": ""}) for number, name in enumerate(NAMES)]
    return LedgerReader(write(tmp_path_factory.mktemp("ledger"), **together(groups)))


def inside(reader, **asked):
    condition = scope(reader, RequestedScope(**asked)).where("t.")
    query = f"SELECT t.group_id FROM current_group_snapshots t WHERE {condition} ORDER BY t.observed_at"
    return [row["group_id"] for row in records(reader, query)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a_*", ["a_b"]),
        ("a%?", ["a%b"]),
        ("a\\*", ["a\\b"]),
        ("a?b", ["a_b", "axb", "a%b", "a\\b", "a*b"]),
        ("O'*", ["O'Brien"]),
        ("a_b", ["a_b"]),
        ("*", list(NAMES)),
    ],
)
def test_only_two_characters_of_a_pattern_stand_for_others(reader, pattern, names):
    assert inside(reader, group=pattern) == names


def test_a_period_has_its_first_moment_and_not_its_last(reader):
    assert inside(reader, since=second(60), until=second(180)) == ["axb", "a%b"]
    assert inside(reader, since=timedelta(minutes=1)) == ["O'Brien", "a"]
    assert inside(reader, until=timedelta(minutes=5)) == ["a_b"]


@pytest.mark.parametrize(("until", "said"), [(second(1), ["no record lies"]), (second(180), ["1 gap in"])])
def test_gaps_are_said_of_a_period_in_which_the_ledger_has_records(written, until, said):
    gap = {"cluster_id": "dev", "group_id": "a", "snapshot_id": "log/dev/0/1", "kind": "generations-skipped"}
    reader = written(**together([history("a").state(60, 1, {"m": ""})]), coverage=[gap])
    notes = storms(reader, RequestedScope(until=until), 10).notes
    assert [note.startswith(begin) for note, begin in zip(notes, said, strict=True)] == [True] * len(said)


def test_what_cannot_be_is_refused(reader):
    with pytest.raises(Fault, match="expected since < until") as caught:
        scope(reader, RequestedScope(since=timedelta(), until=timedelta()))
    assert caught.value.code == "BAD_PERIOD"
    with pytest.raises(Fault, match="no group 'b_\\*' in this ledger"):
        scope(reader, RequestedScope(group="b_*"))
