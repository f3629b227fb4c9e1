"""After a redaction no name is left, and everything computes the same."""

import re

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType

from groupledger import tables
from groupledger.config import AssignSettings, Config, LedgerSettings
from groupledger.core.faults import Fault
from groupledger.pipeline import maintain as redacting
from groupledger.pipeline.assign import assign
from groupledger.pipeline.doctor import soundness
from groupledger.pipeline.maintain import BYTES, NAMES, TEXTS, maintain
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks.attempts import WriteConflict
from groupledger.sinks.current import current
from groupledger.tables import columns as c
from tests.pipeline.ledgers import invocation
from tests.pipeline.test_ingest import LINES, TOPICS, facts

FEW, LATER = LINES[:330], LINES[330:420]
NAMELESS = {
    *(c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID, c.FIRST_SNAPSHOT_ID, c.ATTEMPT_ID, c.SOURCE),
    *(c.GROUP_TYPE, c.PROTOCOL_TYPE, c.SNAPSHOT_KIND, c.ASSIGNOR, c.STATE, c.KIND, c.STAGE, c.CODE, c.REASON),
    *(c.SEVERITY, c.SCENARIO, c.PROTOCOL, c.OUTCOME, c.VERDICT, c.TOPIC, c.TOPIC_ID, c.RACK_ID),
    *(c.MEMBER_STATE, c.SUBSCRIBED_REGEX, c.ATTRIBUTION, c.LEAST_MOVES_CERTAINTY),
    *(c.CALLBACK, c.CERTAINTY, c.METRIC),
}
"""Columns of text that say nothing of a member: of a cluster, group or topic, or one of our own words."""


@pytest.mark.parametrize(
    "table", [each for each in tables.TABLES if each is not tables.RUNS], ids=lambda each: each.name
)
def test_of_every_column_of_text_it_is_known_whether_it_names_somebody(table):
    named = {*NAMES, *TEXTS, *BYTES, c.USER_DATA}
    texts = {field.name for field in table.schema if isinstance(field.dataType, StringType | BinaryType)}
    assert texts - NAMELESS - named == set()


def computed(space, scenario):
    settings = AssignSettings(snapshots="every", scenario=scenario)
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=space.location.path), assign=settings, buckets=2)
    return assign(space.spark, config, invocation())


def redact(space, *, wanted=True):
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=space.location.path), buckets=2)
    return maintain(space.spark, space.location, config, invocation(), (tables.TOPIC_SNAPSHOTS,), redact=wanted)


def results(space, scenario):
    """Rebalances without the names; assignments with a member's place for its name."""
    found = []
    for table in (tables.REBALANCES, tables.ASSIGNMENTS):
        rows = current(space.spark, space.location, table).where(F.col(c.SCENARIO) == scenario)
        rows = rows.where(~F.col(c.GROUP_ID).isin(sorted(modern(space))))
        left_out = {c.ATTEMPT_ID, c.SCENARIO, c.MEMBER_ID}
        found.append(sorted(map(str, rows.select(*(n for n in table.columns if n not in left_out)).collect())))
    return found


def modern(space):
    rows = current(space.spark, space.location, tables.GROUP_SNAPSHOTS).where(F.col(c.GROUP_TYPE) == "consumer")
    return {row[c.GROUP_ID] for row in rows.select(c.GROUP_ID).distinct().collect()}


def names(space):
    rows = space.location.rows(space.spark, tables.MEMBER_SNAPSHOTS)
    return {row[0] for each in (c.MEMBER_ID, c.CLIENT_ID, c.HOST) for row in rows.select(each).distinct().collect()}


def contents(space):
    """Everything the tables hold, as text: strings, and bytes as far as they are text."""
    found = []
    for table in tables.TABLES:
        texts = [
            F.decode(f.name, "ISO-8859-1") if isinstance(f.dataType, BinaryType) else F.col(f.name).cast("string")
            for f in table.schema
        ]
        rows = space.location.rows(space.spark, table).select(F.concat_ws(" ", *texts))
        found += [row[0] for row in rows.collect()]
    return "\n".join(found)


