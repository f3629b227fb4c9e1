"""Up to when a ledger is known, where groups record nothing: ages, alerts, and what is said not to be known."""

import re
from datetime import timedelta

import pytest

from groupledger.answers.audit import audit
from groupledger.answers.gauges import gauges
from groupledger.answers.joins import joins
from groupledger.answers.scope import RequestedScope, known, known_for, moments, newest
from groupledger.answers.unowned import unowned_partitions
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import COMMITTED, read_to
from tests.answers.rows import at

STUCK = History("stuck").state(1, "m a:0,1").state(2, "m a:0")
LISTED = [listed("a", 2)]


def rows(runs, *histories, topics=LISTED):
    return rows_of(*(histories or [STUCK]), topic_snapshots=topics, runs=[COMMITTED, *runs])


def since_10m(reader):
    found = unowned_partitions(reader, newest(reader), timedelta(minutes=10))
    return [(f"{each.topic}-{each.partition}", each.since.minute, each.age_seconds) for each in found.partitions]


def of_group(reader, group="stuck"):
    [found] = [each for each in gauges(reader, RequestedScope()).groups if each.group_id == group]
    return found.unowned, found.unowned_since, found.oldest_unowned_seconds


def codes(reader):
    return [each.code for each in audit(reader, RequestedScope()).found]


@pytest.mark.parametrize("read", [{"dev": {"newest": at(30)}}, {"dev": at(30)}], ids=["offset commits", "nothing new"])
def test_a_stuck_group_ages_while_nothing_else_moves(written, read):
    """It is reported with the first turn of which its age is the threshold, and not before."""
    before = written(**rows([read_to(dev=at(11))]))
    assert since_10m(before) == []
    assert codes(written(**rows([read_to(dev=at(6))]))) == []
    assert codes(written(**rows([read_to(dev=at(8))]))) == ["UNOWNED"]
    after = written(**rows([read_to(dev=at(11)), read_to(3, **read)]))
    assert since_10m(after) == [("a-1", 2, 28 * 60)]
    assert codes(after) == ["UNOWNED"]
    assert of_group(after) == (1, at(2), 28 * 60)
    [cluster] = gauges(after, RequestedScope()).clusters
    assert cluster.known_up_to == at(30)


def test_it_ends_when_it_ends(written):
    ended = History("stuck").state(1, "m a:0,1").state(2, "m a:0").state(20, "m a:0,1")
    reader = written(**rows([read_to(dev=at(30))], ended))
    assert since_10m(reader) == []
    assert of_group(reader) == (0, None, 0.0)
    of_last = audit(reader, RequestedScope(since=timedelta(minutes=5))).found
    assert of_last == ()


def test_a_listing_alone_is_no_knowledge(written):
    reader = written(**rows([read_to(dev={"newest": at(4)})], topics=[*LISTED, listed("b", 1, 50)]))
    assert newest(reader) == at(4)
    assert of_group(reader) == (1, at(2), 120)


def test_where_log_partitions_were_read_to_different_points_the_least_counts(written):
    """`max_records` left something for later: what was written since is not known of every group."""
    partly = read_to(3, dev={"end": at(4), "newest": at(29), "least": at(9), "behind": at(30)})
    reader = written(**rows([read_to(dev=at(4)), partly]))
    assert newest(reader) == at(9)
    assert of_group(reader) == (1, at(2), 7 * 60)
    stopped = "where an ingest stopped before the end of the log (max_records)"
    assert known(reader).text == f"known up to 2026-11-21T14:09:00.000Z, {stopped}"
    caught_up = written(**rows([partly, read_to(4, dev=at(31))]))
    assert known(caught_up).text == "known up to 2026-11-21T14:31:00.000Z"


def test_a_record_newer_than_the_start_of_its_ingest_is_known(written):
    """The clock of the brokers may be ahead."""
    assert newest(written(**rows([read_to(dev={"end": at(5), "newest": at(6)})]))) == at(6)


def test_each_cluster_is_known_by_itself(written):
    other = History("pay", "eu").state(2, "m a:0")
    topics = [*LISTED, listed("a", 1, cluster="eu")]
    reader = written(**rows([read_to(dev=at(30), eu={"newest": at(9)})], STUCK, other, topics=topics))
    assert (newest(reader), newest(reader, "eu")) == (at(30), at(9))
    assert known(reader).text == (
        "known up to 2026-11-21T14:30:00.000Z (dev); 2026-11-21T14:09:00.000Z (eu), the newest record read"
    )


