"""`timeline` for a person and for a program: a group's lines, a partition's owners, and how they fit a terminal."""

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.answer_columns import WIDE, Column
from groupledger.answers.causes import Cause, CauseKind
from groupledger.answers.spoken import OF_MEMBERS, in_short, shortened_names, spans
from groupledger.cli import main
from groupledger.cli.output import fitting
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write

IDS = [f"app-{number}-3f2504e0-4f89-11d3-9a0c-0305e82c330{number}" for number in (1, 2)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    one, other = IDS
    history = History("pay").state(1, f"{one} a:0,1").state(3, f"{one} a:0 | {other} a:1").state(5, f"{other} a:0,1")
    rows = rows_of(history, History("audit").state(2, "m a:0,1"), topic_snapshots=[listed("a", 2)])
    return write(tmp_path_factory.mktemp("ledger"), **rows)


def run(place, *arguments, code=0, columns=None):
    environment = {"COLUMNS": str(columns) if columns else ""}
    ran = CliRunner(env=environment).invoke(main, ["timeline", *arguments, "--ledger", place])
    assert ran.exit_code == code, ran.output
    return ran


def lines(ran):
    told = [line for line in ran.stdout.splitlines() if line]
    assert told.pop().startswith("known up to ")
    return [" ".join(line.split()) for line in told]


def test_a_group_is_a_line_a_rebalance(place):
    assert lines(run(place, "pay")) == [
        "pay (classic, cluster dev; 2026-11-21, UTC)",
        "member ids begin with app-",
        "time gen members why hands state recorded in assignor",
        "14:01:00.000 1 -> 1 first record 2 Stable log/dev/pay/1 range",
        "14:03:00.000 3 1 -> 2 2-3f2504e0 joined 1 Stable log/dev/pay/3 range",
        "14:05:00.000 5 2 -> 1 1-3f2504e0 gone 1 Stable log/dev/pay/5 range",
    ]


def test_groups_by_pattern_stand_in_order_of_time(place):
    assert [line.split()[:2] for line in lines(run(place, "*", "--limit", "3"))[3:-1]] == [
        ["14:02:00.000", "audit"],
        ["14:03:00.000", "pay"],
        ["14:05:00.000", "pay"],
    ]
    assert lines(run(place, "*", "--limit", "3"))[-1] == "... and 1 older (--limit)"


def test_a_length_of_time_counts_back_from_the_newest_moment_in_the_ledger(place):
    told = json.loads(run(place, "pay", "--since", "2m", "--json").stdout)["timeline"]
    assert [each["generation"] for each in told["entries"]] == [3, 5]
    assert told["since"] == "2026-11-21T14:03:00.000Z"
    told = json.loads(run(place, "*", "--since", "1h", "--until", "2m", "--json").stdout)["timeline"]
    assert [each["generation"] for each in told["entries"]] == [1, 2, 3]
    assert "nothing in that time" in run(place, "audit", "--since", "1m").stdout
    assert (
        run(place, "pay", "--since", "2026-11-21T14:04").stderr == "no time zone in '2026-11-21T14:04': UTC assumed\n"
    )


def test_a_program_has_causes_and_moves_in_full(place):
    entry = json.loads(run(place, "pay", "--json").stdout)["timeline"]["entries"][1]
    assert [(cause["kind"], cause["about"]) for cause in entry["causes"]] == [("member-joined", IDS[1])]
    assert entry["moved"] == [{"topic": "a", "partition": 1, "from_member_id": IDS[0], "to_member_id": IDS[1]}]


def test_a_partition_is_a_line_an_owner(place):
    asked = ("--partition", "a-1", "--group", "pay")
    assert lines(run(place, *asked)) == [
        "a-1 (pay, cluster dev; 2026-11-21, UTC) to 2026-11-21 14:05:00.000, as recorded",
        "since for owner gen recorded in until",
        "14:01:00.000 2 min 0 s app-1-3f2504e0 1 log/dev/pay/1 14:03:00.000",
        "14:03:00.000 2 min 0 s, still app-2-3f2504e0 3 log/dev/pay/3 -",
    ]
    told = json.loads(run(place, *asked, "--since", "1m", "--json").stdout)["partition_timeline"]
    assert [(each["member_id"], each["generation"]) for each in told["spans"]] == [(IDS[1], 3)]
    assert "group" in lines(run(place, "--partition", "a-1"))[1]


def test_what_there_is_no_room_for_is_said(place):
    narrow = run(place, "pay", columns=60).stdout.splitlines()[:-1]
    assert narrow[-1] == "no room for: recorded in, assignor (--wide)"
    assert max(map(len, narrow)) <= 60
    assert IDS[1] in run(place, "pay", "--wide", columns=60).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "a group (timeline payments), a --partition, or both"),
        (["pay", "--group", "x"], "two groups: 'pay' and --group 'x'"),
        (["pay", "--since", "yesterday"], "or how long before now"),
        (["pay", "--since", "1m", "--until", "2m"], "--since 2026-11-21 14:04:00.000 is after --until"),
        (["pya"], "no group 'pya' in this ledger; did you mean pay"),
        (["--partition", "a"], "a partition is TOPIC-NUMBER"),
        (["--partition", "b-1"], "no topic 'b'"),
        (["pay", "--limit", "0"], "--limit"),
    ],
)
def test_what_is_wrong_is_one_line(place, words, says):
    ran = run(place, *words, code=2)
    assert (ran.stdout, len(ran.stderr.splitlines())) == ("", 1)
    assert says in ran.stderr


@pytest.mark.parametrize(
    ("room", "left"),
    [(99, "abcd"), (26, "abcd"), (25, "abc"), (18, "abc"), (17, "ac"), (10, "ac"), (9, "a"), (1, "a")],
)
def test_the_columns_that_matter_least_go_first(room, left):
    columns = [Column("a"), Column("b", 2), Column("c", 1, 4), Column("d", WIDE)]
    assert "".join(columns[at].name for at in fitting(columns, [4, 6, 90, 6], room)) == left


def test_what_nothing_breaks_into_lines_needs_all_its_width():
    columns = [Column("a"), Column("c", 1, 4)]
    assert fitting(columns, [4, 90], 80) == [0, 1]
    assert fitting(columns, [4, 90], 80, breaking=False) == [0]


def test_every_cause_has_words():
    for kind in CauseKind:
        assert in_short([Cause(kind, "x", "")], {})
    assert set(CauseKind) >= OF_MEMBERS
    joined = [Cause(CauseKind.MEMBER_JOINED, f"m{number}", "") for number in range(3)]
    added = Cause(CauseKind.PARTITIONS_ADDED, "a", "")
    assert in_short([*joined[:2], added], {"m0": "0", "m1": "1"}) == "0, 1 joined; partitions added to a"
    assert in_short(joined, {}) == "3 joined"
    deleted = [Cause(CauseKind.TOPIC_DELETED, f"t{number}", "") for number in range(3)]
    assert in_short(deleted[:1], {}) == "topic t0 deleted"
    assert in_short(deleted[:2], {}) == "topics t0, t1 deleted"
    assert in_short(deleted, {}) == "3 topics deleted"
    perhaps = Cause(CauseKind.TOPIC_DELETED, "x", "", possible=True)
    assert in_short([*deleted, perhaps], {}) == "3 topics deleted; perhaps topic x deleted"


def test_members_are_called_by_what_tells_them_apart():
    assert shortened_names(IDS) == ({IDS[0]: "1-3f2504e0", IDS[1]: "2-3f2504e0"}, "app-")
    assert shortened_names(IDS[:1]) == ({IDS[0]: "app-1-3f2504e0"}, "")


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
