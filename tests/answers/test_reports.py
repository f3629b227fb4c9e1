"""Reports rank groups, and say what makes each so: from histories written down here."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from pyarrow import parquet

from groupledger.answers.skew import read_weights
from groupledger.cli import main
from groupledger.core.faults import Fault
from tests.answers.group_histories import CLUSTER, history, listed, second, together
from tests.answers.ledgers import write

ALL = "a:0,1,2"


def moved(of, at, partition, before, after):
    """A row of `ownership_changes` with the last state."""
    told = {"topic": "a", "partition": partition, "at": second(at), "log_partition": 0, "incarnation": 1}
    said = {"snapshot_id": of.snapshot_id, "offset": of.offset, "from_member_id": before, "to_member_id": after}
    return of.add("ownership_changes", **(told | said))


def stormy():
    """A member that comes and goes, six times in a minute, and takes partition 0 with it; one repeats a topic."""
    of = history("stormy")
    for number in range(6):
        with_it = {"m//app": "a:1,2", f"n-{number}//guest": "a:0"}
        of.state(number * 20, 2 * number + 1, {"m//app": ALL})
        moved(of, number * 20, 0, None, "m")
        of.state(number * 20 + 10, 2 * number + 2, with_it)
        moved(of, number * 20 + 10, 0, None, f"n-{number}")
    return of.finding("TOPIC_REPEATED", member_id="m").finding("CLAIM_DIFFERS", "info", member_id="m")


def restarted(group, moves):
    """A static member that is away for a while; with `moves`, another one has its partition meanwhile."""
    of = history(group).state(0, 1, {"m": "a:1,2", "s-1/i/p": "a:0"})
    moved(of, 0, 0, None, "s-1")
    if moves:
        of.state(60, 2, {"m": ALL})
        moved(of, 60, 0, "s-1", "m")
    of.state(120, 3, {"m": "a:1,2", "s-2/i/p": "a:0"})
    return moved(of, 120, 0, "m" if moves else "s-1", "s-2")


def spread(group, *loads, racks=(None, None, None), **more):
    """A group with these loads."""
    of = history(group).state(0, 1, {f"m{number}": load for number, load in enumerate(loads)}, topics="a b", **more)
    for row, rack in zip(of.rows["member_snapshots"], racks, strict=False):
        row["rack_id"] = rack
    return of


def compared(group, *results, **more):
    """A group with these results, each (moves, least moves, more)."""
    of = history(group)
    for number, (moves, least, told) in enumerate(results, 1):
        of.state(number * 60, number, {"m": ALL}, **more).result(moves, least, members=1, **told)
    return of


HISTORIES = [
    stormy(),
    history("calm").state(0, 1, {"m": ALL}).state(4000, 2, {"m": ALL, "n": ""}),
    history("rewritten").state(0, 1, {"m": ALL}).state(1, 1, {"m": ALL}, snapshot_kind="rewrite"),
    restarted("moved work", moves=True),
    restarted("moved nothing", moves=False),
    spread("even", "a:0", "a:1", "a:2", racks=("x", "y", "x")),
    spread("uneven", "a:0,1,2 b:0", "b:1", "", racks=("y", None, "x")),
    spread("shared", "a:0,1,2 b:0,1,2", "", group_type="share"),
    compared("sloppy", (5, 2, {}), (2, 2, {}), (4, 0, {})),
    compared("thrifty", (2, 2, {}), (9, 0, {"verdict": "valid-different"}), (9, 1, {"scenario": "other"})),
    compared("bounded", (5, 2, {}), shared_topics=None, subscribed_topics=["a"]),
]
LISTED = [*listed("a", (-60, 3)), *listed("b", (-60, 2))]
LISTED[0]["racks"] = [["x", "y"], ["y"], ["z"]]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return write(tmp_path_factory.mktemp("ledger"), **together(HISTORIES, topic_snapshots=LISTED))


def ask(place, name, *arguments):
    ran = CliRunner().invoke(main, ["report", name, "--ledger", place, *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def told(place, name, *arguments):
    return json.loads(ask(place, name, *arguments, "--json"))[name]


def shares(of):
    return [(each["what"], each["times"]) for each in of]


def test_a_storm_has_its_causes_members_partitions_and_findings(place):
    answer = told(place, "storms")
    first = answer["groups"][0]
    assert [first[name] for name in ("group_id", "rebalances", "in_an_hour", "looked_at")] == ["stormy", 12, 12, 12]
    assert shares(first["causes"]) == [("member-joined", 6), ("member-gone", 5), ("group-born", 1)]
    assert shares(first["members"]) == [("guest", 11), ("app", 1)]
    assert shares(first["partitions"]) == [("a-0", 12)]
    assert shares(first["findings"]) == [("REPEATED_TOPIC", 1)]
    by_group = {each["group_id"]: each for each in answer["groups"]}
    assert (by_group["calm"]["rebalances"], by_group["calm"]["in_an_hour"]) == (2, 1)
    assert "rewritten" not in by_group or by_group["rewritten"]["rebalances"] == 1
    assert answer["total"] == len(HISTORIES)


def test_a_period_and_a_pattern_bound_a_storm(place):
    [only] = told(place, "storms", "--group", "sto*", "--since", second(60).isoformat())["groups"]
    assert (only["rebalances"], shares(only["partitions"])) == (6, [("a-0", 6)])
    assert shares(only["causes"]) == [("member-gone", 3), ("member-joined", 3)]
    lines = ask(place, "storms", "--group", "stormy").splitlines()
    assert [line.split(":")[0] for line in lines[4:-1]] == [
        "stormy", "causes", "members", "partitions", "findings",
    ]  # fmt: skip


def test_skew_counts_partitions_and_idle_members(place):
    groups = told(place, "skew", "--limit", "50")["groups"]
    assert "shared" not in {each["group_id"] for each in groups}
    first = next(each for each in groups if each["group_id"] == "uneven")
    assert [first[name] for name in ("members", "idle", "most", "least", "most_weight")] == [3, 1, 4, 0, None]
    assert [len(load["partitions"]) for load in first["loads"]] == [4, 1, 0]
    ranks = [(each["most"] - each["least"]) for each in groups]
    assert ranks == sorted(ranks, reverse=True)
    assert [each["group_id"] for each in told(place, "skew", "--limit", "1")["groups"]] == [groups[0]["group_id"]]


WEIGHTS = {"topic": ["a", "a", "b"], "partition": [0, 2, 1], "lag": [1, 100, 500]}


def csv(path):
    path.write_text("partition,lag,topic\n0,1,a\n2,100,a\n1,500,b\n")


def as_parquet(path):
    parquet.write_table(pa.table(WEIGHTS), path)


def delta(path):
    write_deltalake(str(path), pa.table(WEIGHTS))


@pytest.mark.parametrize(("name", "put"), [("lag.csv", csv), ("lag.parquet", as_parquet), ("lag", delta)])
def test_weights_rank_by_what_partitions_weigh(place, tmp_path, name, put):
    put(tmp_path / name)
    groups = told(place, "skew", "--weights", str(tmp_path / name), "--limit", "50")["groups"]
    first = groups[0]
    assert (first["group_id"], first["most_weight"], first["least_weight"]) == ("uneven", 500.0, 0.0)
    assert [(load["member_id"], load["weight"]) for load in first["loads"]] == [("m1", 500.0), ("m0", 101.0), ("m2", 0)]
    assert first["unweighted"] == 2
    assert "weight" in ask(place, "skew", "--weights", str(tmp_path / name), "--group", "uneven")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("topic,partition\na,0\n", "has the columns topic, partition"),
        ("topic,partition,lag,bytes\na,0,1,2\n", "has the columns topic, partition, lag, bytes"),
        ("topic,partition,lag\na,0,1\na,0,2\n", "names a-0 twice"),
        ("topic,partition,lag\na,0,-1\n", "gives a-0 the lag -1"),
        ("topic,partition,lag\na,0,inf\n", "gives a-0 the lag inf"),
        ("topic,partition,lag\na,0,\n", "gives a-0 the lag None"),
        ("topic,partition,lag\na,x,1\n", "names a partition a-x"),
        ("", "cannot be read: Empty CSV file"),
        (None, "cannot be read"),
    ],
)
def test_what_are_no_weights_is_refused(tmp_path, text, says):
    path = tmp_path / "lag.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Fault, match=says) as caught:
        read_weights(str(path))
    assert caught.value.code == "BAD_WEIGHTS"


def test_a_folder_that_is_no_table_holds_no_weights(tmp_path):
    with pytest.raises(Fault, match="cannot be read") as caught:
        read_weights(str(tmp_path))
    assert caught.value.code == "BAD_WEIGHTS"


def test_topics_named_by_numbers_are_names(tmp_path):
    (tmp_path / "lag.csv").write_text("topic,partition,lag\n0042,0,1.5\n")
    assert read_weights(str(tmp_path / "lag.csv")) == {("0042", 0): 1.5}


def test_a_static_member_that_was_away_moved_work(place):
    members = told(place, "static")["members"]
    assert [(each["group_id"], each["takeovers"], each["moved"], each["shared"]) for each in members] == [
        ("moved work", 1, 1, None),
        ("moved nothing", 1, 0, None),
    ]


def test_stickiness_sums_what_can_be_compared(place):
    groups = {each["group_id"]: each for each in told(place, "stickiness")["groups"]}
    names = (
        "compared",
        "others",
        "certain",
        "moves",
        "least",
        "excess",
        "worst",
        "worst_snapshot_id",
        "worst_generation",
    )
    found = {group: tuple(each[name] for name in names) for group, each in groups.items()}
    assert found == {
        "sloppy": (3, 0, 3, 11, 4, 7, 4, f"log/{CLUSTER}/sloppy/3", 3),
        "thrifty": (1, 1, 1, 2, 2, 0, 0, None, None),
        "bounded": (1, 0, 0, 0, 0, 0, 0, None, None),
    }
    assert next(iter(groups)) == "sloppy"
    assert "of their least moves only a lower bound is known" in ask(place, "stickiness")
    assert all(each["moves"] == each["least"] + each["excess"] - each["below"] for each in groups.values())


def test_racks_are_compared_where_both_sides_are_known(place):
    groups = told(place, "rack")["groups"]
    names = ("group_id", "local", "remote", "possible", "unknown")
    assert [tuple(each[name] for name in names) for each in groups] == [
        ("even", 2, 1, 2, 0),
        ("uneven", 2, 1, 2, 2),
    ]
    assert groups[0]["members"][0]["remote"] == [["a", 2]]


REPORTS = ("storms", "joins", "migration", "skew", "static", "stickiness", "rack")


@pytest.mark.parametrize("name", REPORTS)
def test_an_empty_report_says_why(place, tmp_path, name):
    nothing = ask(place, name, "--group", "calm", "--until", "2020-01-01T00:00Z")
    assert nothing.startswith("no record lies in this period: the ledger has 2, from 2026-11-21T14:00:00.000Z to")
    assert "the ledger holds no record of a group yet" in ask(write(tmp_path), name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("storms", "gone"),
        ("joins", "gone"),
        ("migration", "no record of this period is of a group with members"),
        ("skew", "no group has members at the end of this period"),
        ("static", "no record of this period is of a group with members"),
        ("stickiness", "no record of this period is of a group with members"),
        ("rack", "no member names a rack (client.rack) in the last state of these groups"),
    ],
)
def test_records_without_members_are_not_denied(tmp_path, name, says):
    of = history("gone").state(0, 1, {"m": ALL}).state(60, 2, {}, snapshot_kind="empty", state="Empty")
    place = write(tmp_path, **together([of], topic_snapshots=LISTED))
    assert says in ask(place, name, "--since", second(30).isoformat())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("skew", "no record lies in this period"),
        ("static", "no member of these groups has a group.instance.id"),
        ("rack", "no member names a rack (client.rack) in the last state of these groups"),
    ],
)
def test_what_lies_before_the_period_ends_decides(place, name, says):
    words = ("--until", second(-1).isoformat()) if name == "skew" else ()
    assert says in ask(place, name, "--group", "calm", *words)


def test_results_are_asked_for_where_there_are_none(place):
    assert "run `groupledger assign --snapshots every`" in ask(place, "stickiness", "--group", "calm")
    assert "each kept its member id" in ask(place, "static", "--group", "moved*", "--until", second(100).isoformat())
