"""An audit finds what is wrong by name: each code has histories that have it and near misses that have not."""

import json

import click
import pytest
from click.testing import CliRunner

from groupledger.answers.audit import audit
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope
from groupledger.cli import main
from groupledger.cli.options import place_given
from groupledger.core.rebalance.findings import BY_CODE, INVARIANTS, Judge
from tests.answers.group_histories import history, listed, second, together
from tests.answers.ledgers import write

ALL, TWO = "a:0,1,2", "a:0,1"
LAST = 3000
"""When the ledger's newest record was."""


def lasting(group, *states, **more):
    """A group with one member, which has that at these seconds, and everything in the end."""
    of = history(group)
    for number, (at, recorded) in enumerate(states, 1):
        of.state(at, number, {"m": recorded}, **more)
    return of


def ended(of, at=LAST):
    """The group empties."""
    return of.state(at, 99, {}, state="Empty", snapshot_kind="empty")


def settled(group, **finding):
    """A group with nothing to find but a row of `violations`."""
    more = {name: finding.pop(name) for name in ("group_type",) if name in finding}
    of = lasting(group, (0, ALL), **more)
    return ended(of.finding(**finding)) if finding else ended(of)


def seconds_apart(group, gap, count, **joining):
    """Generations of the same member `gap` seconds apart; with `joining`, a new one comes with each."""
    of = history(group)
    for number in range(count):
        members = {"m": ALL} | ({f"n{number}": ""} if joining else {})
        of.state(number * gap, number + 1, members, assignor="range")
    return ended(of)


def taken_over(group, gap, *processes):
    """A static member that is taken over by these processes, one after another."""
    of = history(group)
    for number, process in enumerate(processes):
        of.state(number * gap, 1, {f"s-{number}/i/{process}": ALL}, snapshot_kind="rewrite" if number else "generation")
    return ended(of)


def two(group, first, second_member, topics="a b", **more):
    return ended(history(group).state(0, 1, {"m": first, "n": second_member}, topics=topics, **more))


def _searched(group, certainty):
    """A group of different subscriptions that moved more than its least moves, which are so certain."""
    of = lasting(group, (0, ALL), shared_topics=None, subscribed_topics=["a"])
    return of.result(3, 1, least_moves_certainty=certainty)


def _what_if(group, scenario):
    """A group with a finding of `assign` in this scenario."""
    of = lasting(group, (0, ALL)).result(0, 0, scenario=scenario)
    return of.finding("LEFT_OUT", "warning", scenario=scenario)


