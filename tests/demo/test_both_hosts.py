"""Spark and delta-rs give the same answers: a ledger in a catalog has the same views, in Spark's dialect."""

import ast
import inspect
import itertools
import shutil
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from groupledger.answers.reader import LedgerReader
from groupledger.cli.json_schemas import FORMS
from groupledger.config import parse
from groupledger.config.loading import sample_settings
from groupledger.pipeline.assign import assign
from groupledger.pipeline.frames import SparkReader
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation
from tests.demo.conftest import ROOT
from tests.demo.questions import QUESTIONS, REPLAYED

PACKAGE = ROOT / "src" / "groupledger"
ASKING = ("cli/*.py", "notebook/*.py", "report/html/*.py")
"""Who asks the ledger."""
PARTS = {
    *("cluster_of", "group_gauges", "known", "known_for", "members_now", "moments", "one_rejected", "scope"),
    "with_states",
}
"""Parts of answers: the cluster of a group, the numbers of groups, up to when it is known, moments for lengths of time,
what was asked for, a group's rejected input, a rebalance with its states, and the members a simulation starts with."""
MOMENT = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture(scope="module")
def place(spark, demonstrated, demo_config, tmp_path_factory):
    """The demonstration's ledger, and in it what `replay --assignor range` computes."""
    ledger = shutil.copytree(demo_config.ledger.location, tmp_path_factory.mktemp("both") / "ledger")
    numbers = itertools.count(1)
    happened = {"snapshots": "every", "assignor": "recorded", "scenario": "recorded"}
    other = {"snapshots": "every", "assignor": "range", "scenario": REPLAYED, "carried": True}
    for settings in (happened, other):
        config = parse(
            "", "the tests", (), {**sample_settings(), "ledger": {"location": str(ledger)}, "assign": settings}
        )
        invocation = Invocation(attempt_id=f"other-{next(numbers)}", now=lambda: MOMENT, seconds=lambda: 0.0)
        assign(spark, config, invocation)
    return str(ledger)


@pytest.fixture(scope="module")
def readers(spark, place):
    return SparkReader(spark, LedgerLocation(path=place)), LedgerReader(place)


@pytest.mark.long
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_spark_gives_the_same_answer(readers, question):
    through_spark, without = map(question.of, readers)
    assert through_spark == without


def test_every_answer_of_a_command_is_asked():
    """By its type, as `--json` has it."""
    answers = {
        form[key]
        for forms in FORMS.values()
        for form in forms
        for key in form
        if isinstance(form[key], str) and form[key] != "ScriptComparison"
    }
    assert answers <= {question.ask.__annotations__["return"] for question in QUESTIONS}


def test_every_function_that_a_command_a_notebook_or_a_page_asks_is_asked():
    files = [file for place in ASKING for file in sorted((PACKAGE / place).parent.glob(Path(place).name))]
    found = {name for file in files for name in asking(file)}
    assert len(found) > 20
    assert found - PARTS <= {question.ask.__name__ for question in QUESTIONS}


def asking(file: Path):
    """Functions of the answers that a file imports and gives a reader."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("groupledger.answers."):
            there = import_module(node.module)
            for name in (each.name for each in node.names if each.name.islower()):
                if next(iter(inspect.signature(getattr(there, name)).parameters), None) == "reader":
                    yield name
