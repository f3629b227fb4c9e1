"""What a person typed nearly right, or what lies in the current folder: found, or named."""

import json
import sys

import pytest
from click.testing import CliRunner

import groupledger as gl
from groupledger.cli import main
from groupledger.config import parse
from groupledger.core.custom.assignor_names import find
from groupledger.core.rebalance.registry import BY_CLASS, JAVA_PACKAGE, called
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write

MEMBERS = [{"id": name, "topics": ["t"]} for name in "ab"]
OWN = """\
from groupledger.custom import TopicPartition, assignor
from groupledger.listener import RebalanceListener


@assignor(name="all-to-one")
def assign(group):
    return {min(each.member_id for each in group.members): [TopicPartition("t", at) for at in range(3)]}


class Heard(RebalanceListener):
    def on_partitions_revoked(self, partitions, consumer):
        pass

    def on_partitions_assigned(self, partitions, consumer):
        pass
"""


def solved(name, **more):
    return gl.solve({"assignor": name, "topics": {"t": 3}, "members": MEMBERS}, **more)["assignment"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, which is not on the Python path, with a module of a person's own."""
    pay = History("pay", topics=("a",)).state(1, "m a:0,1,2").state(2, "m a:0,1 | n a:2")
    for row in pay.rows["group_snapshots"]:
        row["complete"] = True
    (tmp_path / "build").mkdir()
    write(tmp_path / "build" / "pay-ledger", **rows_of(pay, topic_snapshots=[listed("a", 3)]))
    (tmp_path / "mine_here.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.delitem(sys.modules, "mine_here", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", ["buld/pay-ledger", "pay-ledger", "build/pay-ledgr", "{here}/build/pay"])
def test_a_ledger_near_the_one_that_is_not_there_is_named(here, name):
    asked = name.format(here=here)
    done = CliRunner().invoke(main, ["show", "--ledger", asked])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert f"there is no ledger at {asked} (no table runs): --ledger " in done.stderr
    assert "build/pay-ledger" in done.stderr
    with pytest.raises(gl.Fault, match=r"gl\.open\(\".*build/pay-ledger\"\) opens one nearby"):
        gl.open(asked)


def test_a_new_ledger_is_said_to_be_new_and_which_one_is_nearby(here, monkeypatch):
    def ended(*_):
        raise gl.Fault("ENDED", "that is all")

    tables = "groupledger.sinks.ledger_tables"
    for name in (f"{tables}.init", f"{tables}.stands", f"{tables}.require_lasting_catalog"):
        monkeypatch.setattr(name, lambda *_: None)
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: None)
    monkeypatch.setattr("groupledger.cli.options.Job.warn_of_writers", ended)
    source = f"[{{kind: offsets-jsonl, path: {here}}}]"
    words = ["ingest", "--ledger", "build/pay-leger", "--set", f"sources={source}"]
    said = CliRunner().invoke(main, words).stderr
    assert "made a new ledger at build/pay-leger (build/pay-ledger is nearby: was that meant?)\n" in said


def test_a_ledger_without_a_run_is_not_named(here):
    (here / "build" / "pay-ledgr" / "runs" / "_delta_log").mkdir(parents=True)
    said = CliRunner().invoke(main, ["show", "--ledger", "build/pay-ledg"]).stderr
    assert "--ledger build/pay-ledger names one nearby; `" in said


def test_where_no_ledger_is_near_none_is_named(here, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    assert "nearby" not in CliRunner().invoke(main, ["show", "--ledger", "nowhere/at/all"]).stderr


def test_the_environment_names_the_ledger(here, monkeypatch):
    monkeypatch.setenv("GROUPLEDGER_LEDGER", "build/pay-ledger")
    assert "pay" in CliRunner().invoke(main, ["show", "pay"]).stdout
    assert "[LEDGER_MISSING]" in CliRunner().invoke(main, ["show", "--ledger", "other"]).stderr


def test_modules_of_the_current_folder_are_found_and_hide_no_other(here):
    (here / "json.py").write_text("raise SystemExit('the one of the current folder')\n")
    assert find("mine_here:assign").protocol_name == "all-to-one"
    script = {"id": "g", "topics": {"t": 2}, "events": [{"event": "join", "member": "a", "topics": ["t"]}]}
    done = CliRunner().invoke(main, ["simulate", "--listener", "mine_here:Heard"], input=json.dumps(script))
    assert '"journal"' in done.stdout, done.stderr


def test_a_custom_assignor_is_known_by_the_name_that_it_gives_itself(here):
    everything = {"a": [["t", 0], ["t", 1], ["t", 2]], "b": []}
    assert solved("all-to-one", custom=["mine_here:assign"]) == everything
    line = json.dumps({"assignor": "all-to-one", "topics": {"t": 3}, "members": MEMBERS})
    done = CliRunner().invoke(main, ["solve", "--custom", "mine_here:assign"], input=line)
    assert json.loads(done.stdout)["assignment"] == everything


@pytest.mark.parametrize("name", BY_CLASS)
def test_the_java_class_of_an_assignor_is_its_name(name):
    ours = BY_CLASS[name].name
    assert solved(name) == solved(ours)
    config = parse(f"cluster_id: a\nledger: {{location: x}}\nassign: {{assignor: {name}, scenario: s}}", "here")
    assert config.assign.assignor == ours
    assert config.assign.custom_assignors == ()


def test_a_java_class_is_understood_on_the_command_line(here):
    words = ["what-if", "pay", "--ledger", "build/pay-ledger", "--json", "--assignor"]
    by_class = CliRunner().invoke(main, [*words, f"{JAVA_PACKAGE}StickyAssignor"]).stdout
    assert by_class == CliRunner().invoke(main, [*words, "sticky"]).stdout
    assert json.loads(by_class)["what_if"]["assignor"] == "sticky"
    plan = CliRunner().invoke(main, ["plan-migration", "--listed", "RangeAssignor", "--client", "java=2"])
    assert "range, cooperative-sticky" in plan.stdout
    script = {"id": "g", "topics": {"t": 2}, "events": [{"event": "join", "member": "a", "topics": ["t"]}]}
    compared = CliRunner().invoke(main, ["simulate", "--compare", "RoundRobinAssignor"], input=json.dumps(script))
    assert compared.exit_code == 0


def test_a_name_that_is_no_java_class_stays():
    assert [called(name) for name in ("range", "mine:assign", "UniformAssignor")] == [
        "range",
        "mine:assign",
        "UniformAssignor",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["assign", "--assignor", "rnage"], "groupledger: --assignor is 'rnage'; did you mean range? "),
        (["assign", "--assignor", "StickyAsignor"], "did you mean StickyAssignor? "),
        (["assign", "--scenario", "A B", "--assignor", "range"], "groupledger: --scenario is 'A B'; expected "),
        (["assign", "--set", "assign.assignor=rnage"], "the command line --set assign.assignor=rnage: assign.assignor"),
        (["ingest"], "nothing to read: the configuration (there is no groupledger.yaml here) names no sources"),
    ],
)
def test_what_was_typed_is_what_is_told(here, words, said):
    done = CliRunner().invoke(main, [*words, "--ledger", "build/pay-ledger"])
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert said in done.stderr
