"""One past rebalance, and the listings of `show`, from rows written down here."""

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.at_a_glance import clusters, coverage, findings, groups, history, quarantine, runs
from groupledger.answers.explanation import explain, moves, rebalance
from groupledger.cli import main
from groupledger.core.faults import Fault
from tests.answers.group_histories import history as states_of
from tests.answers.group_histories import together
from tests.answers.ledgers import COMMITTED, write
from tests.answers.rows import at, wire


def snapshot(offset, generation, kind="generation", group="pay", cluster="dev", **more):
    identity = {"cluster_id": cluster, "group_id": group, "offset": offset, "snapshot_id": f"log/{cluster}/0/{offset}"}
    said = {"group_type": "classic", "snapshot_kind": kind, "generation": generation, "assignor": "range", "members": 2}
    return identity | said | {"state": "Stable", "observed_at": at(offset)} | more


def member(offset, order, name, recorded, instance=None, **more):
    identity = {"cluster_id": "dev", "group_id": "pay", "offset": offset, "snapshot_id": f"log/dev/0/{offset}"}
    said = {"member_order": order, "member_id": name, "group_instance_id": instance, "recorded": recorded}
    return identity | said | more


def result(offset, scenario="baseline", moved=2, round_=1, **more):
    identity = {"scenario": scenario, "snapshot_id": f"log/dev/0/{offset}", "cluster_id": "dev", "group_id": "pay"}
    return identity | {"round": round_, "assignor": "range", "verdict": "exact", "moves": moved} | more


SNAPSHOTS = [
    snapshot(1, 0, "birth", members=0),
    snapshot(2, 1, previous_snapshot_id="log/dev/0/1", shared_topics=["b", "a"]),
    snapshot(5, 2, previous_snapshot_id="log/dev/0/2", subscribed_topics=["a", "b"]),
    snapshot(6, 2, "rewrite", previous_snapshot_id="log/dev/0/5", shared_topics=["a", "b"]),
    snapshot(9, 1, incarnation=1),
    snapshot(3, None, "fold", "new", group_type="consumer", group_epoch=2, assignor="uniform"),
    snapshot(
        4,
        None,
        "fold",
        "new",
        group_type="consumer",
        group_epoch=2,
        assignor="uniform",
        previous_snapshot_id="log/dev/0/3",
    ),
    snapshot(8, None, "deleted", "dead", members=0),
    snapshot(7, 1, group="both"),
    snapshot(7, 1, group="both", cluster="eu"),
]
MEMBERS = [
    member(2, 0, "m1", wire("a:0,1 b:0")),
    member(2, 1, "s1-x", wire("a:2"), "s1"),
    member(2, 2, "gone", wire("b:1")),
    member(5, 1, "s1-y", wire("a:2 a:1"), "s1"),
    member(5, 0, "m1", wire("a:0 b:0")),
    member(5, 2, "m2", None),
]


@pytest.fixture(scope="module")
def ledger(written):
    finding = {"code": "STALE_CLAIM", "cluster_id": "dev", "group_id": "pay", "snapshot_id": "log/dev/0/5", "offset": 5}
    rejected = {
        "stage": "decode",
        "code": "TRUNCATED",
        "cluster_id": "dev",
        "log_partition": 0,
        "message": "3 bytes left",
    }
    gap = {"cluster_id": "dev", "group_id": "pay", "kind": "generations-skipped", "from_value": 3, "to_value": 5}
    gaps = [
        gap | {"offset": 4, "snapshot_id": "log/dev/0/5", "reason": "3 to 5"},
        gap | {"offset": 2, "snapshot_id": "log/dev/0/2", "reason": "before"},
        gap | {"offset": 4, "group_id": "other", "reason": "of another"},
        *(
            {
                "cluster_id": "dev",
                "kind": "log-start-moved",
                "offset": 3,
                "snapshot_id": f"log/dev/{log}/3",
                "reason": log,
            }
            for log in ("0", "00")
        ),
    ]
    listed = [
        {"cluster_id": "dev", "topic": topic, "partition_count": count, "valid_from": at(minute)}
        for topic, count, minute in (("a", 3, 2), ("a", None, 6), ("a", 4, 9), ("b", 2, 6))
    ]
    listed.append({"cluster_id": "eu", "topic": "b", "partition_count": 2, "valid_from": at(0)})
    return written(
        group_snapshots=SNAPSHOTS,
        member_snapshots=MEMBERS,
        rebalances=[result(5), result(5, "what-if", 0), result(5, moved=9, round_=2), result(2, moved=7)],
        violations=[
            finding | {"evidence": text, "severity": severity}
            for text, severity in (("b said", "info"), ("a said", "error"), ("a said", "error"), ("A said", "info"))
        ],
        quarantine=[rejected | {"offset": offset} for offset in range(5)],
        coverage=gaps,
        topic_snapshots=listed,
        runs=[
            COMMITTED | {"run_id": f"r{number}", "attempt_id": name, "sequence": number}
            for number, name in ((1, "a"), (2, "b"))
        ],
    )


