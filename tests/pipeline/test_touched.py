"""`assign` of the last snapshots computes groups that newer facts touch, and answers as if it had computed all."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from groupledger.config import (
    AssignSettings,
    Config,
    LedgerSettings,
    LimitSettings,
    MaintainSettings,
    RetentionSettings,
)
from groupledger.pipeline import assign as assigning
from groupledger.pipeline.assign import assign
from groupledger.pipeline.doctor import soundness
from groupledger.pipeline.maintain import maintain
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks import attempts
from groupledger.sinks.location import LedgerFault, LedgerLocation
from groupledger.tables import (
    ASSIGNMENTS,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    MEMBER_SNAPSHOTS,
    QUARANTINE,
    REBALANCES,
    VIOLATIONS,
)
from groupledger.tables import columns as c
from tests.core.history.records import CLICKS, Log, member
from tests.faults.story import Content
from tests.pipeline.ledgers import Workspace, invocation
from tests.pipeline.test_given_ownership import START, tables, topic
from tests.pipeline.test_ingest import LINES, TOPICS
from tests.pipeline.test_strays import GOOD, STRAYS, WITNESSES, line, lines

pytestmark = pytest.mark.long

LATE = [line for number, line in enumerate(LINES) if number % 5 == 0]
EARLY = [line for number, line in enumerate(LINES) if number % 5]
RESULTS = (REBALANCES, ASSIGNMENTS, QUARANTINE, VIOLATIONS)
FACTS = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS)
PLAIN = AssignSettings()


class Died(Exception):
    """An attempt that goes no further."""


def config_of(space, settings=PLAIN, **more):
    place = LedgerSettings(location=space.location.path)
    return Config(cluster_id="edge", ledger=place, assign=settings, buckets=2, **more)


def computed(space, settings=PLAIN, *, run_id=None, whole=False, **more):
    return assign(space.spark, config_of(space, settings, **more), invocation(run_id), whole=whole)


def results(space):
    """The results that count, of no attempt, as readers without Spark see them."""
    content, ledger = Content(), Path(space.location.path)
    names = {table: [name for name in table.columns if name != c.ATTEMPT_ID] for table in RESULTS}
    return {table.name: content.rows(ledger, table, names[table]) for table in RESULTS}


def copied(space, folder):
    """The ledger, where something else is done with it."""
    folder.mkdir(exist_ok=True)

    def copy(place):
        return LedgerLocation(path=str(shutil.copytree(space.location.path, place)))

    return Workspace(space.spark, copy, folder)


def as_if_whole(space, folder, settings=PLAIN, **more):
    """Assign here, and on a copy to all groups: the same rows count. Gives the summary of what was done here."""
    other = copied(space, folder)
    here = computed(space, settings, **more)
    assert computed(other, settings, whole=True, **more).since_run is None
    assert results(space) == results(other)
    shutil.rmtree(folder)
    return here


def groups_of(space):
    """How many groups have a snapshot that counts."""
    rows = Content().rows(Path(space.location.path), GROUP_SNAPSHOTS, [c.CLUSTER_ID, c.GROUP_ID])
    return len(set(rows))


@pytest.fixture(scope="module")
def started(new_workspace):
    """Two ingests, and an assign after the first."""
    space = new_workspace("started")
    space.ingest(TOPICS, space.source("1.jsonl", EARLY[:300]), buckets=2)
    first = computed(space)
    assert (first.groups_in, first.since_run) == (groups_of(space), None)
    space.ingest(space.source("2.jsonl", EARLY[300:330]), buckets=2)
    return space, first


@pytest.fixture
def filled(started, tmp_path):
    space, first = started
    return copied(space, tmp_path / "filled"), first


def test_groups_that_newer_and_late_records_touch(filled, tmp_path, monkeypatch):
    """Classic and KIP-848 groups, cut anywhere: late records fold groups again, epochs are cut by ends of reads."""
    space, last = filled
    for number, piece in enumerate(((), LATE[:40], (*EARLY[330:360], *LATE[40:80]))):
        if piece:
            space.ingest(space.source(f"later-{number}.jsonl", piece), buckets=2)
        many = copied(space, tmp_path / "many")
        here = as_if_whole(space, tmp_path / "whole")
        assert here.since_run == last.run_id
        assert 0 < here.groups_in < groups_of(space)
        with monkeypatch.context() as patch:
            patch.setattr(assigning, "MOST_SOUGHT", 2)  # the files of so many are not looked for
            assert computed(many).result_digest == here.result_digest
        shutil.rmtree(tmp_path / "many")
        last = here
    assert soundness_of(space) == []


def test_groups_that_newer_records_touch_under_another_assignor(filled, tmp_path):
    space, _ = filled
    settings = AssignSettings(assignor="range", scenario="to-range", mode="kip")
    first = computed(space, settings)
    space.ingest(space.source("later.jsonl", (*EARLY[330:360], *LATE[:40])), buckets=2)
    assert as_if_whole(space, tmp_path / "whole", settings).since_run == first.run_id


def soundness_of(space):
    return [each.detail for each in soundness(space.spark, space.location) if not each.ok]


def test_nothing_new_is_the_run_that_computed_it_whatever_it_is_called(filled):
    space, first = filled
    second = computed(space, run_id="hourly-1")
    assert second.since_run == first.run_id
    before = attempts.read_commits(space.spark, space.location).sequence, results(space)
    for name in ("hourly-2", None, "hourly-1"):
        again = computed(space, run_id=name)
        assert (again.already_committed, again.run_id, again.groups_in) == (True, "hourly-1", second.groups_in)
    assert (attempts.read_commits(space.spark, space.location).sequence, results(space)) == before


def test_every_group_is_computed_on_demand(filled):
    space, first = filled
    few = computed(space)
    assert (few.since_run, few.groups_in < groups_of(space)) == (first.run_id, True)
    stood = results(space)
    every = computed(space, whole=True)
    assert (every.groups_in, every.since_run, every.already_committed) == (groups_of(space), None, False)
    assert results(space) == stood
    for whole in (True, False):
        again = computed(space, whole=whole)
        assert (again.run_id, again.already_committed) == (every.run_id, True)


def test_a_run_that_was_killed_before_its_commit_leaves_its_groups_to_the_next(filled, tmp_path, monkeypatch):
    space, first = filled

    def die(*_):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(attempts, "commit", die)
        with pytest.raises(Died):
            computed(space)
    maintain(space.spark, space.location, config_of(space), invocation())
    here = as_if_whole(space, tmp_path / "whole")
    assert (here.since_run, here.already_committed) == (first.run_id, False)
    assert 0 < here.groups_in < groups_of(space)


def test_of_two_at_once_the_first_to_commit_counts(filled, monkeypatch):
    """Of the same name it is one run; under other names the second one has to start again, and finds nothing new."""
    space, _ = filled
    plan = attempts.plan

    def overtaken_by(run_id):
        def planned(*arguments):
            plan(*arguments)
            monkeypatch.setattr(attempts, "plan", plan)
            computed(space, run_id=run_id)

        monkeypatch.setattr(attempts, "plan", planned)

    overtaken_by(None)
    second = computed(space)
    assert (second.already_committed, second.groups_in > 0) == (True, True)
    space.ingest(space.source("3.jsonl", EARLY[330:350]), buckets=2)
    overtaken_by("hourly-1")
    with pytest.raises(attempts.WriteConflict):
        computed(space, run_id="hourly-2")
    assert computed(space, run_id="hourly-2").run_id == "hourly-1"


def test_facts_that_come_while_a_run_computes_are_the_next_ones(filled, tmp_path, monkeypatch):
    space, _ = filled
    plan = attempts.plan

    def overtaken(*arguments):
        plan(*arguments)
        monkeypatch.setattr(attempts, "plan", plan)
        space.ingest(space.source("3.jsonl", EARLY[330:350]), buckets=2)

    monkeypatch.setattr(attempts, "plan", overtaken)
    second = computed(space)
    third = as_if_whole(space, tmp_path / "whole")
    assert third.since_run == second.run_id
    assert third.groups_in > 0


def test_another_configuration_or_code_computes_every_group(filled, tmp_path, monkeypatch):
    """In turn under one name: the results of the other configuration stand nowhere."""
    space, _ = filled
    other = computed(space, replace(PLAIN, assignor="range"))
    assert (other.since_run, other.groups_in) == (None, groups_of(space))
    space.ingest(space.source("3.jsonl", EARLY[330:350]), buckets=2)
    back = as_if_whole(space, tmp_path / "back")
    assert (back.since_run, back.groups_in) == (None, groups_of(space))
    limited = LimitSettings(max_members_per_group=1, max_quarantined=1_000)
    refused = computed(space, limits=limited)
    assert (refused.since_run, refused.groups_in) == (None, groups_of(space))
    assert refused.quarantined > 0
    space.ingest(space.source("4.jsonl", EARLY[350:370]), buckets=2)
    assert as_if_whole(space, tmp_path / "limited", limits=limited).since_run == refused.run_id
    older = computed(space, limits=limited).run_id
    with monkeypatch.context() as patch:
        patch.setattr(assigning, "code_digest", lambda *_: "newer")
        newer = computed(space, limits=limited)
        assert (newer.since_run, newer.already_committed) == (None, False)
    back = computed(space, limits=limited)
    assert (back.since_run, back.already_committed, back.run_id != older) == (None, False, True)


def test_a_redaction_and_a_change_of_topics_touch_every_group(filled, tmp_path):
    space, _ = filled
    second = computed(space)
    maintain(space.spark, space.location, config_of(space), invocation(), (VIOLATIONS,), redact=True)
    assert computed(space).run_id == second.run_id, "no new facts"
    space.ingest(space.source("3.jsonl", EARLY[330:350]), buckets=2)
    third = as_if_whole(space, tmp_path / "redacted")
    assert (third.since_run, third.groups_in) == (None, groups_of(space))
    space.ingest(space.source("4.jsonl", EARLY[350:370]), buckets=2)
    assert computed(space).since_run == third.run_id
    grown = json.dumps({"ts": 1795268786999, "topic": "clicks", "topic_id": CLICKS, "partitions": 99, "racks": None})
    listed = space.source("topics.jsonl", [grown], "topics-jsonl")
    space.ingest(listed, buckets=2)
    assert as_if_whole(space, tmp_path / "topics").groups_in == groups_of(space)


def test_what_retention_took_is_computed_again_where_a_full_run_would(filled, tmp_path):
    """Superseded results go, and nothing changes; a rejection that still stands goes too, and is made again."""
    space, _ = filled
    settings = tuple(RetentionSettings(table=table.name, days=1) for table in (*RESULTS, *FACTS))
    limits = LimitSettings(max_members_per_group=1, max_quarantined=1_000)
    kept = replace(config_of(space, limits=limits), maintain=MaintainSettings(retention=settings))

    def maintained(days):
        later = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(days=days)
        return maintain(space.spark, space.location, kept, replace(invocation(), now=lambda: later))

    rejecting = computed(space, limits=limits)
    assert rejecting.quarantined > 0
    space.ingest(space.source("3.jsonl", EARLY[330:350]), buckets=2)
    assert as_if_whole(space, tmp_path / "young", limits=limits).since_run == rejecting.run_id
    before = results(space)
    maintained(2)
    assert {name: rows for name, rows in results(space).items() if rows != before[name]}.keys() == {QUARANTINE.name}
    space.ingest(space.source("4.jsonl", EARLY[350:370]), buckets=2)
    again = as_if_whole(space, tmp_path / "old", limits=limits)
    assert (again.since_run, again.groups_in) == (None, groups_of(space))
    assert again.quarantined > 0
    space.ingest(space.source("5.jsonl", EARLY[370:390]), buckets=2)
    assert as_if_whole(space, tmp_path / "next", limits=limits).since_run == again.run_id


def test_a_group_whose_last_snapshot_is_gone(workspace, tmp_path):
    """Its last record turns out not to be the one at that offset, and the one before was never computed."""
    log = Log("one")
    first, last = (log.classic(generation, [member("m", {"clicks": (generation,)})]) for generation in (1, 2))
    broken = log.broken()._replace(offset=last.offset, timestamp_ms=last.timestamp_ms - 1)
    for number, row in enumerate((first, last)):
        workspace.ingest(workspace.source(f"{number}.jsonl", [line(row)]), buckets=1)
    computed(workspace)
    late = workspace.source("late.jsonl", [line(broken)])
    workspace.ingest(late, buckets=1, limits=LimitSettings(max_quarantined=9))
    here = as_if_whole(workspace, tmp_path / "whole")
    assert (here.groups_in, len(results(workspace)[REBALANCES.name])) == (1, 1)


def test_offset_commits_touch_no_group(workspace, tmp_path):
    log = Log("one")
    log.classic(1, [member("m", {"clicks": (0,)})])
    log.commit(0, 7)
    for number, row in enumerate(log.rows):
        workspace.ingest(workspace.source(f"{number}.jsonl", [line(row)]), buckets=1)
        assert as_if_whole(workspace, tmp_path / "whole").groups_in == 1 - number


def test_an_empty_ledger_and_an_ingest_that_touches_no_group(workspace, tmp_path):
    with pytest.raises(LedgerFault, match="nothing was ever ingested"):
        computed(workspace)
    broken = {"max_quarantined": 9}
    workspace.ingest(workspace.source("0.jsonl", ['{"off']), buckets=2, limits=LimitSettings(**broken))
    none = as_if_whole(workspace, tmp_path / "none")
    assert (none.groups_in, none.since_run) == (0, None)
    workspace.ingest(workspace.source("1.jsonl", LINES[:300]), buckets=2)
    first = as_if_whole(workspace, tmp_path / "first")
    assert (first.groups_in, first.since_run) == (groups_of(workspace), none.run_id)


def test_snapshots_of_users_own_tables_that_come_late(workspace, tmp_path):
    """One that comes between two others is the one before the last, though the last itself did not change."""
    listed = tables(workspace, "first", (1, 3), [topic("orders", START)])
    workspace.ingest(listed, workspace.source("1.jsonl", LINES[:100]), buckets=2)
    first = as_if_whole(workspace, tmp_path / "1")
    workspace.ingest(tables(workspace, "late", (2,)), buckets=2)
    second = as_if_whole(workspace, tmp_path / "2")
    assert (second.since_run, second.groups_in) == (first.run_id, 1)


def test_rows_of_a_run_that_computed_few_groups_are_made_again(filled):
    space, _ = filled
    computed(space)
    before = results(space)
    name = space.location.identifier(REBALANCES)
    groups = [f"'{row[0]}'" for row in space.spark.sql(f"SELECT DISTINCT group_id FROM {name} ORDER BY 1").collect()]
    space.spark.sql(f"DELETE FROM {name} WHERE group_id IN ({', '.join(groups[::2])})")
    assert results(space) != before
    done = rebuild(space.spark, space.location, config_of(space), invocation())
    assert {each.table for each in done.remade} == {REBALANCES.name}
    assert results(space) == before


def test_groups_that_are_found_to_belong_in_another_log_partition(workspace, tmp_path):
    """Folded again from the beginning in an ingest that brings none of their records."""
    strays, rest = lines(STRAYS), lines([*GOOD[::2], *WITNESSES])
    for number, piece in enumerate((strays, rest, lines(GOOD[1::2]))):
        workspace.ingest(workspace.source(f"{number}.jsonl", piece), buckets=2)
        as_if_whole(workspace, tmp_path / "whole")


def test_no_file_of_other_attempts_is_opened(workspace):
    """The files of all ingests but those that wrote the touched group's last two snapshots are out of reach."""
    one, other = Log("one"), Log("other")

    def ingested(log, partition, generation):
        row = log.classic(generation, [member("m", {"clicks": (generation % 3,)})])._replace(log_partition=partition)
        source = workspace.source(f"{partition}-{generation}.jsonl", [line(row)])
        return workspace.ingest(source, buckets=1).run.attempt_id

    ingested(one, 1, 1)
    kept = {ingested(one, 1, 2)}
    for generation in range(1, 4):
        ingested(other, 2, generation)
        computed(workspace)
    kept.add(ingested(one, 1, 3))
    for table in (*FACTS, GROUP_HEADS):
        for file in Path(workspace.location.path, table.name).glob("*.parquet"):
            if not kept & set(pq.read_table(file)[c.ATTEMPT_ID].to_pylist()):
                file.rename(file.with_suffix(".away"))
    here = computed(workspace)
    assert (here.groups_in, here.sums["revoked"]) == (1, 1), "what the snapshot before gave is known"
