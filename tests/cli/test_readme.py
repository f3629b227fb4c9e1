"""Every command that the documents show is one the command understands, and every file they name is there."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.cli.commands import main
from groupledger.cli.exits import Exit
from groupledger.cli.options import DEFAULT_CONFIG, DEMO_LEDGER
from groupledger.cli.runs import NEXT
from groupledger.config.loading import TEMPLATE
from tests.answers.ledgers import write
from tests.docs.examples import files_of

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts),
]


SUBMITTED = r"(?:spark-submit .*)?(?:jobs/(?P<job>\w+)\.py|\"\$\(groupledger job-file\)\")"
COMMAND = re.compile(rf"(?:^\s+|`)(?:groupledger|{SUBMITTED}) (?P<rest>[a-z-][^<>|#`]*)")


def shown():
    for document in DOCUMENTS:
        for line in document.read_text(encoding="utf-8").splitlines():
            for match in () if line.startswith("#") else COMMAND.finditer(line):
                yield " ".join(part for part in (match["job"], match["rest"].strip()) if part)


class Started(Exception):
    """The command has understood its arguments, and would start Spark, ask a cluster, read a ledger or fetch jars."""


@pytest.fixture
def without_spark(monkeypatch, tmp_path):
    def started(*_, **__):
        raise Started

    for starts in ("spark", "spark_for_ledger"):
        monkeypatch.setattr(f"groupledger.cli.options.Job.{starts}", started)
    monkeypatch.setattr("groupledger.pipeline.frames.require_catalog", started)  # the ledger of these pages is a folder
    monkeypatch.setattr("groupledger.engine.archive.kernel_archive", started)
    monkeypatch.setattr("groupledger.engine.jars._fetch", started)
    monkeypatch.setattr("groupledger.sources.kafka_log.Cluster.__init__", started)
    monkeypatch.setattr("groupledger.answers.reader.LedgerReader.__init__", started)
    (tmp_path / "client.properties").write_text("security.protocol=SSL")
    (tmp_path / "grid.yaml").write_text("changes: [{members: 1}]")
    given = TEMPLATE.read_text().replace("sources: []", "sources: [{kind: topics-jsonl, path: topics.jsonl}]")
    (tmp_path / DEFAULT_CONFIG).write_text(given)
    (tmp_path / "topics.jsonl").touch()
    for document in DOCUMENTS:
        for name, content in files_of(document.read_text(encoding="utf-8")).items():
            (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("line", sorted({*shown(), *(f"{command} --ledger {DEMO_LEDGER}" for command in NEXT)}))
def test_a_command_in_the_documents_is_understood(without_spark, line):
    if line == "new-config":
        Path(DEFAULT_CONFIG).unlink()
    ran = CliRunner().invoke(main, shlex.split(line))
    assert isinstance(ran.exception, Started) or ran.exit_code in {0, Exit.VIOLATIONS}, ran.stderr


def test_the_queries_in_the_documents_can_be_run(tmp_path):
    queries = {shlex.split(line)[1] for line in shown() if line.startswith("sql ")}
    assert queries
    reader = LedgerReader(write(tmp_path))
    for query in queries:
        assert reader.query(query).num_rows == 0


def test_the_documents_show_every_command():
    used = {shlex.split(line)[0] for line in shown()}
    assert {"init", "ingest", "assign", "show", "doctor"} <= used <= set(main.commands)
    assert isinstance(main, click.Group)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []
