"""Which groups are ready for KIP-848: each reason has histories that have it and near misses that have not."""

import json

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.core.obstacles import Obstacle
from groupledger.core.wire.codec import uuid_text
from groupledger.core.wire.consumer_protocol import ConsumerProtocolAssignment, encode_assignment
from groupledger.core.wire.offsets_log import LogKey, LogRecord, RecordKind, encode
from groupledger.core.wire.records import ClassicGroupMember, GroupMetadata
from tests.answers.captured import ledger_of
from tests.answers.group_histories import history, listed, second, together
from tests.answers.ledgers import write

JAVA = {"subscription_version": 3, "user_data": None}
COOPERATIVE = {"subscription_version": 3, "user_data": b"\x00\x00\x00\x01"}
LIBRDKAFKA = {"subscription_version": 3, "user_data": b""}
PYTHON = {"subscription_version": 0, "user_data": b""}
OLD_JAVA = {"subscription_version": 1, "user_data": None}
STRANGER = {"subscription_version": 3, "user_data": b"?"}
LATER = {"subscription_version": 9, "user_data": None}
NEWCOMER = {"subscription_version": None, "user_data": None}
TWO = {"m": "a:0,1,2", "n": "b:0,1,2"}
SHARED = {"m": "a:0,1,2 b:0,1,2", "n": "a:3,4,5 b:3,4,5"}


def recorded(of, told_user_data=None):
    """The bytes of the last state, whose assignments have this user data."""
    state = of.rows["group_snapshots"][-1]
    here = [row for row in of.rows["member_snapshots"] if row["snapshot_id"] == of.snapshot_id]
    told = encode_assignment(ConsumerProtocolAssignment(0, (), told_user_data))
    members = tuple(ClassicGroupMember(row["member_id"], None, "c", "/h", 60_000, 45_000, b"", told) for row in here)
    value = GroupMetadata("consumer", state["generation"], state["assignor"], None, 0, members)
    record = LogRecord(LogKey(RecordKind.GROUP_METADATA, 2, of.group, {}), 3, value)
    key, written = encode(record)
    place = {"log_partition": 0, "offset": of.offset, "timestamp": state["observed_at"]}
    return of.add("log_records", **place, key=key, value=written)


def wrote(of, **by_member):
    """What members of the last state wrote; others wrote as Java does under its assignor."""
    state = of.rows["group_snapshots"][-1]
    usual = COOPERATIVE if state["assignor"] == "cooperative-sticky" else JAVA
    for row in of.rows["member_snapshots"]:
        if row["snapshot_id"] == of.snapshot_id:
            row.update(by_member.get(row["member_id"], usual))
    return of


def group(name, members=TWO, at=0, written=None, told=None, **more):
    """A group whose last state is this one, with its bytes."""
    more = {"protocol_type": "consumer", "topics": "a b", "leader": "m"} | more
    return recorded(wrote(history(name).state(at, 1, members, **more), **(written or {})), told)


def without_bytes(name):
    return wrote(history(name).state(0, 1, TWO, protocol_type="consumer", topics="a b"))


def emptied(name, **more):
    return group(name, **more).state(50, 2, {}, state="Empty", snapshot_kind="empty")


def again(name, *states):
    """The same members, state after state, each with what differs."""
    of = history(name)
    for number, more in enumerate(states):
        wrote(of.state(number * 4, number + 1, TWO, **({"protocol_type": "consumer", "topics": "a b"} | more)))
    return recorded(of)


def rejected(of, offset=1):
    """A record that far behind the group's last state was put into quarantine."""
    place = {"log_partition": 0, "offset": of.offset + offset, "stage": "classic", "code": "TRUNCATED"}
    return of.add("quarantine", **place, message="the value of a record ends early")


def attributed(name, attribution, names, written=LATER):
    """The leader is `m`."""
    of = group(name, written={"m": written})
    return of.result(0, 0, attribution=attribution, attributed_to=names)


