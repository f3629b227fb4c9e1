"""Members that come and go: counted by the name that outlives a restart, as `explain` names the causes."""

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from groupledger.answers.audit import caused
from groupledger.answers.causes import CauseKind
from groupledger.answers.joins import CHANGES, membership_changes
from groupledger.answers.queries import records
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope, scope
from groupledger.cli import main
from groupledger.core.moments import bound
from tests.answers.captured import ledger_of
from tests.answers.group_histories import history, listed, second, together
from tests.answers.ledgers import write

HOUR = 3600


def on(of, **hosts):
    """Members of the last state run on these hosts."""
    for row in of.rows["member_snapshots"]:
        if row["snapshot_id"] == of.snapshot_id:
            row["host"] = f"/{hosts.get(row['member_id'], '10.0.0.9')}"
    return of


def flapping():
    """A pod that comes under a new id every ten minutes and stays for one, beside a quiet one."""
    of = on(history("flapping").state(0, 1, {"quiet//app-1": "a:0,1"}))
    for number in range(12):
        name = f"pod-{number}"
        of = on(of.state(600 * number + 60, 2 * number + 2, {"quiet//app-1": "a:0", f"{name}//app-2": "a:1"}))
        of = on(of.state(600 * number + 120, 2 * number + 3, {"quiet//app-1": "a:0,1"}))
    return of


def static():
    """A static member: quick restarts within one generation, then one that took longer than its session."""
    of = history("static").state(0, 1, {"s-0/i-1/p": "a:0,1"})
    of.state(10, 1, {"s-1/i-1/p": "a:0,1"}, snapshot_kind="rewrite")
    of.state(20, 1, {"s-2/i-1/p": "a:0,1"}, snapshot_kind="rewrite")
    return of.state(30, 2, {}, snapshot_kind="empty").state(90, 3, {"s-3/i-1/p": "a:0,1"})


def alike():
    """Two pods with one client id, of which one flaps."""
    of = on(history("alike").state(0, 1, {"x//consumer-1": "a:0", "y//consumer-1": "a:1"}), x="10.0.0.1", y="10.0.0.2")
    of = on(of.state(10, 2, {"x//consumer-1": "a:0,1"}), x="10.0.0.1")
    return on(of.state(20, 3, {"x//consumer-1": "a:0", "z//consumer-1": "a:1"}), x="10.0.0.1", z="10.0.0.2")


HISTORIES = [
    flapping(),
    static(),
    alike(),
    history("calm").state(0, 1, {"m": "a:0"}).state(50, 2, {"m": "a:0"}),
    history("made again").state(0, 1, {"m": "a:0"}).state(50, 1, {"n": "a:0"}, incarnation=2),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    rows = together(HISTORIES, topic_snapshots=listed("a", (-60, 2)))
    return write(tmp_path_factory.mktemp("ledger"), **rows)


def ask(place, *arguments):
    ran = CliRunner().invoke(main, ["report", "joins", "--ledger", place, *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.fixture(scope="module")
def groups(place):
    return {each["group_id"]: each for each in json.loads(ask(place, "--json"))["joins"]["groups"]}


def counted(each):
    return each["joined"], each["gone"], each["restarted"]


def test_groups_stand_in_the_order_of_their_changes(groups):
    assert {name: counted(each) for name, each in groups.items()} == {
        "flapping": (12, 12, 0),
        "static": (1, 1, 2),
        "alike": (1, 1, 0),
    }
    assert list(groups) == ["flapping", "static", "alike"]


def test_the_flapping_pod_is_named_with_its_hours(groups):
    [pod] = groups["flapping"]["members"]
    assert (pod["name"], counted(pod), pod["stay_seconds"], pod["hosts"]) == ("app-2", (12, 12, 0), 60, ["/10.0.0.9"])
    assert [each["changes"] for each in pod["hours"]] == [12, 12]
    assert pod["hours"][0]["hour"].startswith("2026-11-21T14:00")


def test_a_static_member_has_one_name_whether_it_came_back_in_time_or_not(groups):
    [member] = groups["static"]["members"]
    assert (member["name"], counted(member)) == ("i-1", (1, 1, 2))
    assert member["stay_seconds"] == 10


def test_a_client_id_that_several_share_is_told_apart_by_its_host(groups):
    [member] = groups["alike"]["members"]
    assert (member["name"], counted(member)) == ("consumer-1 on 10.0.0.2", (1, 1, 0))


def test_a_period_counts_what_changed_in_it(place):
    since = ("--since", second(HOUR).isoformat())
    [group] = json.loads(ask(place, "--json", "--group", "flap*", *since))["joins"]["groups"]
    assert counted(group) == (6, 6, 0)
    until = json.loads(ask(place, "--json", "--group", "flapping", "--until", second(60).isoformat()))["joins"]
    assert until["notes"][0].startswith("no member joined, went or came back in this period")


def test_a_person_reads_the_names_and_the_hours(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    *lines, known = ask(place, "--limit", "1").splitlines()
    assert known.startswith("known up to ")
    assert max(map(len, lines)) <= 80
    assert ["app-2", "12", "12", "0", "1", "min", "0", "s"] in [line.split()[:8] for line in lines]
    assert "busiest hours: 2026-11-21 14h: 12, 2026-11-21 15h: 12" in lines
    assert lines[-1] == "... and 2 more (--limit)"


def test_an_empty_report_says_why(place, tmp_path):
    assert "no member joined, went or came back" in ask(place, "--group", "calm")
    assert "no record lies in this period" in ask(place, "--until", "2020-01-01T00:00Z")
    assert "the ledger holds no record of a group yet" in ask(write(tmp_path))


def test_the_changes_are_the_causes_of_explain(tmp_path):
    """All that four captures hold: each change is a cause of the same state, and each cause a change."""
    reader = LedgerReader(ledger_of(tmp_path, ["dev", "edge", "storm", "compacted"]))
    found = Counter(
        (each.snapshot_id, each.kind, each.member_id)
        for each in membership_changes(reader, scope(reader, RequestedScope(since=bound("30d")[0])))
    )
    wanted = Counter[tuple[str, CauseKind, str | None]]()
    for snapshot, each in caused(reader, records(reader, "SELECT * FROM current_group_snapshots")).items():
        wanted.update((snapshot, cause.kind, cause.about) for cause in each.causes if cause.kind in CHANGES)
        if any(cause.kind in (CauseKind.GROUP_EMPTIED, CauseKind.GROUP_DELETED) for cause in each.causes):
            wanted.update((snapshot, CauseKind.MEMBER_GONE, row["member_id"]) for row in each.before.members)
    assert sum(found.values()) == 300
    assert found == wanted
