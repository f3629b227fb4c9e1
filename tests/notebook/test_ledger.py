"""A ledger in a notebook: the same answers and words as the commands, without Spark; HTML that nobody can break."""

import html
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from click.testing import CliRunner

import groupledger as gl
from groupledger.cli import main
from groupledger.report.pictures import NOBODY
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J$x_1$&amp;"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two rebalances of `pay`, a group in two clusters, one whose name is an attack."""
    pay = History("pay").state(1, "m a:0,1,2").state(2, "m a:0,1 | n a:2").state(3, "m a:0 | n a:2")
    groups = [pay, History("both").state(4, "m a:0"), History("both", cluster="eu").state(4, "m a:0")]
    groups.append(History(HOSTILE, topics=(HOSTILE,)).state(5, f"{HOSTILE.replace(' ', '')} a:0,1,2"))
    for row in (row for group in groups for row in group.rows["group_snapshots"]):
        row.setdefault("complete", True)
    finding = {
        "cluster_id": "dev",
        "group_id": HOSTILE,
        "snapshot_id": f"log/dev/{HOSTILE}/5",
        "offset": 5,
        "severity": "error",
    }
    finding |= {"code": "DOUBLE_ASSIGNED", "evidence": HOSTILE}
    return write(
        tmp_path_factory.mktemp("ledger"),
        **rows_of(*groups, topic_snapshots=[listed("a", 3)], violations=[finding]),
    )


@pytest.fixture(scope="module")
def ledger(place):
    return gl.open(place)


