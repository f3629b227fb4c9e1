"""Ids at 80 columns: those that say nothing, those of 249 characters, hundreds that joined, and that of one cluster."""

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.core.text import LONGEST, is_opaque, shortened, without_middle
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write

OPAQUE = ("FOCKw4p8Tiu3ZM4MK3WW5Q", "3_Kw4p8Tiu3ZM-MK3WWxyA")
OF_LIBRDKAFKA = "7hmYBqpeSHy+vFC/FDQlMQ"
LONG = "x" * 124 + "-" + "y" * 124
MANY = [f"member-{number:03d}" for number in range(300)]


def ledger(folder, first, second, clients, partitions):
    pay = History("pay", topics=("a",)).state(1, first).state(2, second)
    for row in pay.rows["group_snapshots"]:
        row["complete"] = True
    for row in pay.rows["member_snapshots"]:
        row["client_id"] = clients.get(row["member_id"], "client")
    return write(folder, **rows_of(pay, topic_snapshots=[listed("a", partitions)]))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    clients = {OPAQUE[0]: "shop-eu-1", OPAQUE[1]: "shop-eu-2", LONG: "c" * 249}
    some = [f"{OPAQUE[0]} a:0 | {OPAQUE[1]} a:1", f"{LONG} a:0 | n a:1", "m a:" + ",".join(map(str, range(300)))]
    more = [f"{OPAQUE[0]} a:1 | {OPAQUE[1]} a:0", f"{LONG} a:1 | n a:0"]
    more.append(" | ".join(f"{name} a:{number}" for number, name in enumerate(MANY)))
    names = ("opaque", "long", "many")
    return {
        name: ledger(tmp_path_factory.mktemp(name), first, second, clients, 300)
        for name, first, second in zip(names, some, more, strict=True)
    }


def printed(place, *words, columns="80"):
    ran = CliRunner(env={"COLUMNS": columns}).invoke(main, [*words, "--ledger", place])
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def test_an_id_that_says_nothing_goes_and_the_client_stays(places):
    assert "shop-eu-2 (3_Kw4p8T)" in printed(places["opaque"], "who", "a-0")
    wide = printed(places["opaque"], "who", "a-0", "--wide")
    assert OPAQUE[1] in wide
    assert "shop-eu-2" in wide
    assert all(map(is_opaque, (*OPAQUE, OF_LIBRDKAFKA)))
    assert not any(map(is_opaque, ("app-1-3f2504e0", "m" * 23)))


@pytest.mark.parametrize(
    "words", [["who", "a-1"], ["timeline", "--partition", "a-1"], ["explain", "pay"], ["show", "pay", "--last"]]
)
def test_a_long_id_pushes_nothing_off(places, words):
    text = printed(places["long"], *words)
    assert f"xxx...{'y' * 10}" in text
    tables = [line for line in text.splitlines() if not line.startswith(("- ", "known up to"))]
    assert max(map(len, tables)) <= 100
    if words[0] != "explain":
        assert LONG in printed(places["long"], *words, "--wide")


def test_names_that_differ_in_the_middle_alone_stay(places):
    names = ["a" * 50 + each + "b" * 50 for each in "12"]
    assert shortened(names) == {name: name for name in names}
    assert without_middle("a" * LONGEST) == "a" * LONGEST
    assert len(without_middle("a" * (LONGEST + 1))) < LONGEST


@pytest.mark.parametrize("words", [["explain", "pay"], ["diff", "pay", "--from", "1"], ["timeline", "pay"]])
def test_many_members_that_joined_are_one_line_with_a_count(places, words):
    lines = printed(places["many"], *words).splitlines()
    [line] = [line for line in lines if "joined" in line]
    assert "300 joined" in line
    assert ("member-000" in line) == (words[0] != "timeline")


@pytest.mark.parametrize(
    ("words", "times"),
    [(["show"], 2), (["show", "pay"], 1), (["report", "storms"], 1), (["timeline", "pay"], 1), (["who", "a-1"], 1)],
)
def test_the_one_cluster_is_said_once(places, words, times):
    """Twice by `show`: its clusters are a table of their own."""
    shown = printed(places["many"], *words).replace("log/dev/", "")
    assert shown.count("dev") == times, shown