def test_who_had_what_before_and_after(ledger):
    found = rebalance(ledger, "pay", None, 2)
    rows = {move.member_id: (move.stays, move.held, move.assigned, move.added, move.revoked) for move in found.members}
    a0, a1, a2, b0, b1 = ("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)
    assert rows == {
        "m1": (True, (a0, a1, b0), (a0, b0), (), (a1,)),
        "s1-y": (True, (a2,), (a1, a2), (a1,), ()),
        "m2": (True, (), (), (), ()),
        "gone": (False, (b1,), (), (), (b1,)),
    }
    assert [move.member_id for move in found.members] == ["m1", "s1-y", "m2", "gone"]
    assert found.title == "pay, generation 2 (range, cluster dev)"


def test_a_rewrite_is_not_the_rebalance_but_is_named(ledger):
    found = rebalance(ledger, "pay", None, 2)
    assert (found.snapshot_id, found.same_generation) == ("log/dev/0/5", ("log/dev/0/6",))
    assert found.findings == ("STALE_CLAIM: A said", "STALE_CLAIM: a said", "STALE_CLAIM: b said")
    assert [(one.scenario, one.moves) for one in found.results] == [("baseline", 2), ("baseline", 9), ("what-if", 0)]


@pytest.mark.parametrize(
    ("group", "generation", "snapshot_id"),
    [
        ("pay", None, "log/dev/0/9"),
        ("pay", 1, "log/dev/0/9"),
        ("pay", 0, "log/dev/0/1"),
        ("new", 2, "log/dev/0/4"),
        ("dead", None, "log/dev/0/8"),
    ],
)
def test_the_last_incarnation_and_the_settled_epoch_are_told(ledger, group, generation, snapshot_id):
    assert rebalance(ledger, group, None, generation).snapshot_id == snapshot_id


@pytest.mark.parametrize(
    ("group", "cluster", "generation", "said"),
    [
        (
            "pya",
            None,
            None,
            "no group 'pya' in this ledger; did you mean pay? (4 known: `groupledger show` lists them)",
        ),
        ("pay", "eu", None, "no group 'pay' in cluster 'eu'; known: both"),
        ("pay", None, 7, "group 'pay' has no generation 7 in this ledger; last known: 0, 1, 2"),
        ("both", None, None, "group 'both' is in clusters dev, eu: choose one (--cluster)"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(ledger, group, cluster, generation, said):
    with pytest.raises(Fault) as raised:
        rebalance(ledger, group, cluster, generation)
    assert raised.value.message == said


def test_an_empty_ledger_says_what_to_do(written):
    with pytest.raises(Fault, match="it holds no group: run `groupledger ingest` first"):
        rebalance(written(), "pay")


def test_an_epoch_is_held_against_what_was_before_it(ledger):
    assert rebalance(ledger, "new", None, 2).previous_snapshot_id is None


def test_moves_of_nothing():
    assert moves([], []) == ()


def shown(listing, *columns):
    rows = [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]
    return [tuple(row[column] for column in columns) for row in rows]


def test_clusters_and_groups_at_a_glance(ledger):
    assert shown(clusters(ledger, 9), "cluster_id", "groups", "snapshots") == [("dev", 4, 9), ("eu", 1, 1)]
    last = shown(groups(ledger, 9), "cluster_id", "group_id", "snapshots", "generation", "observed_at")
    assert last == [
        ("dev", "both", 1, 1, at(7)),
        ("dev", "dead", 1, None, at(8)),
        ("dev", "new", 2, 2, at(4)),
        ("dev", "pay", 5, 1, at(9)),
        ("eu", "both", 1, 1, at(7)),
    ]
    assert shown(groups(ledger, 9, "eu"), "group_id") == [("both",)]
    assert shown(runs(ledger, 9), "sequence", "run_id") == [(2, "r2"), (1, "r1")]


def test_gaps_stand_beside_what_rests_on_them(ledger):
    """Of the groups' own history, of their log, and deleted topics; not those that are first listed later."""
    assert shown(clusters(ledger, 9), "cluster_id", "gaps") == [("dev", 5), ("eu", 0)]
    assert shown(groups(ledger, 9, "dev"), "group_id", "gaps") == [("both", 0), ("dead", 0), ("new", 0), ("pay", 2)]
    assert shown(history(ledger, "pay", None, "baseline", 9), "generation", "gaps") == [
        (0, 0),
        (1, 1),
        (2, 1),
        (2, 1),
        (1, 0),
    ]
    found = shown(coverage(ledger, 9, "dev", "pay"), "kind", "from_value", "to_value", "reason", "snapshot_id")
    assert [row for row in found if row[0] == "topic-not-listed"] == [
        ("topic-not-listed", 2, 2, _unlisted("a", 1), "log/dev/0/6"),
    ]


def _unlisted(topic, snapshots):
    times = f"at the time of {snapshots} snapshot{'s' * (snapshots > 1)}"
    return f"topic {topic} was in no topic listing {times}: its partition count then is not known"


def test_a_rebalance_says_what_it_does_not_rest_on(ledger):
    answer = rebalance(ledger, "pay", None, 2)
    assert answer.gaps == ("log-start-moved: 0", "generations-skipped: 3 to 5")
    assert answer.topics_not_listed == ("b",)
    assert rebalance(ledger, "both", "eu", 1).gaps == ()


def test_a_history_is_in_order_and_has_the_moves_of_its_scenario(ledger):
    listing = history(ledger, "pay", None, "baseline", 3)
    assert shown(listing, "generation", "snapshot_kind", "moves") == [
        (2, "generation", 2),
        (2, "rewrite", None),
        (1, "generation", None),
    ]
    assert (listing.total, listing.left_off) == (5, 2)
    assert shown(history(ledger, "pay", None, "what-if", 9), "moves")[2] == (0,)


ALGORITHMS = [
    ("exact", ["a", "b"], "a or b"),
    ("equal-sets", ["a"], "equal-sets: a"),
    ("perhaps", ["a"], "perhaps: a"),
    ("no-known-assignor", [], "no-known-assignor"),
    ("not-applicable: no-leader", None, None),
    (None, None, None),
]


def test_a_history_says_whose_algorithm_each_record_was(written):
    results = [result(at, attribution=found, attributed_to=names) for at, (found, names, _) in enumerate(ALGORITHMS, 1)]
    ledger = written(group_snapshots=[snapshot(at, at) for at in range(1, 7)], rebalances=results)
    told = shown(history(ledger, "pay", None, "baseline", 9), "algorithm")
    assert [algorithm for (algorithm,) in told] == [expected for *_, expected in ALGORITHMS]
    [exact] = rebalance(ledger, "pay", None, 1).results
    assert (exact.attribution, exact.attributed_to) == ("exact", ("a", "b"))


def test_generations_have_the_moves_of_the_first_round(ledger):
    assert shown(history(ledger, "pay", None, "baseline", 9), "generation", "moves")[1] == (1, 7)


def test_the_history_of_nobody_is_a_fault(ledger):
    with pytest.raises(Fault, match="no group 'nobody'"):
        history(ledger, "nobody", None, "baseline", 9)


@pytest.mark.parametrize(
    ("query", "total", "first"),
    [
        (findings, 4, {"code": "STALE_CLAIM", "evidence": "a said"}),
        (coverage, 6, {"kind": "log-start-moved", "reason": "0"}),
        (quarantine, 5, {"code": "TRUNCATED", "offset": 0, "message": "3 bytes left"}),
    ],
)
def test_listings_are_in_order_cut_and_counted(ledger, query, total, first):
    listing = query(ledger, 1)
    assert (listing.total, len(listing.rows)) == (total, 1)
    assert dict(zip(listing.columns, listing.rows[0], strict=True)).items() >= first.items()
    assert query(ledger, 9, "eu").rows == ()
    with pytest.raises(Fault, match="no group 'nobody' in this ledger; known: both, dead, new, pay"):
        query(ledger, 9, None, "nobody")


def test_a_member_that_leaves_is_of_the_epoch_that_it_leads_to(written):
    """It gives up its partitions before the next epoch is recorded. A static one comes back within its epoch."""
    before = None
    snapshots = []
    for offset, epoch, members in ((10, 2, 0), (11, 2, 2), (12, 3, 2), (13, 3, 2), (14, 3, 1), (15, 3, 2), (16, 4, 1)):
        of_epoch = {"group_type": "consumer", "group_epoch": epoch, "target_epoch": epoch}
        more = of_epoch | {"members": members, "previous_snapshot_id": before}
        snapshots.append(snapshot(offset, None, "fold", "left", **more))
        before = snapshots[-1]["snapshot_id"]
    reader = written(group_snapshots=snapshots)
    told = [rebalance(reader, "left", None, epoch) for epoch in (2, 3, 4)]
    assert [(one.previous_snapshot_id, one.snapshot_id) for one in told] == [
        (None, "log/dev/0/11"),
        ("log/dev/0/11", "log/dev/0/13"),
        ("log/dev/0/15", "log/dev/0/16"),
    ]
    back = explain(reader, "left", offset=15).rebalance
    assert (back.generation, back.previous_snapshot_id, back.snapshot_id) == (3, "log/dev/0/13", "log/dev/0/15")
    assert [each.offset for each in told[1].others] == [15]


@pytest.mark.parametrize(("version", "user_data", "written_as"), [
    (1, None, ("java before 3.5", "sarama", "kafka-go")), (2, None, ("java before 3.5", "sarama")),
    (3, None, ("java", "franz-go")), (3, b"", ("librdkafka",)), (9, None, ()),
])  # fmt: skip
def test_a_rebalance_says_which_libraries_write_what_its_leader_wrote(tmp_path, version, user_data, written_as):
    """Bytes that several libraries write are named so, beside `exact as java-range`."""
    of = states_of("g").state(0, 1, {"m": "a:0", "n": "a:1"}, leader="m", assignor="range", protocol_type="consumer")
    of.result(0, 0, attribution="exact", attributed_to=["java-range"])
    for row, (number, data) in zip(of.rows["member_snapshots"], ((version, user_data), (3, b"")), strict=True):
        row.update(subscription_version=number, user_data=data)
    place = write(tmp_path, **together([of]))
    ran = CliRunner().invoke(main, ["explain", "g", "--ledger", place, "--json"])
    assert tuple(json.loads(ran.stdout)["explanation"]["rebalance"]["leader_writes"]) == written_as
    told = CliRunner().invoke(main, ["explain", "g", "--ledger", place]).stdout
    named = "; the leader writes as " + " or ".join(written_as) if len(written_as) > 1 else ""
    assert f"whose algorithm: exact as java-range{named}\n" in told


def test_a_group_whose_members_name_no_assignor_has_the_servers_default(tmp_path):
    of = states_of("g").state(0, 1, {"m": "a:0"}, group_type="consumer", assignor=None)
    place = write(tmp_path, **together([of]))
    told = CliRunner().invoke(main, ["explain", "g", "--ledger", place]).stdout
    assert "(uniform, the server's default; the members name none, cluster dev)" in told
    for command in (["show"], ["show", "--group", "g"], ["timeline", "g", "--wide"], ["readiness", "g"]):
        assert "uniform (server default)" in CliRunner().invoke(main, [*command, "--ledger", place]).stdout
