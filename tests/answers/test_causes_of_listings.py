"""Causes under every timing of the topic listings: what a listing of another minute says makes no cause false.

Each case is a group's records, and topics as they truly were; each schedule is when the topics were listed. A case
under a schedule is a cluster of one ledger. The cause of a rebalance is the same under all schedules, or not known.
"""

from dataclasses import dataclass, field

import pytest

from groupledger.answers.timeline import timeline
from tests.answers.histories import History, listed, rows_of

SCHEDULES = {
    "never": (),
    "each minute": range(60),
    "every five minutes": range(0, 60, 5),
    "every seven minutes": range(3, 60, 7),
    "a minute before each record": (9, 19, 29, 39),
    "a minute after each record": (1, 11, 21, 31, 41),
    "with each record": (10, 20, 30, 40),
    "from between the first two on": range(15, 60, 10),
    "from between the next two on": range(25, 60, 10),
    "from the end on": (45, 55),
    "once, at the beginning": (0,),
    "once, at the end": (50,),
    "at both ends": (0, 50),
}
ADDED, APPEARED, DELETED = "partitions-added", "topic-appeared", "topic-deleted"
AGAIN, SUBSCRIBED, FOLLOWED = "topic-made-again", "subscription-changed", "follow-up"
JOINED, GONE, RESTARTED, NOTHING = "member-joined", "member-gone", "member-restarted", "not-shown"


@dataclass
class Case:
    """`sure`: what led to the last state, told under every schedule; `may`: told where listings show it.

    `perhaps`: only ever as a possibility. `topics`: (minute, topic, id, partition count or None) as it truly was.
    """

    history: History
    topics: tuple[tuple[int, str, str, int | None], ...]
    sure: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)


def group(kind="classic", topics=("a", "b"), assignor="range", **states):
    """States by minute: `s10="m a:0"`; a tuple has other columns of the state beside the members."""
    made = History("pay", kind=kind, topics=topics)
    for minute, said in states.items():
        text, more = said if isinstance(said, tuple) else (said, {})
        made.state(int(minute[1:]), text, **({"assignor": assignor} | more))
    return made


def topics(*names):
    return {"shared_topics": list(names)}