ASKED = {
    "show": (lambda ledger: ledger.show(), ["show"]),
    "findings": (lambda ledger: ledger.findings("pay"), ["show", "--findings", "--group", "pay"]),
    "coverage": (lambda ledger: ledger.coverage(), ["show", "--coverage"]),
    "quarantine": (lambda ledger: ledger.quarantine(), ["show", "--quarantine"]),
    "who": (lambda ledger: ledger.who("a-2"), ["who", "a-2"]),
    "who at": (
        lambda ledger: ledger.who("a-2", at=at(1), group="p*"),
        ["who", "a-2", "--at", "2026-11-21T14:01Z", "--group", "p*"],
    ),
    "joins": (lambda ledger: ledger.joins(), ["report", "joins"]),
    "migrations": (lambda ledger: ledger.migrations(), ["report", "migration"]),
    "readiness": (lambda ledger: ledger.readiness("pay"), ["readiness", "pay"]),
    "unowned": (lambda ledger: ledger.unowned(), ["who", "--unowned-since"]),
    "unowned for": (lambda ledger: ledger.unowned("1m"), ["who", "--unowned-since", "1m"]),
    "timeline": (lambda ledger: ledger.timeline("p*"), ["timeline", "p*"]),
    "owners": (lambda ledger: ledger.owners("a-2"), ["timeline", "--partition", "a-2"]),
    "audit": (lambda ledger: ledger.audit(), ["audit"]),
    "storms": (lambda ledger: ledger.storms(), ["report", "storms"]),
    "skew": (lambda ledger: ledger.skew(), ["report", "skew"]),
    "static": (lambda ledger: ledger.static_members(), ["report", "static"]),
    "stickiness": (lambda ledger: ledger.stickiness(), ["report", "stickiness"]),
    "rack": (lambda ledger: ledger.racks(), ["report", "rack"]),
    "history": (lambda ledger: ledger.group("pay").show(), ["show", "--group", "pay"]),
    "rebalance": (lambda ledger: ledger.group("pay").rebalance(2), ["show", "--group", "pay", "--generation", "2"]),
    "explain": (lambda ledger: ledger.group("pay").explain(2), ["explain", "pay", "--generation", "2"]),
    "diff": (lambda ledger: ledger.group("pay").diff(1, "30s"), ["diff", "pay", "--from", "1", "--to", "30s"]),
    "sql": (
        lambda ledger: ledger.sql("SELECT group_id FROM current_group_snapshots ORDER BY 1"),
        ["sql", "SELECT group_id FROM current_group_snapshots ORDER BY 1"],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_says_what_its_command_does(ledger, place, name):
    """In the same words, with the same JSON; its HTML is escaped, and needs nothing from elsewhere."""
    ask, words = ASKED[name]
    reply = ask(ledger)
    printed, told = (CliRunner().invoke(main, [*words, "--ledger", place, *more]) for more in ([], ["--json"]))
    assert printed.exit_code == 0, printed.stderr
    assert repr(reply) == printed.stdout.strip("\n")
    found = json.loads(told.stdout)
    has = reply.to_dict()
    assert has in found.values() or has.items() <= found.items()
    assert isinstance(reply.to_pandas(), pd.DataFrame)
    page = reply._repr_html_()
    assert page.count('<div style="overflow-x:auto" tabindex="0">') == page.count("<table")
    assert "></th>" not in page
    assert page.startswith('<div class="groupledger">')
    assert not any(each in page for each in ("<img", "<script", "\x1b", "http", "<link", "@import"))


def test_a_hostile_name_is_shown_as_it_is_in_a_terminal(ledger):
    shown = html.escape("<img src=x onerror=alert(1)>\\x1b[2J$x_1$&amp;")
    assert shown in ledger.audit()._repr_html_()
    assert shown in ledger.timeline("*", limit=100)._repr_html_()


def test_a_ledger_is_read_and_shown_without_what_takes_long_to_load(place):
    code = (
        "import sys; import groupledger as gl\n"
        f"group = gl.open({place!r}).group('pay')\n"
        "group.explain(2)._repr_html_(); repr(group.timeline()); repr(group.diff(1))\n"
        "print([name for name in ('pyspark', 'pandas', 'numba', 'delta', 'matplotlib') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_a_path_of_any_kind_opens_a_ledger(place, tmp_path):
    assert gl.open(Path(place)).group("pay").cluster == "dev"
    assert gl.open(f"file://{place}").group("pay").group_id == "pay"
    with pytest.raises(gl.Fault, match="there is no ledger at"):
        gl.open(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "USAGE"),
        ({"location": "x", "catalog": "main.x"}, "USAGE"),
        ({"location": "hdfs://name/x"}, "SPARK_NEEDED"),
        ({"catalog": "main.x"}, "SPARK_NEEDED"),
    ],
)
def test_what_needs_spark_says_so(arguments, code):
    with pytest.raises(gl.Fault) as raised:
        gl.open(**arguments)
    assert raised.value.code == code


def test_dataframes_of_spark_need_a_session(ledger):
    with pytest.raises(gl.Fault, match=r"needs a session: gl.open\(location, spark=spark\)"):
        ledger.frames  # noqa: B018 - the attribute access is the test


def test_a_group_is_of_one_cluster(ledger):
    assert repr(ledger.group("pay")) == "LedgerGroup('pay', cluster='dev')"


def test_a_ledger_says_where_it_is_and_what_can_be_asked(ledger, place):
    assert repr(ledger) == f"Ledger of consumer groups at {place}: .groups(), .who(topic), .group(id); help(ledger)"
    with_spark = gl.Ledger(ledger.reader, cast(Any, object()), "s3a://key:secret@audit/ledger")
    assert "at s3a://***@audit/ledger, with Spark: ." in repr(with_spark)
    assert ledger.group("both", "eu").cluster == "eu"
    with pytest.raises(gl.Fault, match="group 'both' is in clusters dev, eu: choose one"):
        ledger.group("both")
    with pytest.raises(gl.Fault, match="no group 'pya' in this ledger; did you mean pay"):
        ledger.group("pya")


@pytest.mark.parametrize(
    "when",
    [
        "2026-11-21T14:01:30Z",
        "2026-11-21T14:01:30",
        "2026-11-21 15:01:30+01:00",
        "210s",
        1795269690,
        timedelta(seconds=210),
        datetime(2026, 11, 21, 14, 1, 30),  # noqa: DTZ001 - a naive datetime is the test
        datetime(2026, 11, 21, 14, 1, 30, tzinfo=UTC),
        datetime(2026, 11, 21, 15, 1, 30, tzinfo=timezone(timedelta(hours=1))),
        pd.Timestamp("2026-11-21T14:01:30Z"),
        pd.Timestamp("2026-11-21T14:01:30.000000001"),
    ],
    ids=str,
)
def test_a_moment_may_be_written_in_many_ways(ledger, when):
    """In UTC where it names no zone."""
    [row] = ledger.who("a-2", at=when, group="pay").to_pandas().itertuples()
    assert (row.member_id, row.until, row.next_member_id) == ("m", pd.Timestamp(at(2)), "n")
    assert ledger.group("pay").diff(when).value.before.generation == 1


WRONG = {
    "time": (lambda ledger: ledger.who("a-2", at="noon"), "BAD_TIME", "a time is ISO 8601"),
    "number of seconds": (lambda ledger: ledger.who("a-2", at=12345), "BAD_TIME", "; got '12345'"),
    "hours": (lambda ledger: ledger.audit(since=24), "BAD_TIME", "; got '24'"),
    "fraction": (lambda ledger: ledger.group("pay").diff(4.5), "BAD_TIME", "or a generation: 12; got '4.5'"),
    "generation": (
        *(lambda ledger: ledger.explain("pay", "abc"), "USAGE"),
        "generation is 'abc'; expected a number, or \"latest\" (a time is at=)",
    ),
    "half a generation": (lambda ledger: ledger.group("pay").rebalance(4.5), "USAGE", "generation is 4.5; expected a"),
    "offset": (lambda ledger: ledger.group("pay").explain(offset="x"), "USAGE", "offset is 'x'; expected a whole"),
    "a number as a group": (lambda ledger: ledger.group(5), "USAGE", "group_id is 5; expected a text"),
    "no partition": (lambda ledger: ledger.who(None), "USAGE", "partition is None; expected a text"),
    "a function as an assignor": (
        lambda ledger: ledger.group("pay").what_if(assignor=len),
        "USAGE",
        "expected a name, or",
    ),
    "too many members": (
        lambda ledger: ledger.group("pay").what_if(members=10**9),
        "USAGE",
        "or -2 (leave), up to 100,000",
    ),
    "an empty assignor": (
        lambda ledger: ledger.group("pay").what_if(assignor=""),
        "UNKNOWN_ASSIGNOR",
        "assignor is ''",
    ),
    "no rows": (lambda ledger: ledger.storms(limit=0), "USAGE", "limit is 0; expected 1 or more"),
    "all rows": (lambda ledger: ledger.show(limit=None), "USAGE", "limit is None; expected a whole number"),
    "group": (lambda ledger: ledger.group("nope"), "UNKNOWN_GROUP", "known: "),
    "clusters": (lambda ledger: ledger.group("both"), "AMBIGUOUS_GROUP", "choose one (cluster=)"),
    "cluster": (lambda ledger: ledger.show("de"), "UNKNOWN_CLUSTER", "dev? (2 known: ledger.show() lists them)"),
    "order": (lambda ledger: ledger.group("pay").diff(3, 1), "BAD_PERIOD", "expected begin before end"),
    "no Spark": (lambda ledger: ledger.replay("range"), "SPARK_NEEDED", "a replay, or a DataFrame, needs a session"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_asked_is_refused_in_the_words_of_python(ledger, name):
    ask, code, said = WRONG[name]
    with pytest.raises(gl.Fault) as raised:
        ask(ledger)
    assert raised.value.code == code
    assert said in raised.value.message


def test_the_latest_generation_may_be_named(ledger):
    assert repr(ledger.explain("pay", "latest")) == repr(ledger.explain("pay"))


def test_a_ledger_nearby_is_named_as_one_opens_it(place, tmp_path):
    Path(tmp_path, "ledger").symlink_to(place)
    with pytest.raises(gl.Fault, match=rf'gl.open\("{tmp_path}/ledger"\) opens one nearby'):
        gl.open(tmp_path / "legder")


def test_a_frame_has_its_columns_without_a_row(ledger):
    frame = ledger.owners("a-2", until="2026-11-21T13:00Z").to_pandas()
    assert (len(frame), list(frame.columns)[:4]) == (0, ["cluster_id", "group_id", "topic_id", "member_id"])


def test_rows_of_a_frame_are_plain_values(ledger):
    frame = ledger.group("pay").explain(2).to_pandas()
    assert frame.to_dict("records") == [{"topic": "a", "partition": 2, "from_member_id": "m", "to_member_id": "n"}]
    entry = ledger.timeline("pay").to_pandas().iloc[1]
    assert entry.causes[0]["kind"] == "member-joined"
    assert type(entry.causes[0]["kind"]) is str
    assert entry.observed_at == pd.Timestamp(at(2))
    members = ledger.group("pay").diff(1, 2).to_pandas()
    assert list(members.added) == [(), (("a", 2),)]


def test_a_query_takes_values(ledger):
    found = ledger.sql("SELECT count(*) AS n FROM current_group_snapshots WHERE group_id = :group", group="p'ay")
    assert found.to_arrow().to_pylist() == found.to_dict() == [{"n": 0}]
    assert found.to_pandas().n[0] == 0
    with pytest.raises(gl.Fault, match="expected a query"):
        ledger.sql("DROP TABLE runs")


def test_what_if_shows_itself(ledger):
    reply = ledger.group("pay").what_if(members=1)
    assert repr(reply).startswith("pay (cluster dev), if 1 member joins\nas of generation 3")
    assert "\ngiven up: 2 (eager: members stop reading all they have); from member to member: 1\n" in repr(reply)
    assert list(reply.to_pandas().member_id) == ["m", "n", "new-1"]
    assert [each["moves"] for each in [reply.to_dict()]] == [1]
    before, after = reply.plot().figure.axes
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in (before, after)]
    assert names == [["m", "n", "new-1", "(nobody)"]] * 2


def test_partitions_that_are_yet_to_be_made_lack_no_owner_before(ledger):
    figure = ledger.group("pay").what_if(partitions={"a": "+2"}).plot().figure
    nobody = [axes.collections[0].get_array()[-1].tolist() for axes in figure.axes]
    assert nobody == [[0, NOBODY, 0, 0, 0], [0] * 5]


def test_pictures_are_drawn(ledger, tmp_path):
    for reply in (ledger.timeline("*", limit=100), ledger.group("pay").explain(2), ledger.group("pay").rebalance(2)):
        picture = reply.plot()
        assert picture._repr_png_().startswith(b"\x89PNG")
    picture.save(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_a_picture_of_nothing_says_why_there_is_none(ledger):
    with pytest.raises(gl.Fault, match="nothing in that time: the ledger knows pay from"):
        ledger.timeline("pay", until="2026-11-21T13:00Z").plot()


def test_a_picture_of_too_many_groups_is_refused(tmp_path):
    groups = [History(f"g{number}").state(1, "m a:0") for number in range(13)]
    many = gl.open(write(tmp_path, **rows_of(*groups)))
    with pytest.raises(gl.Fault, match="13 groups make no readable picture; at most 12"):
        many.timeline("*").plot()
    many.timeline("g1*").plot()


@pytest.mark.parametrize("ranking", ["storms", "skew"])
def test_a_ranking_of_storms_or_skew_has_a_plot(ledger, ranking):
    found = getattr(ledger, ranking)()
    figure = found.plot().figure
    drawn = [label.get_text() for axes in figure.axes[:1] for label in axes.get_yticklabels()]
    assert len(drawn) == len(found.value.groups) > 0


def test_another_ranking_says_which_have_one(ledger):
    with pytest.raises(gl.Fault, match="storms and skew have one"):
        ledger.joins().plot()
    with pytest.raises(gl.Fault, match="no group to draw"):
        ledger.storms(until="1990-01-01").plot()
