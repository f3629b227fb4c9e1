"""Brokers that die, come back and lead in turn while a log is read: each record is in the ledger once."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from groupledger.config import SourceSettings
from groupledger.core.faults import Fault
from groupledger.core.log_plan import OffsetRange
from groupledger.sources.kafka_client import Address
from groupledger.sources.kafka_records import StretchReader
from tests.kafka.groups import LOG, SECONDS, Member, dump, ends, fill
from tests.live.broker import Broker
from tests.live.dumped import SECONDS as MOST_SECONDS
from tests.live.dumped import same_as_dumped, started
from tests.live.topics import Topics
from tests.pipeline.ledgers import Workspace

SLOWLY = {"queued.min.messages": "100", "queued.max.messages.kbytes": "64", "fetch.message.max.bytes": "4096"}
AWAY = 3.0
"""Seconds for which nobody answers."""
TWO_NODES = """\
offsets.topic.replication.factor=2
min.insync.replicas=1
default.replication.factor=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


@pytest.fixture
def broker(tmp_path):
    """A broker of one's own, with something in its log."""
    (tmp_path / "broker").mkdir()
    made = Broker(tmp_path / "broker")
    try:
        made.start()
        Topics(made.address).create({"orders": 3, "wide": 500})
        yield made
    finally:
        made.stop()


@pytest.fixture
def ledger(spark, new_ledger, tmp_path):
    """An empty ledger beside the one that a dump is read into."""
    return Workspace(spark, new_ledger, tmp_path / "followed")


def back_after(broker, seconds):
    """The broker is killed now; the thread that starts it again a little later."""
    broker.kill()

    def wait():
        time.sleep(seconds)
        broker.start()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("after", [0.0, 2.0], ids=["before a record is read", "while records are read"])
def test_a_broker_that_is_killed_in_the_middle_of_an_ingest(broker, after, dumped, ledger):
    with Member(broker.address, "payments", "orders") as member:
        member.commit()
    fill(broker.address, "no-members", "wide", 500, 30)
    began, threads = [], []

    def kill():
        """The plan is made: the ingest has asked for the ends of the log."""
        began.append(time.monotonic())
        waiting = threading.Timer(after, lambda: threads.append(back_after(broker, AWAY)))
        waiting.start()
        threads.append(waiting)

    source = SourceSettings(kind="kafka", bootstrap=broker.address, options=SLOWLY, timeout_seconds=120)
    summary = ledger.ingest(source, cluster_id=None, beside=kill)
    assert time.monotonic() - began[0] > after + AWAY, "the broker came back while it was reading"
    for thread in threads:
        thread.join()
    assert all(account.balanced for account in summary.accounts)
    same_as_dumped(broker.address, dumped, ledger.location.path)


def test_a_follower_whose_broker_dies_and_comes_back(broker, dumped, tmp_path):
    process, told = started(broker.address, tmp_path / "ledger", "--follow", "--every", "0"), []
    with process:
        told.append(json.loads(process.stdout.readline()))  # the topics: no group was ever there
        with Member(broker.address, "first", "orders") as member:
            member.commit()
        told.append(json.loads(process.stdout.readline()))
        back_after(broker, AWAY).join()
        with Member(broker.address, "second", "orders") as member:
            member.commit()
        written = len(dump(broker.address))
        while sum(account["records"] for each in told for account in each["accounts"]) < written:
            told.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=MOST_SECONDS)
    assert process.returncode == 0
    told += map(json.loads, rest.splitlines())
    assert not any(each["nothing_new"] for each in told)
    assert len({each["run_id"] for each in told}) == len(told)
    same_as_dumped(broker.address, dumped, tmp_path / "ledger")


def test_a_broker_that_answers_nothing_for_a_while(broker):
    """Within the timeout it is waited for; beyond it, there is one line."""
    fill(broker.address, "no-members", "wide", 500, 60)
    end = ends(broker.address)[0]

    def read(seconds, frozen):
        batches = StretchReader(Address(broker.address, SLOWLY, seconds), offset_commits=True).read(
            OffsetRange(0, 0, end)
        )
        found = next(batches).column("offset").to_pylist()
        broker.freeze()
        thawing = threading.Timer(frozen, broker.thaw)
        thawing.start()
        began = time.monotonic()
        try:
            for batch in batches:
                found += batch.column("offset").to_pylist()
            return found
        finally:
            waited = time.monotonic() - began
            thawing.cancel()
            broker.thaw()
            assert waited < seconds + 20

    assert read(60, 5.0) == [*range(end), None, None]
    with pytest.raises(Fault) as caught:
        read(3, 60.0)
    assert caught.value.code == "KAFKA_UNREACHABLE"
    assert "\n" not in caught.value.message
    assert read(60, 0.0) == [*range(end), None, None], "and it goes on"


def leader(address):
    """The node that leads the log's partition, and those that have all of it; -1: nobody leads."""
    partition = AdminClient({"bootstrap.servers": address}).list_topics(LOG, timeout=SECONDS).topics[LOG].partitions[0]
    return partition.leader, sorted(partition.isrs)


def until(true):
    """Until it is true."""
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_the_leader_of_the_log_dies_and_another_node_leads(tmp_path):
    """In the middle of a stretch: every record once, in order, from the node that leads then."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = Broker(tmp_path / "first", more=TWO_NODES)
    second = Broker(tmp_path / "second", more=TWO_NODES, first=first)
    try:
        first.start()
        second.start()
        until(lambda: len(AdminClient({"bootstrap.servers": first.address}).list_topics(timeout=SECONDS).brokers) == 2)
        topics = [
            NewTopic("wide", 500, 1),
            NewTopic(LOG, num_partitions=1, replica_assignment=[[2, 1]]),
        ]  # the first controls: it stays
        admin = AdminClient(
            {"bootstrap.servers": first.address}
        )  # collected before the answers are there, it gives none
        for made in admin.create_topics(topics).values():
            made.result(SECONDS)
        with Member(first.address, "g", "wide"):
            until(lambda: leader(first.address) == (2, [1, 2]))
        fill(first.address, "g", "wide", 500, 60)
        end = ends(first.address)[0]
        both = f"{second.address},{first.address}"
        batches = StretchReader(Address(both, SLOWLY, 120), offset_commits=True).read(OffsetRange(0, 0, end))
        found = next(batches).column("offset").to_pylist()
        assert found[-1] < end - 10_000
        assert leader(first.address) == (2, [1, 2])
        second.kill()
        until(lambda: leader(first.address)[0] == 1)
        for batch in batches:
            found += batch.column("offset").to_pylist()
        assert found == [*range(end), None, None], "each record, and last the two counts"
    finally:
        second.stop()
        first.stop()
