"""The groups of a real cluster as an admin client describes them, where its log may not be read."""

from __future__ import annotations

from groupledger.config import SourceSettings
from groupledger.sinks.current import current
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, TOPIC_SNAPSHOTS
from tests.kafka.groups import LOG, Member, ends, groups
from tests.live.broker import CLUSTER_ID


def rows(workspace, table, *columns):
    found = current(workspace.spark, workspace.location, table).where("group_id = 'described'")
    return sorted(map(tuple, found.select(*columns).collect()), key=str)


def partitions(members):
    return sorted(at for (recorded,) in members for each in recorded for at in each.partitions)


def test_groups_are_recorded_as_they_are_described(kafka, topics, dumped):
    topics.create({"described": 4})
    cluster = SourceSettings(kind="admin", bootstrap=kafka)
    with Member(kafka, "described", "described"):
        before = ends(kafka), groups(kafka)
        first = dumped.ingest(cluster, cluster_id=None)
        (told,) = first.run.inputs["sources"]
        assert (first.run.counts_out["group_snapshots"], told["kind"]) == (1, "admin")
        assert all(account.balanced for account in first.accounts)
        assert dumped.ingest(cluster, cluster_id=None).nothing_new
        ((group_type, state, complete, members),) = rows(
            dumped, GROUP_SNAPSHOTS, "group_type", "state", "complete", "members"
        )
        assert (group_type, state, complete, members) == ("classic", "Stable", False, 1)
        assert partitions(rows(dumped, MEMBER_SNAPSHOTS, "recorded")) == [0, 1, 2, 3]
        assert len(rows(dumped, OWNERSHIP_CHANGES, "partition", "to_member_id")) == 4
        assert (ends(kafka), groups(kafka)) == before
    dumped.ingest(cluster, cluster_id=None)
    left = rows(dumped, OWNERSHIP_CHANGES, "partition", "from_member_id", "to_member_id")
    assert [at for at, _, to in left if to is None] == [0, 1, 2, 3]
    listed = current(dumped.spark, dumped.location, TOPIC_SNAPSHOTS).where("cluster_id = '" + CLUSTER_ID + "'")
    assert {"described", LOG} <= {row.topic for row in listed.collect()}
