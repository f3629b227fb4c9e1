"""`replay` without a commit: the answer that the committed results give, and not one row more in the ledger."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.notebook.ledger import open_ledger
from groupledger.sinks.attempts import read_commits
from groupledger.sinks.ledger_tables import LedgerLocation
from tests.answers.captured import ledger_of
from tests.pipeline.ledgers import Workspace

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def space(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("replays")
    ledger = ledger_of(folder / "ledger", ["storm"])
    return Workspace(spark, lambda _: LedgerLocation(path=ledger), folder)


def replay(space, *arguments):
    done = CliRunner().invoke(main, ["replay", *arguments, "--ledger", space.location.path])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_nothing_is_written_and_what_is_said_is_what_a_commit_gives(space, tmp_path):
    before = read_commits(space.spark, space.location)
    asked = ("storm", "--assignor", "range")
    answer = json.loads(replay(space, *asked, "--json", "--html", str(tmp_path / "page.html")))
    assert "run_id" not in answer
    assert read_commits(space.spark, space.location) == before
    assert answer["rebalances"] > 0
    assert answer["replayed"]["revoked"] > answer["happened"]["revoked"]
    committed = json.loads(replay(space, *asked, "--json", "--commit"))
    assert committed.pop("run_id").startswith("assign-")
    assert committed == answer
    then, was = answer["replayed"], answer["happened"]
    said = f"range: {then['revoked']} partitions given up instead of {was['revoked']}; "
    assert f"{said}{then['gained']} handed over instead of {was['gained']}; " in (tmp_path / "page.html").read_text()


def test_a_notebook_says_and_draws_the_same(space):
    found = open_ledger(space.location.path, spark=space.spark).replay("sticky", group="storm")
    assert found.to_dict()["groups"] == json.loads(replay(space, "storm", "--assignor", "sticky", "--json"))["groups"]
    assert found.value.text in repr(found)
    assert list(found.to_pandas()["group_id"]) == ["storm"]
    assert found.plot()._repr_png_().startswith(b"\x89PNG")
