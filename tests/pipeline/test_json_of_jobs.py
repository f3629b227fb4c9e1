"""What the jobs print with `--json`, held against the schemas that the documentation gives: one ledger, one session."""

from __future__ import annotations

import json
import shlex

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.json_schemas import FORMS
from groupledger.config.loading import CAPTURES
from tests.cli.test_json_schemas import ASKED, complaints
from tests.cli.test_replay_listener import __name__ as listeners

STORM = CAPTURES / "storm"
SOURCES = [
    {"kind": kind, "path": str(STORM / name)}
    for kind, name in (("offsets-jsonl", "offsets.jsonl.gz"), ("topics-jsonl", "topics.jsonl.gz"))
]
JOBS = [
    ("init", 0, {}),
    ("ingest --run-id read", 0, {"nothing_new": False}),
    ("ingest --run-id read", 0, {"already_committed": True}),
    ("assign --run-id computed", 0, {"status": "done"}),
    ("callbacks", 0, {}),
    ("replay --assignor range", 0, {"assignor": "range"}),
    ("replay --assignor range --commit", 0, {"assignor": "range"}),
    ("verify computed", 0, {"status": "done", "same": True}),
    (f"rehearse storm --listener {listeners}:Committing", 0, {"errors": []}),
    (f"rehearse storm --listener {listeners}:Greedy", 4, {}),
    ("what-if --grid {grid}", 2, {"code": "GRID_EMPTY"}),  # tests/pipeline/test_grid.py has an answer
    ("doctor", 0, {"status": "done"}),
    ("maintain", 0, {}),
    ("migrate", 0, {"moved": {}}),
    ("rebuild", 0, {"remade": []}),
    ("demo", 0, {}),
    ("views", 2, {"code": "NOT_IN_A_CATALOG"}),
]
"""In this order on one ledger: the words, the exit code, and some of what is printed."""
WITHOUT_A_SESSION = [
    ("plan-migration --listed range --client java=2", 0, {"status": "safe"}),
    ("plan-migration --listed range --client java=2 --client librdkafka=1", 4, {"status": "unsafe"}),
    ("plan-migration --listed range --client java=2 --single-bounce", 4, {"status": "unsafe"}),
    ("plan-migration --listed rnage --client java=2", 2, {"status": "failed"}),
]


def printed(words, code):
    ran = CliRunner().invoke(main, [*shlex.split(words), "--json"])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    assert ran.exit_code == code, (words, ran.output)
    return json.loads(ran.stdout)


def require_as_said(words, code, expected):
    told = printed(words, code)
    assert complaints(words.split()[0], told) == [], words
    assert (words, {name: told[name] for name in expected}) == (words, expected)


@pytest.mark.long
def test_every_job_answers_as_its_schema_says(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: spark)
    settings = {"cluster_id": "storm", "ledger": {"location": str(tmp_path / "ledger")}, "sources": SOURCES}
    (tmp_path / "groupledger.yaml").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "grid.yaml").write_text("assignors: [range]\nchanges: [{members: 1}, {partitions: x2}]\n")
    for words, code, expected in JOBS:
        require_as_said(words.format(grid=tmp_path / "grid.yaml"), code, expected)


@pytest.mark.long
def test_views_are_created_in_a_catalog_as_the_schema_says(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: spark)
    # The test needs its catalog no longer than this session.
    monkeypatch.setattr("groupledger.sinks.ledger_tables.require_lasting_catalog", lambda *_: None)
    catalog = "spark_catalog.json_of_jobs"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {catalog}")
    (tmp_path / "groupledger.yaml").write_text(f"cluster_id: dev\nledger: {{catalog: {catalog}}}\n", encoding="utf-8")
    for words in ("init", "views"):
        require_as_said(words, 0, {"status": "done"})
    spark.sql(f"DROP DATABASE {catalog} CASCADE")


@pytest.mark.parametrize(("words", "code", "expected"), WITHOUT_A_SESSION)
def test_a_plan_is_as_its_schema_says(words, code, expected):
    require_as_said(words, code, expected)


def test_what_is_not_so_is_seen():
    told = printed(WITHOUT_A_SESSION[0][0], 0)
    told["steps"][0]["findings"].append({"danger": "x"})
    assert complaints("plan-migration", told)


def test_every_form_of_every_command_is_asked_for():
    """So that no form goes unseen: as many questions as forms."""
    asked = [*ASKED, *(words for words, *_ in (*JOBS, *WITHOUT_A_SESSION))]
    for command, forms in FORMS.items():
        assert sum(words.split()[0] == command for words in asked) >= len(forms), command


def test_every_command_with_json_has_a_schema():
    takes_json = {
        name
        for name in main.commands
        if name == "report" or any(option.name == "as_json" for option in main.commands[name].params)
    }
    assert takes_json == set(FORMS) >= {"ingest", "assign", "replay", "plan-migration", "simulate"}
