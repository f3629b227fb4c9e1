"""`who` for a person and for a program: what a line says, what a narrow terminal leaves out, what is refused."""

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.owners import Change, Holding, MemberIdentity, OwnershipAt
from groupledger.answers.queries import TopicLife
from groupledger.cli import main
from groupledger.cli.output import Output
from groupledger.cli.who import print_ownership
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import COMMITTED, read_to, write
from tests.answers.rows import at


def said(capsys, answer, **how):
    print_ownership(Output(as_json=False, **how), answer, 50)
    return capsys.readouterr().out


def given(minute, before, after, offset):
    return Change(at(minute), before, after, None, f"log/dev/0/{offset}", offset)


def holding(last, following, member=None, covered=True, **more):
    return Holding("dev", "pay", None, last, following, member, covered, **more)


@pytest.mark.parametrize(
    ("holding", "expected"),
    [
        (
            holding(given(1, None, "m1", 5), given(9, "m1", "m2", 8), MemberIdentity("m1", "app", "i1"), generation=4),
            "dev pay m1 14:01:00.000 14:09:00.000 m2 4 log/dev/0/5 app i1 -",
        ),
        (
            holding(given(1, "m1", None, 5), None),
            "dev pay (nobody) 14:01:00.000 - - - log/dev/0/5 - - -",
        ),
        (
            holding(None, given(9, None, "m2", 8)),
            "dev pay (nobody) - 14:09:00.000 m2 - - - - -",
        ),
        (
            holding(None, given(9, None, "m2", 8), covered=False),
            "dev pay not known: its record begins later - 14:09:00.000 m2 - - - - -",
        ),
        (
            holding(given(1, None, "m1", 5), given(9, "m1", None, 8), MemberIdentity("m1")),
            "dev pay m1 14:01:00.000 14:09:00.000 (nobody) - log/dev/0/5 - - -",
        ),
        (
            holding(given(1, None, "m1", 5), given(9, "m1", None, 8), MemberIdentity("m1"), shared=True),
            "dev pay m1 14:01:00.000 14:09:00.000 - - log/dev/0/5 - - -",
        ),
    ],
)
def test_a_holding_is_a_line(capsys, holding, expected):
    lines = said(capsys, OwnershipAt("orders", 7, at(3), (holding,), (), ("mind the gap",)), wide=True).splitlines()
    title = "orders-7 at 2026-11-21 14:03:00.000 UTC (cluster dev), as recorded"
    assert lines[:2] == ["", title]
    assert [" ".join(line.split()) for line in lines[3:]] == [expected, "note: mind the gap"]


def test_a_topic_made_again_shows_its_lives(capsys):
    lives = (TopicLife("dev", "A", 3, at(0), at(2)), TopicLife("dev", "B", 5, at(2), None))
    out = said(capsys, OwnershipAt("orders", 0, at(3), (), lives, ()))
    assert [line.split()[:3] for line in out.splitlines() if line.startswith("dev")] == [
        ["dev", "A", "3"],
        ["dev", "B", "5"],
    ]


LONG = "payments-service-consumer-{}-3f2504e0-4f89-11d3-9a0c-0305e82c330{}"


def ledger(folder, **others):
    one, other = LONG.format(1, 1), LONG.format(2, 2)
    history = History("payments-service").state(1, f"{one} a:0,1,2").state(4, f"{one} a:0 | {other}")
    more = History("payments-eu", "eu").state(2, "m a:0,1,2")
    rows = rows_of(history, more, topic_snapshots=[listed("a", 3), listed("a", 3, cluster="eu")])
    return write(folder, **rows, **others)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return ledger(tmp_path_factory.mktemp("ledger"))


def run(place, *arguments, code=0, columns=None):
    environment = {"COLUMNS": str(columns) if columns else ""}
    ran = CliRunner(env=environment).invoke(main, [*arguments, "--ledger", place])
    assert ran.exit_code == code, ran.output
    return ran


def lines(ran):
    told = [line for line in ran.stdout.splitlines() if line]
    assert told.pop().startswith("known up to ")
    return [" ".join(line.split()) for line in told]


