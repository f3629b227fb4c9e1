"""`replay`: another assignor over whole histories is committed once; a run made again is what it was, or it is told."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.config import SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.pipeline.replays import scenario_of
from groupledger.tables import MEMBER_SNAPSHOTS

pytestmark = pytest.mark.spark

STORM = CAPTURES / "storm"


@pytest.fixture(scope="module")
def space(new_workspace):
    found = new_workspace("replayed")
    sources = {"offsets-jsonl": "offsets.jsonl.gz", "topics-jsonl": "topics.jsonl.gz"}
    found.ingest(*(SourceSettings(kind=kind, path=str(STORM / name)) for kind, name in sources.items()), run_id="read")
    return found


def replay(space, *arguments, command="replay"):
    config = space.folder / "groupledger.yaml"
    config.write_text(f"cluster_id: edge\nledger: {{location: {json.dumps(space.location.path)}}}\n", encoding="utf-8")
    done = CliRunner().invoke(main, [command, *arguments, "--config", str(config), "--json"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.long
def test_history_under_another_assignor_is_committed_and_comes_out_the_same_again(space):
    code, told = replay(space, "--assignor", "sticky", "--commit")
    assert (code, told["scenario"], told["total"] > 0) == (0, "replay-sticky", True)
    assert told["rebalances"] == sum(group["rebalances"] for group in told["groups"])
    assert replay(space, "--assignor", "sticky", "--commit")[1] == told
    for run_id, kind, table in ((told["run_id"], "assign", "assignments"), ("read", "ingest", "member_snapshots")):
        code, verified = replay(space, run_id, command="verify")
        assert (code, verified["status"], verified["kind"], verified["same"]) == (0, "done", kind, True)
        assert {each["table"]: each["same"] for each in verified["tables"]}[table] is True


@pytest.mark.long
def test_a_run_whose_facts_were_changed_comes_out_different(space):
    told = replay(space, "--assignor", "range", "--commit")[1]
    name = space.location.identifier(MEMBER_SNAPSHOTS)
    space.spark.sql(f"UPDATE {name} SET member_id = concat('other-', member_id)")
    code, verified = replay(space, told["run_id"], command="verify")
    assert (code, verified["status"], verified["same"]) == (4, "different", False)
    assert {each["table"]: each["same"] for each in verified["tables"]}["assignments"] is False


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["verify", "nowhere"], "UNKNOWN_RUN"), (["replay", "--assignor", "stikcy"], "UNKNOWN_ASSIGNOR")],
)
def test_what_is_not_there_is_named(space, arguments, says):
    config = space.folder / "groupledger.yaml"
    config.write_text(f"cluster_id: edge\nledger: {{location: {json.dumps(space.location.path)}}}\n", encoding="utf-8")
    done = CliRunner().invoke(main, [*arguments, "--config", str(config)])
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("assignor", "name"),
    [
        ("cooperative-sticky", "replay-cooperative-sticky"),
        ("shop.assignors:Weighted", "replay-shop.assignors-weighted"),
        ("m:" + "x" * 90, "replay-m-" + "x" * 55),
    ],
)
def test_a_scenario_is_named_after_its_assignor(assignor, name):
    assert scenario_of(assignor) == name
