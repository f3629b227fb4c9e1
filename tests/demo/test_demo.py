"""The main job on real Kafka data: every record accounted for, every Java leader's answer computed again."""

import gzip
import re
import shutil
from itertools import takewhile
from pathlib import Path

import pytest

from groupledger.answers.owners import ownership
from groupledger.answers.reader import LedgerReader
from groupledger.cli.options import Job
from groupledger.cli.output import Output
from groupledger.cli.runs import WORDS, print_demo
from groupledger.config.loading import CAPTURES
from groupledger.core.moments import parse
from groupledger.pipeline.frames import LedgerFrames, total
from tests.demo.conftest import ROOT
from tests.docs.demo_ledger import lasting_rows, unpack
from tests.docs.examples import examples, files_of, run
from tests.pages import blocks

pytestmark = pytest.mark.spark

EQUAL = {"exact", "equal-sets", "exact-older-topics", "exact-newer-topics", "topic-unknown-to-leader"}
EXPLAINED = EQUAL | {"rewrite", "no-members"}


@pytest.mark.parametrize("cluster", ["dev", "edge", "compacted", "storm"])
def test_every_record_is_accounted_for(demonstrated, cluster):
    (account,) = (each for each in demonstrated.ingest.accounts if each.cluster_id == cluster)
    with gzip.open(CAPTURES / cluster / "offsets.jsonl.gz", "rt") as lines:
        assert account.records == sum(1 for _ in lines)
    assert account.balanced
    assert (account.duplicates, dict(account.quarantined)) == (0, {})


def test_every_state_has_one_outcome_and_one_verdict(demonstrated):
    groups_in = demonstrated.assign.groups_in
    assert sum(demonstrated.assign.outcomes.values()) == groups_in
    assert (
        sum(total(demonstrated.groups).values()) == groups_in == sum(group.snapshots for group in demonstrated.groups)
    )


@pytest.mark.parametrize(("assignor", "least"), [("range", 10), ("roundrobin", 3)])
def test_range_and_roundrobin_are_recomputed_for_every_client(demonstrated, assignor, least):
    groups = [group for group in demonstrated.groups if (group.group_type, group.assignors) == ("classic", (assignor,))]
    assert len(groups) >= least
    assert {name for group in groups for name in group.verdicts} <= EXPLAINED


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_java_s_sticky_assignors_are_recomputed(demonstrated, assignor):
    (group,) = (group for group in demonstrated.groups if group.group_id == f"java-{assignor}")
    assert set(group.verdicts) <= EXPLAINED
    assert sum(group.verdicts[name] for name in EQUAL & set(group.verdicts)) >= 7


def test_nothing_recorded_breaks_a_rule(demonstrated):
    assert [group.group_id for group in demonstrated.groups if "invalid" in group.verdicts] == []


@pytest.mark.long
def test_a_second_run_changes_nothing_and_says_the_same(demonstrated, run_demo):
    again, stages = run_demo()
    assert (again.tables_made, again.ingest.already_committed, again.assign.already_committed) == ((), True, True)
    assert (again.ingest.run, again.groups) == (demonstrated.ingest.run, demonstrated.groups)
    assert again.assign.result_digest == demonstrated.assign.result_digest
    assert len(stages) == 4


