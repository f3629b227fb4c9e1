"""`explain` by whatever a person has: a time, a generation, an incarnation, an offset; never silently another one."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from groupledger.answers.explanation import explain
from groupledger.answers.reader import LedgerReader
from groupledger.cli import main
from groupledger.core.faults import Fault
from groupledger.core.wire.offsets_log import LogKey, LogRecord, RecordKind, encode
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at, wire

TWO_LIVES = (
    History("pay")
    .state(1, "m a:0,1")
    .state(2, "m a:0 | n/i a:1", generation=2)
    .state(3, None, generation=None, snapshot_kind="deleted", state="Dead")
    .state(5, "o a:0,1", generation=1, incarnation=2, previous_snapshot_id=None)
    .state(6, "o a:0 | p/i a:1", generation=2, incarnation=2)
    .state(7, "o a:0 | q/i a:1", generation=2, incarnation=2, snapshot_kind="rewrite")
)
EPOCHS = (
    History("server", kind="consumer")
    .state(2, "m a:0,1")
    .state(4, "m a:0,1 | n", group_epoch=3, state="Reconciling")
    .state(6, "m a:0 | n a:1", group_epoch=3)
)
ENDED = History("ended").state(1, "m a:0").state(2, None, generation=None, snapshot_kind="deleted", state="Dead")
WIDE = History("wide").state(1, "m a:0").state(2, " | ".join(["m a:0", *(f"w-{n:03}" for n in range(300, 0, -1))]))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    rows = rows_of(TWO_LIVES, EPOCHS, ENDED, WIDE, topic_snapshots=[listed("a", 2)])
    return write(tmp_path_factory.mktemp("ledger"), **rows)


def ask(place, *arguments, code=0):
    ran = CliRunner().invoke(main, ["explain", *arguments, "--ledger", place])
    assert ran.exit_code == code, ran.output
    return ran


def test_a_gap_of_an_earlier_incarnation_is_none_of_a_later_one(tmp_path):
    gap = {"cluster_id": "dev", "group_id": "pay", "kind": "history-begins-late"}
    found = [gap | {"offset": 1, "incarnation": 1, "reason": "1"}, gap | {"offset": 5, "incarnation": 2, "reason": "2"}]
    found.append(gap | {"offset": 5, "incarnation": 1, "kind": "tombstone-missing", "reason": "3"})
    reader = LedgerReader(write(tmp_path, **rows_of(TWO_LIVES, topic_snapshots=[listed("a", 2)], coverage=found)))
    gaps = {offset: explain(reader, "pay", offset=offset).rebalance.gaps for offset in (1, 2, 5, 6)}
    assert gaps == {
        1: ("history-begins-late: 1",),
        2: (),
        5: ("history-begins-late: 2", "tombstone-missing: 3"),
        6: (),
    }


def test_what_a_member_is_still_to_give_up_has_not_changed_hands(tmp_path):
    of = History("server", kind="consumer").state(2, "m a:0,1", complete=True)
    rows = rows_of(of.state(4, "m a:0 | n", complete=True, state="Reconciling"), topic_snapshots=[listed("a", 2)])
    (still,) = [row for row in rows["member_snapshots"] if (row["offset"], row["member_id"]) == (4, "m")]
    answers = []
    for pending in (wire("a:1"), None):
        still["pending_revocation"] = pending
        answer = explain(LedgerReader(write(tmp_path / str(pending is None), **rows)), "server")
        answers.append([(each.partition, each.from_member_id, each.to_member_id) for each in answer.moved])
    assert answers == [[], [(1, "m", None)]]


@pytest.mark.parametrize(
    ("which", "offset", "others"),
    [
        ({}, 6, [2, 7]),
        ({"generation": 1}, 5, [1]),
        ({"generation": 1, "incarnation": 1}, 1, [5]),
        ({"generation": 2}, 6, [2, 7]),
        ({"incarnation": 1}, 3, []),
        ({"incarnation": 2}, 7, [2, 6]),
        ({"at": at(1)}, 1, [5]),
        ({"at": at(4)}, 3, []),
        ({"at": at(6)}, 6, [2, 7]),
        ({"at": at(59)}, 7, [2, 6]),
        ({"offset": 2}, 2, [6, 7]),
        ({"offset": 7}, 7, [2, 6]),
    ],
)
def test_a_rebalance_is_found_by_what_a_person_has_and_the_others_are_named(place, which, offset, others):
    told = explain(LedgerReader(place), "pay", **which).rebalance
    assert told.snapshot_id == f"log/dev/pay/{offset}"
    assert [each.offset for each in told.others] == others


@pytest.mark.parametrize("which", [{"at": at(4)}, {"at": at(5)}, {"offset": 4}, {"offset": 6}, {"generation": 3}])
def test_an_epoch_is_told_by_its_settled_state_wherever_in_it_the_time_is(place, which):
    told = explain(LedgerReader(place), "server", **which).rebalance
    assert (told.generation, told.snapshot_id, told.others) == (3, "log/dev/server/6", ())


@pytest.mark.parametrize(
    ("which", "code", "text"),
    [
        ({"at": at(0)}, "NOT_KNOWN_YET", "its record begins 2026-11-21T14:01"),
        ({"offset": 4}, "UNKNOWN_RECORD", "no state of group 'pay' is recorded at offset 4"),
        ({"incarnation": 3}, "UNKNOWN_GENERATION", "no incarnation 3 in this ledger; last known: 2"),
        ({"generation": 1, "incarnation": 3}, "UNKNOWN_GENERATION", "it has one in 1, 2"),
    ],
)
def test_what_is_not_there_is_refused(place, which, code, text):
    with pytest.raises(Fault, match=text) as refused:
        explain(LedgerReader(place), "pay", **which)
    assert refused.value.code == code


def test_for_a_person_the_time_asked_for_is_said_and_other_rebalances_are_listed(place):
    *told, known = ask(place, "pay", "--at", "2026-11-21T14:06:30Z").stdout.splitlines()
    assert known.startswith("known up to 2026-11-21T14:07:00.000Z")
    assert "in force at 2026-11-21T14:06:30.000Z" in told
    assert [" ".join(line.split()) for line in told[told.index("other rebalances to generation 2") :]] == [
        "other rebalances to generation 2",
        "recorded type incarnation kind explained by",
        "2026-11-21T14:02:00.000Z classic 1 generation --offset 2",
        "2026-11-21T14:07:00.000Z classic 2 rewrite --offset 7",
    ]
    assert "under way at 2026-11-21T14:04:30.000Z" in ask(place, "server", "--at", "2026-11-21T14:04:30Z").stdout
    assert json.loads(ask(place, "pay", "--at", "4m", "--json").stdout)["explanation"]["rebalance"]["incarnation"] == 1


@pytest.mark.parametrize(
    "options",
    [("--generation", "1", "--at", "1m"), ("--offset", "1", "--at", "1m"), ("--at", "1m", "--incarnation", "1")],
)
def test_two_ways_to_say_which_are_refused(place, options):
    assert "--generation" in ask(place, "pay", *options, code=2).stderr


def test_a_deleted_group_has_no_generation(place):
    assert "ended, deleted (cluster dev)" in ask(place, "ended").stdout.splitlines()


def test_many_members_that_join_are_one_line_by_name(place):
    lines = ask(place, "wide").stdout.splitlines()
    assert [line for line in lines if line.startswith("- ")] == [
        "- 300 joined: w-001, w-002, w-003, w-004, w-005, ... (--json has all)"
    ]


UNOWNED = History("holes", topics=("a", "b")).state(1, "m a:1,2").state(2, "m a:1,2").state(4, "m a:1 b:1")


def test_what_nobody_has_is_shown_though_nothing_moved(written):
    verdict = {"cluster_id": "dev", "group_id": "holes", "snapshot_id": "log/dev/holes/2", "scenario": "baseline"}
    results = [verdict | {"round": 1, "follow_up": False, "verdict": "invalid"}]
    ledger = written(**rows_of(UNOWNED, topic_snapshots=[listed("b", 2)], rebalances=results))
    told = explain(ledger, "holes", generation=2)
    assert told.moved == ()
    assert [(each.topic, each.partition, each.since, each.until) for each in told.unowned] == [
        ("a", 0, None, None),  # a1 is there, so a0 is, though no listing has the topic
        ("b", 0, at(1), None),
        ("b", 1, at(1), at(4)),
    ]
    assert told.rounds is None
    last = explain(ledger, "holes")
    assert [(each.topic, each.partition, each.since) for each in last.unowned if each.until is None] == [
        ("a", 2, at(4)),
        ("a", 0, None),
        ("b", 0, at(1)),
    ]


def recorded_with(session, rebalance):
    """The record of members m and n with these time-outs, in seconds."""
    member = ClassicGroupMember("m", None, "c", "/10.0.0.1", rebalance * 1000, session * 1000, b"", b"")
    group = GroupMetadata("consumer", 1, "range", "m", 0, (member, replace(member, member_id="n")))
    key, value = encode(LogRecord(LogKey(RecordKind.GROUP_METADATA, 2, "pay", {}), 3, group))
    return {"cluster_id": "dev", "group_id": "pay", "log_partition": 0, "offset": 1, "key": key, "value": value}


@pytest.mark.parametrize(
    ("session", "rebalance", "what"),
    [
        (45, 60, "n is gone (the log does not say whether it left, crashed or timed out)"),
        (90, 300, "n is gone: it left (1 min 0 s after the record before, its session of 1 min 30 s and "),
        (
            10,
            300,
            "n is gone: it left or its session ended (1 min 0 s after the record before, the rebalance timeout of",
        ),
        (90, 30, "n is gone: it left or it did not join again in time (1 min 0 s after the record before, its session"),
    ],
)
def test_time_outs_say_how_a_member_cannot_have_gone(written, session, rebalance, what):
    rows = rows_of(History("pay").state(1, "m a:0 | n a:1").state(2, "m a:0,1"))
    ledger = written(**rows, log_records=[recorded_with(session, rebalance)])
    [cause] = explain(ledger, "pay").causes
    assert cause.what.startswith(what)


def test_without_the_bytes_of_the_record_a_departure_stays_unknown(written):
    ledger = written(**rows_of(History("pay").state(1, "m a:0 | n a:1").state(2, "m a:0,1")))
    [cause] = explain(ledger, "pay").causes
    assert cause.what == "n is gone (the log does not say whether it left, crashed or timed out)"