@pytest.mark.long
def test_nobody_is_named_and_all_computes_the_same(workspace):
    log = workspace.source("log.jsonl", FEW)
    workspace.ingest(TOPICS, log, run_id="before")
    first = computed(workspace, "before")
    was = {name for name in names(workspace) if name and len(name) > 3}
    assert len(was) > 20
    assert redact(workspace).redacted >= 5
    text = contents(workspace)
    assert [name for name in sorted(was) if name in text] == []
    again = computed(workspace, "after")
    assert again.groups_in == first.groups_in
    assert results(workspace, "after") == results(workspace, "before")
    assert sum(len(rows) for rows in results(workspace, "after")) > 50

    assert [check for check in soundness(workspace.spark, workspace.location) if not check.ok] == []
    assert_nothing_is_rebuilt(workspace)

    facts_now = facts(workspace)
    repeated = workspace.ingest(log, run_id="the same log again")
    [account] = repeated.accounts
    assert account.duplicates == account.records
    assert facts(workspace) == facts_now
    workspace.ingest(workspace.source("later.jsonl", LATER), run_id="later")
    crossing = (
        current(workspace.spark, workspace.location, tables.GROUP_SNAPSHOTS)
        .alias("a")
        .join(
            current(workspace.spark, workspace.location, tables.GROUP_SNAPSHOTS).alias("b"),
            F.col(f"a.{c.PREVIOUS_SNAPSHOT_ID}") == F.col(f"b.{c.SNAPSHOT_ID}"),
        )
    )
    attempts = [F.col(f"{side}.{c.ATTEMPT_ID}") for side in "ab"]
    assert crossing.where(attempts[0] != attempts[1]).count() == 0, "no history leads from true names to surrogates"


def assert_nothing_is_rebuilt(space):
    """What is there is left alone, though no digest fits it any more; what is lost is lost."""
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=space.location.path), buckets=2)
    assert rebuild(space.spark, space.location, config, invocation()).remade == ()
    version = DeltaTable(f"{space.location.path}/group_snapshots").version()
    space.spark.sql(f"DELETE FROM {space.location.identifier(tables.GROUP_SNAPSHOTS)}")
    with pytest.raises(
        Fault, match=r"rows of run 'before' are lost .group_snapshots., .* raw input erased by a redac"
    ) as told:
        rebuild(space.spark, space.location, config, invocation())
    assert told.value.code == "RAW_ERASED"
    space.spark.sql(f"RESTORE TABLE {space.location.identifier(tables.GROUP_SNAPSHOTS)} TO VERSION AS OF {version}")


@pytest.mark.long
def test_one_that_was_cut_off_is_finished_before_anything_else_counts(workspace, monkeypatch):
    workspace.ingest(TOPICS, workspace.source("log.jsonl", LINES[:120]), run_id="before")
    was = {name for name in names(workspace) if name and len(name) > 3}
    renamed = redacting._renamed

    class Killed(Exception):
        pass

    def dies(rows, name, *rest):
        if name == c.HOST:
            raise Killed
        return renamed(rows, name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(redacting, "_renamed", dies)
        with pytest.raises(Killed):
            redact(workspace)
    assert any(name in contents(workspace) for name in was)
    with pytest.raises(WriteConflict, match="`groupledger maintain` finishes it"):
        workspace.ingest(TOPICS, run_id="meanwhile")
    redact(workspace, wanted=False)
    text = contents(workspace)
    assert [name for name in sorted(was) if name in text] == []
    owners = current(workspace.spark, workspace.location, tables.OWNERSHIP_CHANGES).select(c.TO_MEMBER_ID)
    members = {row[0] for row in current(workspace.spark, workspace.location, tables.MEMBER_SNAPSHOTS)
               .select(c.MEMBER_ID).collect()}  # fmt: skip
    assert {row[0] for row in owners.collect()} - {None} <= members, "one name, one surrogate, in every table"
    assert all(re.match(r"~1-[0-9a-f]{8}-", name) for name in members)
    assert not workspace.ingest(TOPICS, run_id="meanwhile").already_committed