def test_what_is_told_has_every_group_and_adds_up(demonstrated, demo_config, capsys):
    print_demo(Job("demo", Output(as_json=False), None, (), demo_config), demonstrated)
    said = capsys.readouterr().out
    accounts = rows_below(said, "cluster    records in")
    records = {each.cluster_id: each.records for each in demonstrated.ingest.accounts}
    assert {cluster: int(row[0]) for cluster, *row in accounts} == records
    assert [int(row[1]) for row in accounts] == [sum(map(int, row[2:-1])) for row in accounts]
    assert [row[-1] for row in accounts] == ["\N{CHECK MARK}"] * 4
    of_dev = [group for group in demonstrated.groups if group.cluster_id == "dev"]
    groups = [" ".join(row) for row in rows_below(said, "group ")]
    assert len(groups) == len(of_dev) == 14
    for row, group in zip(groups, of_dev, strict=True):
        span = "-" if group.first is None else f"{group.first}-{group.last}"
        assert row.startswith(f"{group.group_id} {group.group_type} {span} ")
        assert f" {group.members} " in row
        assert row.endswith(" " + ", ".join(f"{name} {number}" for name, number in group.verdicts.items()))
        assert sum(group.verdicts.values()) == group.snapshots
    meant = {" ".join(row) for row in rows_below(said, "verdict ")}
    totals = total(demonstrated.groups)
    assert meant == {f"{name} {number} {WORDS.get(name, '')}".strip() for name, number in totals.items()}
    assert sum(totals.values()) == demonstrated.assign.groups_in
    assert f"All {demonstrated.assign.groups_in:,} recorded states of all 4 clusters" in said
    assert f"The ledger is at {demo_config.ledger.location}:" in said
    quickstart = blocks((ROOT / "docs" / "start" / "quickstart.md").read_text(encoding="utf-8"), "text")
    shown = [block for block in quickstart if not block.startswith("$ ")]
    assert len(shown) == 3
    assert [block for block in shown if block not in said] == []


def rows_below(said, header):
    """The words of each row of the table whose header begins so; numbers without their commas."""
    lines = said.splitlines()
    (first,) = (at for at, line in enumerate(lines) if line.startswith(header))
    rows = takewhile(str.strip, lines[first + 1 :])
    return [re.sub(r"(?<=\d),(?=\d)", "", row).split() for row in rows]


def test_the_least_moves_of_every_rebalance_are_known_and_the_readme_s_question_has_an_answer(
    spark, demonstrated, demo_config
):
    """Null for groups without members alone."""
    ledger = LedgerFrames(spark, demo_config.ledger.location)
    unknown = ledger.results().where("least_moves IS NULL")
    assert {row[0] for row in unknown.select("outcome").distinct().collect()} == {"EMPTY"}
    [asked] = re.findall(r'group\("(.*?)", "(.*?)"\)\.rebalances\.where\("(.*?)"\)', (ROOT / "README.md").read_text())
    found = ledger.group(*asked[:2]).rebalances.where(asked[2]).select("moves", "least_moves").collect()
    assert found
    assert all(moves > least for moves, least in found)


def test_who_had_a_partition_is_what_the_clients_said(demonstrated, demo_config):
    ledger = LedgerReader(demo_config.ledger.location)
    at, _ = parse("2026-11-21T12:09:00Z")
    holdings = ownership(ledger, "orders", 4, at, "dev").holdings
    found = {holding.group_id: holding.member.client_id for holding in holdings if holding.member}
    assert found["java-cooperative-sticky"].startswith("java-cooperative-sticky-m")
    assert all(client.startswith(group) for group, client in found.items())


def test_the_ledger_that_the_pages_are_held_against_is_this_one(demonstrated, demo_config, tmp_path):
    """tests/docs runs what the pages show on a copy without Spark; after a change: python -m tests.docs.demo_ledger."""
    here, shipped = (lasting_rows(place) for place in (demo_config.ledger.location, unpack(tmp_path)))
    assert {name: len(rows) for name, rows in here.items()} == {name: len(rows) for name, rows in shipped.items()}
    assert [name for name in here if here[name] != shipped[name]] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["concepts/moves.md", "guides/decide/compare-assignors.md", "guides/decide/what-if.md"]
)
def test_a_page_shows_what_its_commands_print_with_spark(demonstrated, demo_config, tmp_path, monkeypatch, name):
    """On a copy: a replay commits a run of its own."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    ledger = shutil.copytree(demo_config.ledger.location, tmp_path / "ledger")
    monkeypatch.chdir(tmp_path)
    for file, content in files_of(page).items():
        Path(file).write_text(content)
    shown = dict.fromkeys(re.findall(r"groupledger verify (ingest-\w+)", page), demonstrated.ingest.run.run_id)
    for example in examples(page):
        code, printed = run(example._replace(words=tuple(shown.get(word, word) for word in example.words)), ledger)
        for on_page, here in shown.items():
            printed = printed.replace(here, on_page)
        assert (code, printed) == (0, printed if example.text is None else example.text)