RANGE = {"assignor": "range"}
CASES = [
    (group("java"), "ready", []),
    (group("librdkafka range", **RANGE, written={"m": LIBRDKAFKA, "n": LIBRDKAFKA}, told=b""), "ready", []),
    (group("java beside librdkafka", **RANGE, written={"n": LIBRDKAFKA}), "ready", []),
    (group("connect", protocol_type="connect"), "blocked", ["NOT_CONSUMERS"]),
    (group("streams", assignor="stream", told=b"\x01"), "blocked", ["STREAMS"]),
    (group("user data", told=b"\x00"), "blocked", ["ASSIGNMENT_HAS_USER_DATA"]),
    (group("python", **RANGE, written={"n": PYTHON}), "converts", ["CLIENT_LACKS_KIP_848"]),
    (group("old java", **RANGE, written={"n": OLD_JAVA}), "converts", ["CLIENT_LACKS_KIP_848"]),
    (group("kafkajs", assignor="RoundRobinAssigner", written={"m": PYTHON, "n": PYTHON}), "converts",
     ["CLIENT_LACKS_KIP_848"]),
    (group("later", written={"n": LATER}), "unknown", ["SUBSCRIPTION_NOT_KNOWN"]),
    (group("before any", **RANGE, written={"n": {"subscription_version": -1, "user_data": None}}), "unknown",
     ["SUBSCRIPTION_NOT_KNOWN"]),
    (group("nothing sent", **RANGE, written={"n": NEWCOMER}), "unknown", ["SUBSCRIPTION_NOT_KNOWN"]),
    (attributed("later, and java's answer", "exact", ["java-cooperative-sticky"]), "unknown",
     ["SUBSCRIPTION_NOT_KNOWN"]),
    (rejected(group("unread since")), "unknown", ["RECORD_NOT_READ"]),
    (rejected(group("unread before"), offset=-1), "ready", []),
    (history("never had members").state(0, 1, {}, snapshot_kind="birth"), "unknown", ["NO_MEMBERS_RECORDED"]),
    (group("cut", complete=False), "unknown", ["INCOMPLETE_RECORD"]),
    (without_bytes("from tables"), "unknown", ["ASSIGNMENT_NOT_KEPT"]),
    (group("stranger", written={"n": STRANGER}), "unknown", ["CLIENT_NOT_KNOWN"]),
    (attributed("java's answer proves no library", "exact", ["java-cooperative-sticky"], STRANGER), "unknown",
     ["CLIENT_NOT_KNOWN"]),
    (group("custom", assignor="com.acme.Mine"), "unknown", ["CUSTOM_ASSIGNOR"]),
    (group("custom that remembers", assignor="mine", told=b"x"), "blocked",
     ["ASSIGNMENT_HAS_USER_DATA", "CUSTOM_ASSIGNOR"]),
    (emptied("empty"), "ready", ["EMPTY_NOW"]),
    (group("new", group_type="consumer", written={"m": NEWCOMER, "n": NEWCOMER}), "converted", []),
    (group("mixed", group_type="consumer", written={"m": NEWCOMER, "n": JAVA}), "converted", ["MIXED_MEMBERS"]),
    (group("static", {"m/i-1/p": "a:0,1,2", "n": "b:0,1,2"}), "ready", ["STATIC_MEMBERS"]),
    (group("side by side", SHARED, topics="a b", **RANGE), "ready", ["COPARTITIONED"]),
    (again("several", {"assignor": "range"}, {}), "ready", ["SEVERAL_ASSIGNORS"]),
    (again("a pattern", {"topics": "a"}, {}), "ready", ["MAY_BE_A_PATTERN"]),
    (again("the same in another order", {"topics": "b a"}, {}), "ready", []),
    (again("storm", *[{} for _ in range(6)]), "ready", ["REBALANCE_STORM"]),
    (again("often", *[{"topics": f"a {number}"} for number in range(20)]), "ready",
     ["REBALANCE_STORM", "MAY_BE_A_PATTERN"]),
    (again("stormy", *[{"topics": "a b"} for _ in range(4)]), "ready", []),
]  # fmt: skip
LISTED = [
    each | {"topic_id": uuid_text(each["topic"].encode() * 16)}
    for each in (*listed("a", (-60, 6)), *listed("b", (-60, 6)))
]
GONE = [group("no more").state(60, 2, {}, state="Dead", snapshot_kind="deleted"), group("shared", group_type="share")]
DIFFERENT = group("different", shared_topics=None, subscribed_topics=["a", "b"])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    for number, row in enumerate(DIFFERENT.rows["member_snapshots"]):
        row["topics"] = ["a"] if number else ["a", "b"]
    histories = [case[0] for case in CASES] + GONE + [DIFFERENT]
    return write(tmp_path_factory.mktemp("ledger"), **together(histories, topic_snapshots=LISTED))


