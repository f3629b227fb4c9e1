"""Groups that went from one way of being assigned to another: each kind, both ways, and what is none."""

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.migration import MemberKind, migrations
from groupledger.answers.reader import LedgerReader
from groupledger.answers.scope import RequestedScope
from groupledger.cli import main
from tests.answers.captured import ledger_of
from tests.answers.group_histories import history, listed, second, together
from tests.answers.ledgers import write
from tests.answers.rows import wire

TWO = {"m": "a:0,1", "n": "a:2,3"}
OWNED = {"m": "a:0", "n": "a:2"}
"""What members claim that keep what they have."""
STEP = 10


def passed_on(of, at, partition, before, after):
    """A row of `ownership_changes` with the last state."""
    told = {"topic": "a", "partition": partition, "at": second(at), "log_partition": 0, "incarnation": 1}
    said = {"snapshot_id": of.snapshot_id, "offset": of.offset, "from_member_id": before, "to_member_id": after}
    return of.add("ownership_changes", **(told | said))


def over(name, *steps):
    """States `STEP` seconds apart, each `(assignor, who claims, more)`; of a group type `consumer`, who is classic."""
    of = history(name)
    for number, (assignor, those, *more) in enumerate(steps):
        told = {"assignor": assignor} | (more[0] if more else {})
        members = told.pop("who", TWO)
        is_new = told.get("group_type") == "consumer"
        of.state(number * STEP, number + 1, members, **({"snapshot_kind": "fold"} | told if is_new else told))
        for row in of.rows["member_snapshots"]:
            if row["snapshot_id"] == of.snapshot_id:
                row["subscription_version"] = None if is_new and row["member_id"] not in those else 3
                row["claimed"] = (
                    wire(OWNED.get(row["member_id"], "")) if not is_new and row["member_id"] in those else []
                )
    return of