@pytest.mark.parametrize(
    ("group", "moments"),
    [("stuck", ["14:30:00.000Z"]), ("s*", ["14:30:00.000Z"]), ("pay", ["14:09:00.000Z"]), (None, 2), ("*", 2)],
)
def test_an_answer_about_groups_of_one_cluster_says_up_to_when_that_one_is_known(written, group, moments):
    other = History("pay", "eu").state(2, "m a:0")
    reader = written(**rows([read_to(dev=at(30), eu=at(9))], STUCK, other))
    text = known_for(reader, joins(reader, RequestedScope(group=group), 10), None).text
    found = re.findall(r"T(\S+Z)", text)
    assert (found if isinstance(moments, list) else len(found)) == moments


@pytest.mark.parametrize("about", [{"cluster": "dev"}, {"group": "stuck"}, {"group": "st*"}], ids=str)
def test_a_length_of_time_counts_back_from_now_of_the_cluster_that_was_asked_for(written, about):
    """Another cluster is known further: an audit of the last minutes of this one must not look behind its end."""
    reader = written(**rows([read_to(dev=at(12), eu=at(50))], STUCK, History("x", cluster="eu").state(1, "m a:0,1")))
    asked = RequestedScope(**about, since=timedelta(minutes=11))
    [begin] = moments(reader, about.get("cluster"), [asked.since], about.get("group"))
    assert begin == at(1)
    assert [each.code for each in audit(reader, asked).found] == ["UNOWNED"]
    assert audit(reader, asked).scope.since == at(1)
    [group] = gauges(reader, asked).groups
    assert (group.rebalances, group.unowned) == (2, 1)


def test_a_ledger_of_an_earlier_release_is_known_as_far_as_its_records_and_says_so(written):
    reader = written(**rows([]))
    assert newest(reader) == at(2)
    assert known(reader).text == ("known up to 2026-11-21T14:02:00.000Z, the newest group record (older ledger)")
    assert of_group(reader) == (1, at(2), 0)


def test_nothing_is_said_of_topics_that_were_listed_after_all_that_is_known(written):
    """The first listing came after the newest record: how many partitions there were is not known."""
    later = [listed("a", 2, 40)]
    reader = written(**rows([read_to(dev={"newest": at(30)})], topics=later))
    assert of_group(reader) == (None, None, None)
    found = unowned_partitions(reader, newest(reader))
    assert found.partitions == ()
    assert found.not_known == (("dev", "stuck"),)
    assert found.notes == (
        "not known of 1 group: no topic listing up to then has a (first listed 2026-11-21T14:40:00.000Z)",
    )


def test_a_first_listing_is_no_event_of_the_cluster(written):
    """The ingest that listed the topic first reached the end of the log: what had an owner, or is below one, is old."""
    reader = written(**rows([read_to(dev=at(30))], topics=[listed("a", 3, 30)]))
    found = unowned_partitions(reader, newest(reader)).partitions
    assert [(each.partition, each.since.minute, each.why.value) for each in found] == [
        (1, 2, "given-up"),
        (2, 30, "first-listed"),
    ]
    below = History("holes").state(1, "m a:1")
    [hole] = unowned_partitions(
        written(**rows([read_to(dev=at(30))], below, topics=[listed("a", 2, 30)])), at(30)
    ).partitions
    assert (hole.partition, hole.since, hole.why.value) == (0, at(1), "subscribed")


def test_a_run_that_found_nothing_counts_and_one_that_did_not_commit_does_not(written):
    nothing = read_to(3, dev=at(30)) | {"kind": "nothing-new"}
    planned = read_to(None, dev=at(50)) | {"status": "planned"}
    assert newest(written(**rows([read_to(dev=at(9)), nothing, planned]))) == at(30)


def test_ingests_of_several_clusters_may_overtake_one_another(written):
    assert newest(written(**rows([read_to(dev=at(30)), read_to(3, dev=at(9), eu=at(8))]))) == at(30)


@pytest.mark.parametrize(("protocol_type", "unowned"), [("connect", None), ("consumer", 0), (None, 0)])
def test_what_members_of_another_protocol_lack_is_not_known(written, protocol_type, unowned):
    workers = History("workers", topics=()).state(1, "w", protocol_type=protocol_type)
    assert of_group(written(**rows([], workers)), "workers")[0] == unowned