AB = ((0, "a", "A1", 4), (0, "b", "B1", 5))
STABLE = "m a:0,1 b:0,1,2 | n a:2,3 b:3,4"
COOPERATIVE = "cooperative-sticky"
NINE = "m a:0,1 b:0,1,2,3,4 | n a:2,3 b:5,6,7,8"
CASES = {
    "partitions are added": Case(group(s10=STABLE, s20=NINE), (*AB, (18, "b", "B1", 9)), {ADDED}),
    "partitions are added to a group of epochs": Case(
        group(
            "consumer",
            s10="m a/A1:0,1 b/B1:0,1,2 | n a/A1:2,3 b/B1:3,4",
            s20="m a/A1:0,1 b/B1:0,1,2,5,6 | n a/A1:2,3 b/B1:3,4,7,8",
        ),
        (*AB, (18, "b", "B1", 9)),
        {ADDED},
    ),
    "partitions were added before, and the leader learns of it late": Case(
        group(s10=STABLE, s20=NINE), (*AB, (8, "b", "B1", 9)), may={ADDED}
    ),
    "partitions are added, and others withheld": Case(
        group(assignor=COOPERATIVE, s5="m a:0", s10=STABLE, s20="m a:0 b:0,1,2,7,8 | n a:2,3 b:3,5,6"),
        (*AB, (19, "b", "B1", 9)),
        {ADDED},
    ),
    "the record begins with a round that withheld partitions": Case(
        group(assignor=COOPERATIVE, s10="m a:0 b:0,1 | n", s20="m a:0 b:0,1 | n a:1,2,3 b:2,3,4"),
        AB,
        perhaps={ADDED},
    ),
    "what was withheld is no new partition": Case(
        group(
            assignor=COOPERATIVE,
            s10=STABLE,
            s20="m a:0 b:0,1,2,7,8 | n a:2 b:3,4,5,6",
            s30="m a:0,3 b:0,1,2,7,8 | n a:1,2 b:3,4,5,6",
        ),
        (*AB, (19, "b", "B1", 9)),
        {FOLLOWED},
    ),
    "a follow-up": Case(
        group(assignor=COOPERATIVE, s10="m a:0,1,2,3", s20="m a:0,1 | n", s30="m a:0,1 | n a:2,3"), AB, {FOLLOWED}
    ),
    "a follow-up of a topic that was withheld whole": Case(
        group(assignor=COOPERATIVE, s10="m a:0,1,2,3 b:0", s20="m a:0,1,2,3 | n", s30="m a:0,1,2,3 | n b:0"),
        ((0, "a", "A1", 4), (0, "b", "B1", 1)),
        {FOLLOWED},
    ),
    "a join withholds a whole topic": Case(
        group(assignor=COOPERATIVE, s10="m a:0,1,2,3 b:0", s20="m a:0,1,2,3 | n"),
        ((0, "a", "A1", 4), (0, "b", "B1", 1)),
        {JOINED},
    ),
    "a topic is deleted, and clients with a pattern drop it": Case(
        group(s10=(STABLE, topics("a", "b")), s20=("m a:0,1 | n a:2,3", topics("a"))),
        (*AB, (17, "b", "B1", None)),
        {SUBSCRIBED},
        may={DELETED},
    ),
    "a topic is made again, and clients with a pattern find it": Case(
        group(
            s10=(STABLE, topics("a", "b")),
            s20=("m a:0,1 | n a:2,3", topics("a")),
            s30=(STABLE, topics("a", "b")),
        ),
        (*AB, (17, "b", "B1", None), (27, "b", "B2", 5)),
        {SUBSCRIBED},
        may={AGAIN},
    ),
    "a topic is deleted that is still subscribed to": Case(
        group(s10=STABLE, s20="m a:0,1 | n a:2,3"), (*AB, (17, "b", "B1", None)), may={DELETED}
    ),
    "a topic is made again that was always subscribed to": Case(
        group(s10=STABLE, s20="m a:0,1 | n a:2,3", s30=STABLE),
        (*AB, (17, "b", "B1", None), (27, "b", "B2", 5)),
        {APPEARED},
    ),
    "a topic of a group of epochs is deleted": Case(
        group("consumer", s10="m a/A1:0,1,2,3 b/B1:0,1,2,3,4", s20="m a/A1:0,1,2,3"),
        (*AB, (17, "b", "B1", None)),
        may={DELETED},
    ),
    "a topic of a group of epochs is made again": Case(
        group(
            "consumer",
            s10="m a/A1:0,1,2,3 b/B1:0,1,2,3,4",
            s20="m a/A1:0,1,2,3",
            s30="m a/A1:0,1,2,3 b/B2:0,1,2,3,4",
        ),
        (*AB, (17, "b", "B1", None), (27, "b", "B2", 5)),
        {AGAIN},
    ),
    "a topic of a group of epochs is made again at once": Case(
        group("consumer", s10="m b/B1:0,1,2,3,4", s20="m b/B2:0,1,2,3,4,5"),
        (*AB, (17, "b", "B2", 6)),
        {AGAIN},
    ),
    "a topic of a classic group is made again at once": Case(
        group(s10=STABLE, s20=STABLE), (*AB, (17, "b", "B2", 5)), perhaps={AGAIN}
    ),
    "a topic was made again before the record before": Case(
        group(s10=STABLE, s20=STABLE, s30="m a:0,1 b:0,1,2,3 | n a:2,3 b:4 | o"),
        (*AB, (17, "b", "B2", 5)),
        {JOINED},
        perhaps={AGAIN},
    ),
    "a topic that was subscribed to comes to be": Case(
        group(s10="m a:0,1 | n a:2,3", s20=STABLE), (AB[0], (17, "b", "B1", 5)), perhaps={APPEARED}
    ),
    "a leader learns of a topic late": Case(group(s10="m a:0,1 | n a:2,3", s20=STABLE), AB, perhaps={APPEARED}),
    "a leader that leaves out the last partition goes": Case(
        group(s10="l a:0,1 b:0,1,2,3 | n a:2,3", s20=STABLE), AB, {JOINED, GONE}, perhaps={ADDED}
    ),
    "a leader that does not know a topic": Case(
        group(s10=STABLE, s20="l a:0,1 | m a:2 | n a:3"), AB, {JOINED}, perhaps={DELETED}
    ),
    "a topic that nobody subscribes to is deleted": Case(
        group(topics=("a",), s10="m a:0,1 | n a:2,3", s20="m a:0,1 | n a:2,3"), (*AB, (17, "b", "B1", None))
    ),
    "a topic is deleted after it was dropped by one member": Case(
        group(s10=(STABLE, topics("a", "b")), s20=("m a:0,1 | n a:2,3", topics("a"))),
        (*AB, (22, "b", "B1", None)),
        {SUBSCRIBED},
        perhaps={DELETED},
    ),
    "nothing": Case(group(s10=STABLE, s20=STABLE), AB),
    "a member goes": Case(group(s10=STABLE, s20="m a:0,1,2,3 b:0,1,2,3,4"), AB, {GONE}),
    "a member joins": Case(group(s10="m a:0,1,2,3 b:0,1,2,3,4", s20=STABLE), AB, {JOINED}),
    "a static member comes back": Case(
        group(s10="m-1/i a:0,1,2,3 b:0,1,2,3,4", s20="m-2/i a:0,1,2,3 b:0,1,2,3,4"), AB, {RESTARTED}
    ),
    "a partition that the leader left out is given again": Case(
        group(s10=STABLE, s20="m a:1 b:0,1,2 | n a:2,3 b:3,4", s30=STABLE), AB
    ),
    "the first state": Case(group(s10=STABLE), AB, {"group-born"}),
}