def test_without_a_time_it_is_the_newest_moment_that_the_ledger_knows(place):
    assert lines(run(place, "who", "a-0", "--cluster", "dev")) == [
        "a-0 at 2026-11-21 14:04:00.000 UTC (cluster dev), as recorded",
        "group owner since gen recorded in",
        "payments-service payments-service-consumer-1-3f2504e0 14:01:00.000 1 log/dev/payments-service/1",
    ]
    assert lines(run(place, "who", "a-0", "--cluster", "eu"))[0].startswith("a-0 at 2026-11-21 14:02:00.000 UTC")


def test_groups_by_pattern_and_a_program(place):
    asked = ("who", "a-0", "--group", "payments-*", "--at", "2026-11-21T14:03Z")
    answer = json.loads(run(place, *asked, "--json").stdout)
    owners = [(each["cluster_id"], each["member"]["member_id"]) for each in answer["ownership"]["holdings"]]
    assert owners == [("dev", LONG.format(1, 1)), ("eu", "m")]
    assert (answer["status"], answer["command"]) == ("done", "who")
    assert "cluster group" in lines(run(place, *asked))[1]


def test_what_there_is_no_room_for_is_said_and_wide_has_it(place):
    asked = ("who", "a-0", "--cluster", "dev")
    stacked = lines(run(place, *asked, columns=80))
    assert "recorded in log/dev/payments-service/1" in stacked
    assert max(map(len, run(place, *asked, columns=80).stdout.splitlines()[:-1])) <= 80
    wide = run(place, *asked, "--wide", columns=80).stdout
    assert LONG.format(1, 1) in wide
    assert "no room" not in wide


def test_what_nobody_has(place, tmp_path):
    asked = ("who", "--unowned-since")
    assert lines(run(place, *asked)) == [
        "what nobody had at 2026-11-21 14:04:00.000 UTC (cluster dev)",
        "group partitions number since for why last owner gen recorded in",
        "payments-service a:1-2 2 14:04:00.000 0.000 s its owner lost it "
        "payments-service-consumer-1-3f2504e0 4 log/dev/payments-service/4",
    ]
    later = ("--at", "2026-11-21T14:30Z")
    assert "  0.000 s  its owner" in run(place, *asked, *later).stdout, "nothing is known beyond the last record"
    read_on = ledger(tmp_path, runs=[COMMITTED, read_to(dev=at(30), eu=at(30))])
    assert "26 min 0 s" in run(read_on, *asked).stdout
    assert "without an owner, none since" in run(read_on, "who", "--unowned-since", "27m").stdout
    found = json.loads(run(read_on, "who", "--unowned-since", "26m", "--json").stdout)
    assert [(each["partition"], each["why"], each["age_seconds"]) for each in found["unowned"]["partitions"]] == [
        (1, "given-up", 1560),
        (2, "given-up", 1560),
    ]
    reach = {"up_to": "2026-11-21T14:30:00.000Z", "newest_record": None, "basis": "log-end"}
    assert found["known_up_to"] == [{"cluster_id": name, **reach} for name in ("dev", "eu")]
    failed = run(read_on, "who", "--unowned-since", "26m", "--fail", code=4).stdout
    assert failed.endswith("known up to 2026-11-21T14:30:00.000Z\n")
    run(read_on, "who", "--unowned-since", "27m", "--fail", code=0)
    assert "an owner (1 group)" in run(place, "who", "--unowned-since", "--group", "*-eu").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["who"], "a partition (who orders-7) or --unowned-since"),
        (["who", "a-0", "pay", "--unowned-since", "1h"], "one of them"),
        (["who", "a"], "a partition is TOPIC-NUMBER"),
        (["who", "a-0", "--at", "noon"], "a time is ISO 8601"),
        (["who", "--unowned-since", "a-0"], "or how long before now"),
        (["who", "a-0", "--fail"], "--fail goes with --unowned-since"),
        (["who", "b-0"], "no topic 'b' in this ledger; known: a"),
        (["who", "a-0", "--group", "x*"], "no group 'x*' in this ledger; known: payments-eu, payments-service"),
        (["who", "--unowned-since", "--cluster", "ue"], "no cluster 'ue'"),
    ],
)
def test_what_is_wrong_is_one_line(place, words, says):
    ran = run(place, *words, code=2)
    assert (ran.stdout, len(ran.stderr.splitlines())) == ("", 1)
    assert says in ran.stderr


def test_a_ledger_without_a_record_says_so(tmp_path):
    assert "run `groupledger ingest` first" in run(write(tmp_path), "who", "--unowned-since", code=2).stderr