def ask(place, *arguments):
    ran = CliRunner().invoke(main, ["readiness", "--ledger", place, "--limit", "100", *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def told(place, *arguments):
    return json.loads(ask(place, "--json", *arguments))["readiness"]


@pytest.fixture(scope="module")
def groups(place):
    """The answer about every group, by name."""
    return {each["group_id"]: each for each in told(place)["groups"]}


@pytest.mark.parametrize(("of", "state", "codes"), CASES, ids=lambda each: getattr(each, "group", None))
def test_a_group_has_its_state_and_reasons(groups, of, state, codes):
    found = groups[of.group]
    assert (found["readiness"], [each["code"] for each in found["reasons"]]) == (state, codes)


def test_every_code_is_found():
    found = {code for *_, codes in CASES for code in codes}
    assert found | {"SUBSCRIPTIONS_DIFFER"} == {each.code for each in Obstacle}


def test_members_with_different_subscriptions_are_named(groups):
    assert [each["code"] for each in groups["different"]["reasons"]] == ["SUBSCRIPTIONS_DIFFER"]


def test_a_forecast_has_both_assignments_and_what_moves(groups):
    forecasts = {each["assignor"]: each for each in groups["java"]["forecasts"]}
    assert forecasts["uniform"]["moves"] == 0
    before = {each["member_id"]: len(each["before"]) for each in forecasts["uniform"]["members"]}
    after = {each["member_id"]: len(each["after"]) for each in forecasts["uniform"]["members"]}
    assert (before, after) == ({"m": 3, "n": 3}, {"m": 6, "n": 6})
    under_range = {each["member_id"]: each["after"] for each in forecasts["range"]["members"]}
    assert under_range["m"] == [["a", 0], ["a", 1], ["a", 2], ["b", 0], ["b", 1], ["b", 2]]
    assert forecasts["range"]["moves"] == 3


def test_the_worst_come_first_and_all_are_counted(place):
    answer = told(place)
    order = ["blocked", "unknown", "converts", "ready", "converted"]
    states = [each["readiness"] for each in answer["groups"]]
    assert states == sorted(states, key=order.index)
    assert answer["counts"] == {state: states.count(state) for state in order}
    assert answer["total"] == len(CASES) + 1
    assert [note.split(":")[0] for note in answer["notes"][:2]] == [
        "1 deleted group is left out",
        "1 share group is left out",
    ]
    assert told(place, "--limit", "1")["total"] == answer["total"]


def test_the_rehearsal_that_is_named_runs(groups, tmp_path):
    of = group("rdk", written={"m": LIBRDKAFKA, "n": LIBRDKAFKA}, told=b"\x00")
    folder = write(tmp_path, **together([of], topic_snapshots=LISTED))
    [found] = told(folder)["groups"]
    assert (
        found["plan"] == "groupledger plan-migration --listed cooperative-sticky --assignor range --client librdkafka=2"
    )
    assert f"to an assignor that can be converted: {found['plan']}" in ask(folder)
    ran = CliRunner().invoke(main, found["plan"].split()[1:])
    assert ran.exit_code in (0, 4)
    assert "rolling bounces" in ran.stdout
    assert groups["custom that remembers"]["plan"] is None


@pytest.mark.parametrize(
    ("listing", "says"),
    [
        ([], "no listing has the partitions of a, b"),
        ([each | {"topic_id": None} for each in LISTED], "the id of a, b"),
        ([each | {"topic_id": "?"} for each in LISTED], "the group cannot be"),
    ],
)
def test_what_would_move_is_not_guessed(tmp_path, listing, says):
    folder = write(tmp_path, **together([group("java")], topic_snapshots=listing))
    [found] = told(folder)["groups"]
    assert [(each["moves"], says in each["why"]) for each in found["forecasts"]] == [(None, True)] * 2
    assert "what would move is not known" in ask(folder)


def test_a_period_bounds_what_changed(place):
    [found] = told(place, "several", "--since", second(2).isoformat())["groups"]
    assert found["reasons"] == []


def test_an_empty_answer_says_why(place, tmp_path):
    assert "the ledger holds no record of a group yet" in ask(write(tmp_path))
    assert "is left out: each is no more" in ask(place, "no more")
    ran = CliRunner().invoke(main, ["readiness", "--ledger", place, "nobody"])
    assert ran.exit_code == 2
    assert "UNKNOWN_GROUP" in ran.output


def test_a_terminal_of_80_columns_has_room(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    head = next(line for line in ask(place).splitlines() if line.startswith("group "))
    assert len(head) <= 80
    assert {"state", "uniform", "range"} <= set(head.split())


def test_recorded_groups_of_librdkafka_have_user_data_in_their_assignments(tmp_path):
    """Seen on a real broker: its cooperative leader echoes what members sent; Java's leaders write none."""
    groups = {each["group_id"]: each for each in told(ledger_of(tmp_path, ["dev"]), "--cluster", "dev")["groups"]}
    codes = {
        name: [each["code"] for each in of["reasons"] if each["effect"] != "caution"] for name, of in groups.items()
    }
    assert codes["rdk-cooperative-sticky"] == ["ASSIGNMENT_HAS_USER_DATA"]
    assert {name for name, found in codes.items() if found == ["CLIENT_LACKS_KIP_848"]} == {
        f"kpy-{each}" for each in ("range", "roundrobin", "sticky", "cooperative-sticky")
    }
    assert {of["readiness"] for name, of in groups.items() if name.startswith("new-")} == {"converted"}
    assert all(of["readiness"] == "ready" for name, of in groups.items() if name.startswith("java-"))