def listings(case, schedule, cluster):
    """The changes of what each listing of the schedule shows."""
    rows, shown = [], {}
    for minute in schedule:
        there = {}
        for since, topic, topic_id, count in case.topics:
            if since <= minute:
                there[topic] = (topic_id, count)
        there = {topic: state for topic, state in there.items() if state[1] is not None}
        for topic in sorted(there.keys() | shown.keys()):
            if there.get(topic) != shown.get(topic):
                topic_id, count = there.get(topic, (None, None))
                rows.append(listed(topic, count, minute, cluster, topic_id))
        shown = there
    return rows


@pytest.fixture(scope="module")
def ledger(written):
    histories, listed_rows = [], []
    for name, case in CASES.items():
        for when, schedule in SCHEDULES.items():
            cluster = f"{name}, listed {when}"
            rows = {table: [row | {"cluster_id": cluster} for row in some] for table, some in case.history.rows.items()}
            histories.append(History("pay", cluster, rows=rows))
            listed_rows += listings(case, schedule, cluster)
    return written(**rows_of(*histories, topic_snapshots=listed_rows))


@pytest.fixture(scope="module")
def entries(ledger):
    found = {}
    for each in timeline(ledger, "pay", limit=100_000).entries:
        found[each.cluster_id] = each
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("when", SCHEDULES)
def test_a_cause_is_the_same_whenever_topics_are_listed_or_not_known(entries, name, when):
    case, causes = CASES[name], entries[f"{name}, listed {when}"].causes
    sure = {each.kind.value for each in causes if not each.possible} - {NOTHING}
    possible = {each.kind.value for each in causes if each.possible}
    assert case.sure <= sure <= case.sure | case.may, causes
    assert possible <= case.may | case.perhaps, causes
    assert sure or possible or [each.kind.value for each in causes] == [NOTHING]
