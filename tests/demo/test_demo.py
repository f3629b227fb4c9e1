"""The main job on real Kafka data: every record accounted for, every Java leader's answer computed again."""

import gzip

import pytest

from groupledger.cli.demo import tell_demo
from groupledger.cli.options import Job
from groupledger.cli.output import Output
from groupledger.core.moment import parse
from groupledger.pipeline.ledger import Ledger
from groupledger.pipeline.ownership import ownership
from groupledger.pipeline.verdicts import total
from tests.demo.conftest import ROOT

pytestmark = pytest.mark.spark

CAPTURES = ROOT / "tests" / "data" / "captures"
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


def test_a_second_run_changes_nothing_and_says_the_same(demonstrated, run_demo):
    again, stages = run_demo()
    assert (again.tables_made, again.ingest.already_committed, again.assign.already_committed) == ((), True, True)
    assert (again.ingest.run, again.groups) == (demonstrated.ingest.run, demonstrated.groups)
    assert again.assign.result_digest == demonstrated.assign.result_digest
    assert len(stages) == 4


def test_what_is_told_has_every_group_and_adds_up(demonstrated, demo_config, capsys):
    tell_demo(Job("demo", Output(as_json=False), ROOT / "conf" / "demo.yaml", (), demo_config), demonstrated)
    said = capsys.readouterr().out
    of_dev = [group.group_id for group in demonstrated.groups if group.cluster_id == "dev"]
    assert len(of_dev) == 14
    assert [name for name in of_dev if name not in said] == []
    assert said.count("\N{CHECK MARK}") >= 4
    assert demo_config.ledger.location in said


def test_who_had_a_partition_is_what_the_clients_said(spark, demonstrated, demo_config):
    ledger = Ledger(spark, demo_config.ledger.location)
    at, _ = parse("2026-11-21T12:09:00Z")
    holdings = ownership(ledger, "orders", 4, at, "dev").holdings
    found = {holding.group_id: holding.member.client_id for holding in holdings if holding.member}
    assert found["java-cooperative-sticky"].startswith("java-cooperative-sticky-m")
    assert all(client.startswith(group) for group, client in found.items())
