"""A log whose start moves on, as retention or an administrator moves it, before it is read and while it is read."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from groupledger.config import SourceSettings
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import OffsetRange
from groupledger.sources.kafka_log import Address, StretchReader
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS
from tests.kafka.groups import LOG, SECONDS, Member, ends, fill
from tests.live.broker import CLUSTER_ID, Broker
from tests.live.test_kafka_restarts import SLOWLY
from tests.live.topics import Topics

pytestmark = pytest.mark.xdist_group("spark")  # one of them is a Spark test, and all use one broker
PROPERTIES = """\
log.retention.check.interval.ms=200
log.initial.task.delay.ms=200
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A broker that looks often for what may be deleted."""
    broker = Broker(tmp_path_factory.mktemp("cut"), more=PROPERTIES)
    try:
        broker.start()
        Topics(broker.address).create({"orders": 3, "wide": 500})
        come_and_go(broker.address, "first")
        yield broker.address
    finally:
        broker.stop()


def come_and_go(address, group):
    with Member(address, group, "orders") as member:
        member.commit()


def cut(address):
    """Let the log begin where it ends; its start. Nobody may delete its records but the broker, by its policy."""
    _configure(address, **{"cleanup.policy": "delete", "retention.ms": "1"})
    end, until = ends(address)[0], time.monotonic() + SECONDS
    consumer = Consumer({"bootstrap.servers": address, "group.id": "starts"})
    while consumer.get_watermark_offsets(TopicPartition(LOG, 0), SECONDS) != (end, end):
        assert time.monotonic() < until
        time.sleep(0.1)
    consumer.close()
    _configure(address, **{"cleanup.policy": "compact", "retention.ms": "-1"})
    return end


def _configure(address, **entries):
    admin = AdminClient({"bootstrap.servers": address})
    told = [ConfigEntry(*entry, incremental_operation=AlterConfigOpType.SET) for entry in entries.items()]
    log = ConfigResource(ConfigResource.Type.TOPIC, LOG, incremental_configs=told)
    for answer in admin.incremental_alter_configs([log]).values():
        answer.result(SECONDS)


def test_a_start_that_moves_beyond_a_reader_is_said_and_nothing_is_passed_over(address):
    fill(address, "no-members", "wide", 500, 60)
    end = ends(address)[0]
    batches = StretchReader(Address(address, SLOWLY, 60), offset_commits=True).read(OffsetRange(0, 0, end))
    assert next(batches).num_rows < 10_000
    assert cut(address) == end
    with pytest.raises(Fault) as caught:
        list(batches)
    assert caught.value.code == "LOG_MOVED"
    with pytest.raises(Fault) as again:
        list(StretchReader(Address(address, {}, 60), offset_commits=True).read(OffsetRange(0, 0, end)))
    assert again.value.code == "LOG_MOVED", "a plan that was made before"
    fill(address, "no-members", "wide", 500, 1)
    rest = StretchReader(Address(address, {}, 60), offset_commits=True).read(OffsetRange(0, end, ends(address)[0]))
    assert sum(batch.num_rows for batch in rest) == 500 + 2, "with the two counts"


def test_an_ingest_goes_on_behind_what_is_gone_and_says_so(address, dumped):
    source = SourceSettings(kind="kafka", bootstrap=address)
    come_and_go(address, "before")
    dumped.ingest(source, cluster_id=None)
    reached = ends(address)[0]
    come_and_go(address, "gone")
    start = cut(address)
    gap = dumped.ingest(source, cluster_id=None)
    assert (gap.nothing_new, gap.quarantined) == (False, 0)
    assert gap.run.inputs["reached"][CLUSTER_ID]["offsets"] == {"0": start}
    assert dumped.ingest(source, cluster_id=None).nothing_new
    come_and_go(address, "before")
    after = dumped.ingest(source, cluster_id=None)
    assert (after.quarantined, after.left) == (0, {CLUSTER_ID: 0})
    (row,) = [row for row in dumped.rows(COVERAGE) if "log-start-moved" in row]
    assert f"from_value={reached}, to_value={start}" in row
    snapshots = dumped.rows(GROUP_SNAPSHOTS)
    assert not any("group_id='gone'" in row for row in snapshots)
    assert sum("group_id='before'" in row for row in snapshots) >= 4, "its two lives"