NEW = {"group_type": "consumer"}
GONE = {"who": {}, "snapshot_kind": "empty", "state": "Empty"}
DELETED = {"snapshot_kind": "deleted", "state": "Dead"}
RANGE, COOP, UNIFORM = "range", "cooperative-sticky", "uniform"
CHANGING = [
    (over("online", (RANGE, ""), (RANGE, ""), (UNIFORM, "mn", NEW), (UNIFORM, "n", NEW), (UNIFORM, "", NEW)),
     "finished", ["eager", "classic and KIP-848", "KIP-848"]),
    (over("half way", (RANGE, ""), (RANGE, ""), (UNIFORM, "n", NEW)), "under way", ["eager", "classic and KIP-848"]),
    (over("half way and no more", (RANGE, ""), (RANGE, ""), (UNIFORM, "n", NEW), (None, "", NEW | GONE)),
     "stopped", ["eager", "classic and KIP-848"]),
    (over("downgraded", (RANGE, ""), (RANGE, ""), (UNIFORM, "n", NEW), (RANGE, ""), (RANGE, "")),
     "went back", ["eager", "classic and KIP-848", "eager"]),
    (over("after a stop", (RANGE, ""), (RANGE, ""), (None, "", GONE), (UNIFORM, "", NEW)),
     "finished", ["eager", "KIP-848"]),
    (over("deleted unseen", (RANGE, ""), (RANGE, ""), (None, "", GONE | DELETED), (UNIFORM, "", NEW)),
     "finished", ["eager", "KIP-848"]),
    (over("default named later", (RANGE, ""), (RANGE, ""), (None, "n", NEW), (UNIFORM, "n", NEW), (UNIFORM, "", NEW)),
     "finished", ["eager", "classic and KIP-848", "KIP-848"]),
    (over("another assignor", (RANGE, ""), (RANGE, ""), ("roundrobin", ""), ("roundrobin", "")),
     "finished", ["eager", "eager"]),
    (over("to sticky", (RANGE, ""), (RANGE, ""), ("sticky", "mn"), ("sticky", "mn")), "finished", ["eager", "eager"]),
    (over("two bounces", (RANGE, ""), (RANGE, ""), (COOP, ""), (COOP, "m"), (COOP, "m"), (COOP, "mn"), (COOP, "mn")),
     "finished", ["eager", "eager", "eager and cooperative", "cooperative"]),
    (over("second bounce begun", (COOP, ""), (COOP, ""), (COOP, ""), (COOP, "m")),
     "under way", ["eager", "eager and cooperative"]),
    (over("there and back", (RANGE, ""), (RANGE, ""), (COOP, "mn"), (RANGE, ""), (RANGE, "")),
     "went back", ["eager", "cooperative", "eager"]),
    (over("mixed all the time", (UNIFORM, "n", NEW), (UNIFORM, "n", NEW)), "under way", ["classic and KIP-848"]),
]  # fmt: skip
STEADY = [
    over("eager", (RANGE, ""), (RANGE, ""), (RANGE, "")),
    over("cooperative", (COOP, ""), (COOP, "mn"), (COOP, "mn")),
    over("lost its assignment once", (COOP, ""), (COOP, "mn"), (COOP, "mn"), (COOP, "n"), (COOP, "mn")),
    over("lost at the end", (COOP, ""), (COOP, "mn"), (COOP, "mn"), (COOP, "")),
    over("emptied and back", (RANGE, ""), (RANGE, ""), (None, "", GONE), (RANGE, ""), (RANGE, "")),
    over("static restart", (COOP, ""), (COOP, "mn"), (COOP, "m", {"snapshot_kind": "rewrite"}), (COOP, "mn")),
    over("new", (UNIFORM, "", NEW), (UNIFORM, "", NEW)),
    over("default named", (None, "", NEW), (UNIFORM, "", NEW), (None, "", NEW)),
    over("shared", (None, "", {"group_type": "share"}), (None, "mn", {"group_type": "share"})),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    histories = [each[0] for each in CHANGING] + STEADY
    return write(tmp_path_factory.mktemp("ledger"), **together(histories, topic_snapshots=listed("a", (-60, 4))))


def ask(place, *arguments):
    ran = CliRunner().invoke(main, ["report", "migration", "--ledger", place, "--limit", "50", *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.fixture(scope="module")
def groups(place):
    return {each["group_id"]: each for each in json.loads(ask(place, "--json"))["migration"]["groups"]}


@pytest.mark.parametrize(("of", "end", "kinds"), CHANGING, ids=lambda each: getattr(each, "group", None))
def test_a_migration_has_its_stages_and_its_end(groups, of, end, kinds):
    found = groups[of.group]
    stages = [found["first"], *(change["after"] for change in found["changes"])]
    assert (found["end"], [stage["kind"] for stage in stages]) == (end, kinds)
    assert [change["before"] for change in found["changes"]] == stages[:-1]
    mixed = [stage["kind"] for stage in stages if " and " in stage["kind"]]
    assert [both["way"]["kind"] for both in found["both_kinds"]] == mixed


def test_what_is_none_is_not_told(groups):
    assert groups.keys() == {each.group for each, *_ in CHANGING}


def test_those_under_way_come_first(groups):
    order = ["under way", "stopped", "went back", "finished"]
    ends = [each["end"] for each in groups.values()]
    assert ends == sorted(ends, key=order.index)


def test_a_change_has_both_sides_and_when(groups):
    first, second_change = groups["online"]["changes"]
    assert (first["at"], second_change["at"]) == ("2026-11-21T14:00:20.000Z", "2026-11-21T14:00:40.000Z")
    assert first["before"] == {"group_type": "classic", "assignor": "range", "kind": "eager"}
    assert first["after"] == {"group_type": "consumer", "assignor": "uniform", "kind": "classic and KIP-848"}
    [both] = groups["online"]["both_kinds"]
    assert (both["since"], both["until"]) == (first["at"], second_change["at"])
    assert groups["half way"]["both_kinds"][0]["until"] is None
    assert groups["half way and no more"]["both_kinds"][0]["until"] == "2026-11-21T14:00:30.000Z"


def test_an_empty_group_in_between_is_told(groups):
    [change] = groups["after a stop"]["changes"]
    assert (change["empty_seconds"], change["empty_is_known"], change["given"]) == (10, True, 4)
    [change] = groups["deleted unseen"]["changes"]
    assert (change["empty_seconds"], change["empty_is_known"]) == (20, False)
    assert groups["online"]["changes"][0]["empty_seconds"] is None


def test_moves_and_times_without_an_owner_are_counted(tmp_path):
    halfway, done = {"m": "a:0,2", "n": "a:3"}, {"m": "a:2", "n": "a:1,3"}
    of = over("moving", (RANGE, ""), (RANGE, ""), (COOP, "m", {"who": halfway}), (COOP, "m", {"who": done}),
              (COOP, "mn", {"who": done}))  # fmt: skip
    changes: dict[int, list[tuple[int, str | None, str | None]]]
    changes = {3: [(2, "n", "m"), (1, "m", None)], 4: [(1, None, "n"), (0, "m", None)]}
    for row in of.rows["group_snapshots"]:
        of.offset = row["offset"]
        for number, before, after in changes.get(row["offset"], ()):
            passed_on(of, (row["offset"] - 1) * STEP, number, before, after)
    found = migrations(
        LedgerReader(write(tmp_path, **together([of], topic_snapshots=listed("a", (-60, 4))))), RequestedScope(), 9
    )
    [group] = found.groups
    first, last = group.changes
    assert (first.moved, first.unowned, first.unowned_seconds, first.still_unowned) == (1, 2, STEP, 1)
    assert (last.moved, last.unowned, last.still_unowned) == (0, 0, 0)
    assert last.after.kind is MemberKind.COOPERATIVE
    said = ask(str(tmp_path))
    assert "1 partitions went from member to member; 2 had no owner for a time (the longest for 10.000 s, 1 to" in said


def test_a_period_begins_with_the_way_of_the_state_before(place):
    [group] = json.loads(ask(place, "--json", "--group", "two bounces", "--since", second(35).isoformat()))[
        "migration"
    ]["groups"]
    assert [group["first"]["kind"], group["last"]["kind"]] == ["eager and cooperative", "cooperative"]
    assert len(group["changes"]) == 1


def test_a_person_reads_both_sides(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = ask(place, "--group", "online")
    assert "  range, eager -> KIP-848 uniform, classic members too" in said
    assert "both kinds of members for 20.000 s, from 2026-11-21T14:00:20.000Z" in said
    assert max(map(len, said.splitlines())) <= 80
    assert ask(place, "--limit", "1").splitlines()[-2] == f"... and {len(CHANGING) - 1} more (--limit)"


def test_how_long_nobody_was_there_is_said_as_exactly_as_it_is_known(place):
    assert "nobody was in the group for 10.000 s\n" in ask(place, "--group", "after a stop")
    assert "nobody was in the group for 20.000 s or less\n" in ask(place, "--group", "deleted unseen")


def test_an_empty_report_says_why(place, tmp_path):
    assert "every group was assigned in one way all through this period" in ask(place, "--group", "eager")
    assert "no record lies in this period" in ask(place, "--until", "2020-01-01T00:00Z")
    assert "the ledger holds no record of a group yet" in ask(write(tmp_path))


def test_the_upgrades_of_real_groups_are_found_and_nothing_else(tmp_path):
    """Two rolling bounces on a real broker, and a classic group that was deleted before a KIP-848 one took its name."""
    found = migrations(
        LedgerReader(ledger_of(tmp_path, ["dev", "edge", "storm", "compacted"])), RequestedScope(), 50
    ).groups
    assert {each.group_id: [each.first.kind, *(change.after.kind for change in each.changes)] for each in found} == {
        **{
            name: [MemberKind.EAGER, MemberKind.EAGER, MemberKind.BOTH_CLASSIC, MemberKind.COOPERATIVE]
            for name in ("up-coop-first", "up-range-first")
        },
        "del-to-new": [MemberKind.EAGER, MemberKind.KIP_848],
    }
    assert {each.end.value for each in found} == {"finished"}
    assert not any(change.converted for each in found for change in each.changes), "deleted, and another made"
