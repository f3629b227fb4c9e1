"""Brokers that die, come back and lead in turn while a log is read: each record is in the ledger once."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from groupledger.answers.causes import CauseKind
from groupledger.answers.explanation import explain
from groupledger.answers.reader import LedgerReader
from groupledger.answers.timeline import timeline
from groupledger.config import SourceSettings
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import OffsetRange
from groupledger.core.protocol.consumer import Callback
from groupledger.sources.kafka_log import Address, StretchReader
from groupledger.tables import LOG_RECORDS
from tests.kafka.groups import LOG, SECONDS, Member, dump, ends, fill
from tests.live import members
from tests.live.broker import CLUSTER_ID, Broker
from tests.live.dumped import SECONDS as MOST_SECONDS
from tests.live.dumped import same_as_dumped, started
from tests.live.members import Settings
from tests.live.topics import Topics
from tests.pipeline.ledgers import Workspace

SLOWLY = {"queued.min.messages": "100", "queued.max.messages.kbytes": "64", "fetch.message.max.bytes": "4096"}
TOPICS = {"orders": 3, "wide": 500}
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


@pytest.fixture
def nodes(tmp_path):
    """Two nodes: the first controls, and stays; the second is to lead the log's partition. Topics are on the first."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = Broker(tmp_path / "first", more=TWO_NODES)
    second = Broker(tmp_path / "second", more=TWO_NODES, first=first)
    try:
        first.start()
        second.start()
        admin = AdminClient({"bootstrap.servers": first.address})  # collected before the answers are there, it has none
        until(lambda: len(admin.list_topics(timeout=SECONDS).brokers) == 2)
        topics = [NewTopic(name, number, replica_assignment=[[1]] * number) for name, number in TOPICS.items()]
        for made in admin.create_topics([*topics, NewTopic(LOG, 1, replica_assignment=[[2, 1]])]).values():
            made.result(SECONDS)
        yield first, second
    finally:
        second.stop()
        first.stop()


def test_the_leader_of_the_log_dies_and_another_node_leads(nodes):
    """In the middle of a stretch: every record once, in order, from the node that leads then."""
    first, second = nodes
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


def test_a_coordinator_that_moves_is_a_possible_cause(nodes, programs, dumped, ledger, tmp_path):
    """Sarama's members join again then, and nothing else differs; segments have the same epochs as the client gives."""
    first, second = nodes
    settings = [Settings(first.address, "payments", name, "range", 60_000, None) for name in ("a", "b")]
    here = [members.Member(programs.command("sarama", each, ("orders",), tmp_path)) for each in settings]

    def settled(*calls):
        """Each member was called more often than that, and all partitions are assigned."""
        last = [each.calls[-1] for each, number in zip(here, calls, strict=True) if len(each.calls) > number]
        assigned = [partitions for call, partitions in last if call is Callback.ASSIGNED and partitions]
        return [len(assigned), sum(map(len, assigned))] == [len(here), TOPICS["orders"]]

    try:
        for each in here:
            each.until_ready(SECONDS)
        until(lambda: settled(0, 0))
        until(lambda: leader(first.address) == (2, [1, 2]))
        calls = [len(each.calls) for each in here]
        second.kill()
        until(lambda: leader(first.address)[0] == 1 and settled(*calls))
        ledger.ingest(SourceSettings(kind="kafka", bootstrap=first.address, timeout_seconds=120), cluster_id=None)
    finally:
        for each in here:
            each.stop()
    reader = LedgerReader(ledger.location.path)
    [moved] = [
        each
        for each in timeline(reader, "payments").entries
        if [(cause.kind, cause.possible) for cause in each.causes] == [(CauseKind.COORDINATOR_MOVED, True)]
    ]
    told = explain(reader, "payments", generation=moved.generation)
    assert told.causes == moved.causes
    assert (told.leader_change.from_epoch, told.leader_change.to_epoch) == (0, 1)
    dumped.ingest(SourceSettings(kind="segments", path=str(first.logs)), cluster_id=CLUSTER_ID)
    assert set(ledger.rows(LOG_RECORDS)) <= set(dumped.rows(LOG_RECORDS))