RECORDED = [each for each in INVARIANTS if each.judge is not Judge.AUDIT]
CASES = [
    (lasting("unowned for two rounds", (0, ALL), (10, TWO), (20, TWO), (30, ALL)), ["UNOWNED"]),
    (lasting("withheld for a round", (0, ALL), (10, TWO), (20, ALL)), []),
    (lasting("withheld twice", (0, ALL), (10, TWO), (20, ALL), (30, TWO), (40, ALL)), []),
    (lasting("another one each round", (0, ALL), (10, TWO), (20, "a:1,2"), (30, ALL)), []),
    (lasting("unowned for six minutes", (0, ALL), (10, TWO), (370, ALL)), ["UNOWNED"]),
    (lasting("unowned for four minutes", (0, ALL), (10, TWO), (250, ALL)), []),
    (lasting("unowned to the end", (0, ALL), (10, TWO)), ["UNOWNED"]),
    (lasting("unowned at the end", (0, ALL), (LAST - 60, TWO)), []),
    (lasting("hidden by one owned twice", (0, ALL), (10, TWO)).state(400, 3, {"m": TWO, "n": "a:1"}), ["UNOWNED"]),
    (lasting("never assigned", (0, "grown:0,1"), topics="grown"), ["UNOWNED"]),
    (ended(lasting("gone before it grew", (0, "grown:0,1"), topics="grown"), 900), []),
    (lasting("deleted", (0, "gone:0"), (1000, ""), topics="gone"), []),
    (lasting("not listed", (0, ""), topics="stranger"), []),
    (ended(lasting("emptied", (0, ALL)), 10), []),
    (lasting("share groups lock records", (0, ""), group_type="share"), []),
    (lasting("epochs of a coordinator", (0, ALL), (10, TWO), (20, TWO), (30, ALL), group_type="consumer"), []),
    (lasting("cut by compaction", (0, TWO), complete=False), []),
    (lasting("no consumers", (0, TWO), protocol_type="connect"), []),
    *((settled(f"recorded {each.code}", code=each.recorded_as, severity="error"), [each.code]) for each in RECORDED),
    (ended(_what_if("what-if", "another")), []),
    (ended(_what_if("said by both", "baseline").finding("LEFT_OUT", "warning")), ["LEFT_OUT"]),
    (ended(lasting("computed", (0, ALL)).result(0, 0).finding("LEFT_OUT", scenario="baseline")), ["LEFT_OUT"]),
    (settled("uncommitted", code="STALE_CLAIM", attempt_id="dead"), []),
    (settled("a custom assignor's", code="ASSIGNOR_NOT_PURE"), []),
    (settled("double in a share group", code="DOUBLE_ASSIGNED", group_type="share"), []),
    (seconds_apart("restless", 2, 6), ["NEVER_SETTLES"]),
    (seconds_apart("four rounds", 2, 5), []),
    (seconds_apart("a scaling group", 2, 9, joining=True), []),
    (seconds_apart("a rebalance now and then", 301, 8), []),
    (taken_over("to and fro", 20, "one", "other", "one"), ["SHARED_INSTANCE_ID"]),
    (taken_over("rescheduled and back", 700, "one", "other", "one"), []),
    (taken_over("moved on", 20, "one", "other", "third"), []),
    (taken_over("three clients at once", 1, "one", "other", "third"), ["SHARED_INSTANCE_ID"]),
    (taken_over("three hosts of one client", 1, "one", "one", "one"), []),
    (taken_over("over and over", 20, *["one"] * 6), ["SHARED_INSTANCE_ID"]),
    (taken_over("restarted four times", 20, *["one"] * 5), []),
    (taken_over("a restart a day", 500, *["one"] * 6), []),
    (ended(history("at once").state(0, 1, {"s-1/i": TWO, "s-2/i": "a:2"})), ["SHARED_INSTANCE_ID"]),
    (ended(history("two ids").state(0, 1, {"s-1/i": TWO, "s-2/j": "a:2"})), []),
    (two("apart", "a:0,1 b:2", "a:2 b:0,1"), ["COPARTITION_BROKEN"]),
    (two("joined", "a:0,1 b:0,1", "a:2 b:2", assignor="range"), []),
    (two("only one of the topics", "a:0,1", "a:2", topics="a"), []),
    (two("lopsided", "a:0,1,2 b:0,1,2", "", assignor="roundrobin"), ["UNBALANCED"]),
    (two("lopsided as range is", "a:0,1,2 b:0,1,2", "", assignor="range"), []),
    (two("within one", TWO, "a:2", topics="a", assignor="roundrobin"), []),
    (ended(history("lopsided while it moves").state(0, 1, {"m": TWO, "n": ""}), 30), []),
    (two("different subscriptions", "a:0,1,2 b:0,1,2", "", shared_topics=None, subscribed_topics=["a", "b"]), []),
    (ended(lasting("excess", (0, ALL)).result(3, 1)), ["EXCESS_MOVES"]),
    (ended(lasting("least", (0, ALL)).result(3, 3)), []),
    (ended(lasting("moves as roundrobin does", (0, ALL)).result(3, 1, assignor="roundrobin")), []),
    (ended(lasting("somebody else's algorithm", (0, ALL)).result(3, 1, verdict="valid-different")), []),
    (ended(lasting("a what-if's moves", (0, ALL)).result(3, 1, scenario="other")), []),
    (ended(lasting("a bound", (0, ALL), shared_topics=None, subscribed_topics=["a"]).result(3, 1)), []),
    (ended(_searched("searched", "exact")), ["EXCESS_MOVES"]),
    (ended(_searched("searched in vain", "lower-bound")), []),
    (ended(lasting("moved by a coordinator", (0, ALL), group_type="consumer").result(3, 1)), []),
    (ended(lasting("told otherwise", (0, ALL)).result(3, 1).finding("STALE_CLAIM")), ["STALE_CLAIM"]),
    (ended(lasting("sound", (0, ALL)).result(0, 0)), []),
]  # fmt: skip
TOPICS = [
    *(*listed("a", (-60, 3)), *listed("b", (-60, 3))),
    *(*listed("grown", (-60, 2), (1000, 4)), *listed("gone", (-60, 1), (1000, None))),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    rows = together([of for of, _ in CASES], topic_snapshots=TOPICS)
    return write(tmp_path_factory.mktemp("ledger"), **rows)


@pytest.fixture(scope="module")
def found(place):
    answer = audit(LedgerReader(place), RequestedScope(), ["a", "b"])
    by_group = {}
    for each in answer.found:
        by_group.setdefault(each.group_id, []).append(each)
    return by_group


@pytest.mark.parametrize(("of", "codes"), CASES, ids=[of.group for of, _ in CASES])
def test_what_is_wrong_is_found_by_name_and_nothing_else(found, of, codes):
    assert [each.code for each in found.get(of.group, [])] == codes


def test_a_topic_that_a_group_does_not_read_is_not_joined_there(place):
    answer = audit(LedgerReader(place), RequestedScope(), ["a", "b", "grown"])
    [apart] = [each for each in answer.found if each.code == "COPARTITION_BROKEN"]
    assert apart.group_id == "apart"
    assert apart.evidence.startswith("3 partition numbers of a, b, grown are with two or more members")


def test_every_code_has_a_history():
    assert {code for _, codes in CASES for code in codes} == BY_CODE.keys()


def test_what_both_commands_say_of_a_record_is_counted_once(found):
    [both] = found["said by both"]
    assert (both.records, both.first) == (1, second(0))


def test_the_worst_is_the_evidence(found):
    [longest] = found["unowned for six minutes"]
    assert longest.evidence == (
        "a-2 had no owner for 6 min 0 s, from 2026-11-21T14:00:10.000Z to 2026-11-21T14:06:10.000Z"
    )
    [open_ended] = found["never assigned"]
    assert (open_ended.records, open_ended.first) == (1, second(1000))
    assert open_ended.evidence == (
        "grown-2 had no owner for 33 min 20 s, from 2026-11-21T14:16:40.000Z on "
        "(still at 2026-11-21T14:50:00.000Z, as far as known); and 1 more"
    )
    [rounds] = found["unowned for two rounds"]
    assert (rounds.records, rounds.first, rounds.last) == (2, second(10), second(30))
    [restless] = found["restless"]
    assert (restless.records, restless.first, restless.last) == (5, second(2), second(10))
    assert found["to and fro"][0].evidence == (
        "the instance id i went from one on (no host) to other on (no host) and back"
    )
    assert "3 partition numbers" in found["apart"][0].evidence


def ask(place, *arguments):
    return CliRunner().invoke(main, ["audit", "--ledger", place, *arguments])


@pytest.mark.parametrize(
    ("words", "code", "failed"),
    [
        ((), 0, []),
        (("--fail-on", "UNOWNED"), 4, ["UNOWNED"]),
        (("--fail-on", "unowned, double_owned"), 4, ["DOUBLE_OWNED", "UNOWNED"]),
        (("--fail-on", "DOUBLE_ASSIGNED"), 4, ["DOUBLE_OWNED"]),
        (("--fail-on", "UNBALANCED", "--fail-on", "EXCESS_MOVES"), 4, ["EXCESS_MOVES", "UNBALANCED"]),
        (("--fail-on", "info"), 0, []),
        (("--fail-on", "warning", "--group", "excess"), 4, ["EXCESS_MOVES"]),
        (("--fail-on", "error", "--group", "excess"), 0, []),
        (("--fail-on", "error", "--group", "unowned for s?x*"), 4, ["UNOWNED"]),
        (("--fail-on", "error", "--group", "sound"), 0, []),
    ],
)
def test_it_is_a_gate(place, words, code, failed):
    ran = ask(place, *words, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["failed_on"]) == (code, failed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fail-on", "UNOWND"), "did you mean UNOWNED? known: UNOWNED, DOUBLE_OWNED"),
        (("--since", "yesterday"), "or how long before now: 90s, 15m, 24h"),
        (("--since", "1h", "--until", "2h"), "expected since < until"),
        (("--joined", "a"), "--joined takes two or more topics"),
        (("--joined", "a,grwon"), "no topic 'grwon' in this ledger; did you mean grown"),
        (("--fail-on", ""), "the list names no code or severity; expected some, such as UNOWNED,error"),
        (("--fail-on", "error", "--fail-on", ", "), "the list names no code or severity"),
        (("--group", "sonud"), "no group 'sonud' in this ledger; did you mean sound"),
        (("--group", "nothing-*"), "no group 'nothing-*' in this ledger"),
        (("--cluster", "prod"), "no cluster 'prod' in this ledger; known: dev"),
    ],
)
def test_what_cannot_be_asked_is_said(place, words, says):
    ran = ask(place, *words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert says in ran.stderr


@pytest.mark.parametrize("by_option", [True, False])
def test_the_next_step_can_be_pasted(place, by_option):
    words, env = ([], {"GROUPLEDGER_LEDGER": place}) if not by_option else (["--ledger", place], {})
    ran = CliRunner(env=env).invoke(main, ["audit", "restless", *words])
    where = f" --ledger {place}" * by_option
    page = "(docs/guides/investigate/rebalance-storms.md)"
    assert f"next: groupledger report storms restless --cluster dev{where} {page}" in ran.stdout


def test_the_next_step_shows_no_secret():
    @click.command()
    @click.option("--ledger")
    def asked(ledger):
        click.echo(place_given())

    said = CliRunner().invoke(asked, ["--ledger", "s3a://AKIA:SECRET@bucket/a b"]).stdout
    assert said == " --ledger 's3a://***@bucket/a b'\n"


def test_a_period_knows_the_state_it_begins_in(place):
    whole = json.loads(ask(place, "--group", "unowned to the end", "--json").stdout)["audit"]
    since = json.loads(ask(place, "--group", "unowned to the end", "--since", "600s", "--json").stdout)["audit"]
    assert (whole["records"], since["records"]) == (2, 0)
    [finding] = since["found"]
    assert finding["code"] == "UNOWNED"
    assert finding["evidence"].startswith("a-2 had no owner for 49 min 50 s, from before 2026-11-21T14:00:10.000Z")
    until = json.loads(ask(place, "--group", "unowned to the end", "--until", "2026-11-21T14:04Z", "--json").stdout)
    assert until["audit"]["found"] == []


def test_a_period_leaves_out_what_is_not_in_it(place):
    ran = json.loads(ask(place, "--group", "recorded *", "--since", "60s", "--json").stdout)["audit"]
    assert (ran["found"], ran["groups"]) == ([], len(RECORDED))
    none = json.loads(ask(place, "--since", "2030-01-01T00:00Z", "--json").stdout)["audit"]
    assert none["notes"][0].startswith("no record lies in this period: the ledger has ")


def test_for_a_person(place):
    lines = ask(place, "--group", "unowned for *").stdout.splitlines()
    assert lines[:2] == ["10 records of 3 groups judged, 0 of them recomputed", ""]
    assert lines[2] == "error: UNOWNED"
    assert [line.split("  ")[0] for line in lines[5:8]] == [
        "group",
        "unowned for two rounds",
        "unowned for six minutes",
    ]
    assert lines[-2].startswith("10 records are not recomputed: HANDED_OVER_BEFORE_REVOKED, LEFT_OUT and EXCESS_MOVES")
    assert lines[-1].startswith("known up to 2026-11-21T14:50:00.000Z, the newest group record (older ledger)")


def test_an_empty_ledger_says_so(tmp_path):
    ran = ask(write(tmp_path))
    assert ran.exit_code == 0
    assert "the ledger holds no record of a group yet: run `groupledger ingest` first" in ran.stdout
