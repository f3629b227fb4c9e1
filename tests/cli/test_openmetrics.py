"""`openmetrics`: numbers by group as monitoring reads them, in a file that is never half there."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.openmetrics import write_whole
from groupledger.core.faults import Fault
from groupledger.core.secrets import remember
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at
from tests.core.test_openmetrics import parsed
from tests.pages import blocks

WORD = "hunter2-hunter2"
DEV = {"cluster": "dev"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """`pay`: three rebalances, a-2 is lost at 14:03; `quiet`: one, before the period; two groups named by a secret."""
    pay = History("pay").state(1, "m a:0,1,2").state(2, "m a:0,1 | n a:2").state(3, "m a:0 | n a:1")
    groups = [pay, History("quiet").state(0, "m a:0,1,2"), History('q"\n').state(3, "m a:0,1,2")]
    groups += [History(f"{WORD}").state(3, "m a:0,1,2"), History("***").state(3, "m a:0,1,2")]
    for row in (row for group in groups for row in group.rows["group_snapshots"]):
        row.setdefault("complete", True)
    results = [
        {"snapshot_id": f"log/dev/pay/{number}", "moves": number, "least_moves": least, "verdict": "exact"}
        | {"cluster_id": "dev", "group_id": "pay", "scenario": "baseline", "round": 1, "members": 1}
        for number, least in ((1, 0), (2, 1), (3, None))
    ]
    finding = {"cluster_id": "dev", "group_id": "pay", "snapshot_id": "log/dev/pay/2", "offset": 2}
    finding |= {"code": "DOUBLE_ASSIGNED", "severity": "error", "evidence": "x"}
    return write(
        tmp_path_factory.mktemp("ledger"),
        **rows_of(*groups, topic_snapshots=[listed("a", 3)], rebalances=results, violations=[finding]),
    )


def run(place, *words):
    ran = CliRunner().invoke(main, ["openmetrics", *words, "--ledger", place])
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def labels(**named):
    return frozenset({**DEV, **named}.items())


def test_the_numbers_of_a_group(place):
    found = parsed(run(place, "--since", "2m", "--group", "pay"))
    of_pay = labels(group="pay")
    assert {name: values[of_pay] for name, values in found.items() if of_pay in values} == {
        "groupledger_rebalances": 3,
        "groupledger_partitions_given": 5,
        "groupledger_moves": 3,
        "groupledger_least_moves": 1,
        "groupledger_members": 2,
        "groupledger_unowned_partitions": 1,
        "groupledger_oldest_unowned_seconds": 0,
        "groupledger_unowned_since_timestamp_seconds": at(3).timestamp(),
    }
    of_finding = labels(group="pay", code="DOUBLE_OWNED", severity="error")
    assert found["groupledger_findings"][of_finding] == 1
    assert found["groupledger_newest_record_timestamp_seconds"] == {labels(): at(3).timestamp()}
    assert found["groupledger_known_up_to_timestamp_seconds"] == {labels(): at(3).timestamp()}
    assert found["groupledger_period_seconds"] == {frozenset(): 120}


def test_a_group_without_a_rebalance_has_a_zero_and_no_moves(place):
    found = parsed(run(place, "--since", "2m"))
    assert found["groupledger_rebalances"][labels(group="quiet")] == 0
    assert labels(group="quiet") not in found["groupledger_moves"]
    assert labels(group='q"\n') in found["groupledger_members"]


def test_the_period_is_a_day_unless_it_is_said(place):
    assert parsed(run(place))["groupledger_period_seconds"] == {frozenset(): 24 * 3600}


@pytest.mark.parametrize("until", ["2026-11-20T00:00Z", "1m", "2000d"])
def test_the_period_ends_where_it_is_said_to(place, until):
    found = parsed(run(place, "--until", until))
    assert found["groupledger_period_seconds"] == {frozenset(): 24 * 3600}


def test_no_secret_is_a_label_and_no_sample_is_there_twice(place):
    remember([WORD])
    text = run(place)
    assert WORD not in text
    assert parsed(text)["groupledger_members"][labels(group="***")] == 2


def test_a_ledger_without_a_record_has_no_numbers(tmp_path):
    assert not any(parsed(run(write(tmp_path))).values())


def test_a_file_is_written_whole(place, tmp_path):
    target = tmp_path / "groupledger.prom"
    target.write_text("old")
    assert " samples in " in run(place, "--output", str(target))
    assert target.read_text(encoding="utf-8") == run(place)
    assert os.listdir(tmp_path) == ["groupledger.prom"]  # noqa: PTH208 - the names alone


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    target = tmp_path / "groupledger.prom"
    target.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("groupledger.cli.openmetrics.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(target, "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("groupledger.prom", "old")]


def test_a_link_stays_one_and_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(Fault, match="is no regular file"):
            write_whole(wrong, "new")


def test_a_folder_that_is_not_there_is_one_line(place, tmp_path):
    words = ["openmetrics", "--output", str(tmp_path / "no" / "a.prom"), "--ledger", place]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 2
    assert f"there is no folder {tmp_path / 'no'}" in ran.stderr


def test_json_has_the_same_numbers(place):
    told = json.loads(run(place, "--json", "--group", "pay"))
    assert (told["status"], told["command"], told["file"]) == ("done", "openmetrics", None)
    assert told["gauges"]["groups"][0]["rebalances"] == 3


def test_the_alerting_rules_of_the_example_go_by_samples_that_there_are_and_are_those_of_the_page(place):
    root = Path(__file__).parents[2]
    text = (root / "examples/prometheus_rules.yml").read_text(encoding="utf-8")
    page = (root / "docs/guides/use/alerts-prometheus-cron.md").read_text(encoding="utf-8")
    (block,) = blocks(page, "yaml")
    assert block in text
    (group,) = yaml.safe_load(text)["groups"]
    assert [each["alert"] for each in group["rules"]] == [
        *("PartitionsWithoutOwner", "AssignmentBroken", "GroupEmpty", "LedgerBehind")
    ]
    samples = set(re.findall(r"^(groupledger_\w+)", run(place), re.MULTILINE))
    for rule in group["rules"]:
        assert set(re.findall(r"groupledger_\w+", rule["expr"])) <= samples
        assert rule["expr"] in page
        assert {*rule} <= {"alert", "expr", "for", "labels", "annotations"}
