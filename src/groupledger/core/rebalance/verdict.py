"""Compare a leader's record with the named assignor's answer to the same input: a verdict per group.

The recorded bytes hold the assignor's name, the subscriptions and the answer, but not the topics as the leader saw
them. So if an answer differs, it is tried again with the topics before their last changes, after the next one, with as
many partitions as the record itself has, and without topics that the leader assigned nothing of. Remaining differences
are judged by rules for any assignor.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.ragged import MemberSlots, Slots
from groupledger.core.arrays.snapshots import GREATEST, LEAST, Snapshots, Subscribed, TopicViews
from groupledger.core.rebalance.registry import AS_OF_4_0_0, NOT_OF_3_7_1
from groupledger.core.rebalance.step import GroupMembership, contains

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask


_4_0_0 = "_4_0_0"


class Verdict(enum.IntEnum):
    """The result of comparing the record with the recomputed answer. `text` is what the ledger says."""

    EXACT = 0  # the same partitions in the same order inside each topic
    EQUAL_SETS = 1
    EXACT_OLDER_TOPICS = 2  # equal, with earlier topics
    EXACT_NEWER_TOPICS = 3
    TOPIC_UNKNOWN_TO_LEADER = 4  # equal, without the topics that the leader assigned nothing of
    REWRITE = 5  # same generation written again: has the verdict of its first record, not recomputed
    VALID_DIFFERENT = 6  # another answer, which keeps the rules for any assignor
    INVALID = 7
    NOT_COMPARED = 8  # another assignor than the recorded one ran, or none
    CANNOT_TELL_ASSIGNOR = 9
    CANNOT_TELL_NO_COUNTS = 10
    CANNOT_TELL_INCOMPLETE = 11
    CANNOT_TELL_NO_RECORD = 12
    CANNOT_TELL_PROTOCOL_TYPE = 13
    CANNOT_TELL_ASSIGNOR_FAILS = 14  # Kafka's own code fails on this input, yet something was recorded
    EXACT_UNLESS_NEIGHBOURS = 15  # a coordinator's target: an order that the log does not show might decide
    EQUAL_SETS_UNLESS_NEIGHBOURS = 16
    EXACT_OLDER_TOPICS_UNLESS_NEIGHBOURS = 17
    EXACT_NEWER_TOPICS_UNLESS_NEIGHBOURS = 18
    CANNOT_TELL_NEIGHBOURS = 19
    CANNOT_TELL_GROUP_BEFORE = 20  # compaction or the end of a read removed what the target was computed from
    CANNOT_TELL_REGULAR_EXPRESSION = 21
    CANNOT_TELL_NO_ASSIGNOR = 22
    CANNOT_TELL_SHARE_GROUP = 23  # the assignors of their coordinators are not modelled
    CANNOT_TELL_STREAMS_GROUP = 24
    EXACT_4_0_0 = 25  # a coordinator's target: the answer of Kafka 4.0.0, where that of 4.0.1 to 4.4 is another
    EQUAL_SETS_4_0_0 = 26
    EXACT_OLDER_TOPICS_4_0_0 = 27
    EXACT_NEWER_TOPICS_4_0_0 = 28
    EXACT_UNLESS_NEIGHBOURS_4_0_0 = 29
    EQUAL_SETS_UNLESS_NEIGHBOURS_4_0_0 = 30
    EXACT_OLDER_TOPICS_UNLESS_NEIGHBOURS_4_0_0 = 31
    EXACT_NEWER_TOPICS_UNLESS_NEIGHBOURS_4_0_0 = 32
    OTHER_RELEASE_BEFORE_2_4 = 33  # a valid, different answer of a sticky assignor; the leader writes as such a client
    OTHER_RELEASE_2_4_TO_2_8_0 = 34
    OTHER_RELEASE_2_4_TO_3_3 = 35
    OTHER_RELEASE_2_8_1_TO_3_3 = 36
    OTHER_RELEASE_3_4_ON = 37
    NO_MEMBERS = 38  # nothing to assign: a group is born, empty, or deleted
    EXACT_RECORDED_TOPICS = 39  # equal, with the partition counts that the record shows: no listing is of that moment
    EXACT_RECORDED_TOPICS_UNLESS_NEIGHBOURS = 40
    EXACT_RECORDED_TOPICS_4_0_0 = 41
    EXACT_RECORDED_TOPICS_UNLESS_NEIGHBOURS_4_0_0 = 42
    CARRIED_OVER = 43  # an online conversion: the coordinator took over what the group had in its other form

    @property
    def text(self) -> str:
        """Return the text; `cannot-tell` is followed by its reason."""
        now = self.name.removesuffix(_4_0_0)
        plain, unless, _ = now.lower().replace("_", "-").partition("-unless-neighbours")
        release = AS_OF_4_0_0 if now != self.name else ""
        return _TEXTS.get(self) or plain + release + (", unless bucket neighbours compete" if unless else "")

    @property
    def is_equal(self) -> bool:
        """Return whether an answer of the recorded assignor gives the recorded partitions to the recorded members."""
        return self.name.startswith(("EXACT", "EQUAL_SETS", "TOPIC_UNKNOWN_TO_LEADER"))

    @property
    def as_of_4_0_0(self) -> Verdict:
        """Return the verdict if the answer that is equal is that of Kafka 4.0.0; KeyError if none was equal."""
        return Verdict[self.name + _4_0_0]


UNLESS_NEIGHBOURS = {
    Verdict[each.name.removesuffix("_UNLESS_NEIGHBOURS")]: each
    for each in Verdict
    if each.name.endswith("_UNLESS_NEIGHBOURS")
}
"""The meaning of equality if the answer is exact unless bucket neighbours compete (`server.judgement.certainty`)."""

OTHER_RELEASE = {
    "before 2.4": Verdict.OTHER_RELEASE_BEFORE_2_4,
    "2.4-2.8.0": Verdict.OTHER_RELEASE_2_4_TO_2_8_0,
    "2.4-3.3": Verdict.OTHER_RELEASE_2_4_TO_3_3,
    "2.8.1-3.3": Verdict.OTHER_RELEASE_2_8_1_TO_3_3,
    "3.4.0 on": Verdict.OTHER_RELEASE_3_4_ON,
}
"""By the releases of the Java client that write the leader's subscription (`protocol.compatibility.java_releases`)."""

_TEXTS = {
    Verdict.CANNOT_TELL_NEIGHBOURS: "cannot-tell: bucket neighbours compete",
    Verdict.CANNOT_TELL_GROUP_BEFORE: "cannot-tell: the group before is not known",
    Verdict.CANNOT_TELL_REGULAR_EXPRESSION: "cannot-tell: a regular expression subscribes",
    Verdict.CANNOT_TELL_ASSIGNOR: "cannot-tell: Kafka has no assignor of this name",
    Verdict.CANNOT_TELL_NO_ASSIGNOR: "cannot-tell: no assignor recorded",
    Verdict.CANNOT_TELL_SHARE_GROUP: "cannot-tell: a share group",
    Verdict.CANNOT_TELL_STREAMS_GROUP: "cannot-tell: a streams group",
    Verdict.CANNOT_TELL_NO_COUNTS: "cannot-tell: no partition counts",
    Verdict.CANNOT_TELL_INCOMPLETE: "cannot-tell: incomplete snapshot",
    Verdict.CANNOT_TELL_NO_RECORD: "cannot-tell: nothing recorded",
    Verdict.CANNOT_TELL_PROTOCOL_TYPE: "cannot-tell: other protocol type",
    Verdict.CANNOT_TELL_ASSIGNOR_FAILS: "cannot-tell: the assignor fails on this input",
    **{each: f"{NOT_OF_3_7_1}: the leader writes as {releases}" for releases, each in OTHER_RELEASE.items()},
}

TRIED = (Verdict.EXACT_OLDER_TOPICS, Verdict.EXACT_OLDER_TOPICS, Verdict.EXACT_NEWER_TOPICS)
"""The meaning of equality under each of `other_moments`."""


class Comparison(NamedTuple):
    """The result for each group: [G]. `exact` implies `equal`."""

    exact: Mask
    equal: Mask


class TopicRowPartitions(NamedTuple):
    """Partitions by topic row."""

    topic: LongArray
    partition: IntArray

    def only(self, wanted: Mask) -> TopicRowPartitions:
        """Return those of the topic rows in the mask [T]."""
        kept = wanted[self.topic]
        return TopicRowPartitions(self.topic[kept], self.partition[kept])


class Breaches(NamedTuple):
    """Recorded partitions that break a rule for any assignor, ascending."""

    assigned_twice: TopicRowPartitions
    not_subscribed: TopicRowPartitions
    left_out: TopicRowPartitions  # of a topic of which others were assigned
    handed_over: TopicRowPartitions  # given to a new owner while another claimed to own it

    def groups(self, topic_group: LongArray, groups: int) -> Mask:
        """Return the groups with a breach: [G]."""
        found = np.zeros(groups, np.bool_)
        found[topic_group[np.concatenate([each.topic for each in self])]] = True
        return found


def compare(party: GroupMembership, slots: Slots, recorded: MemberSlots, answer: MemberSlots) -> Comparison:
    """Compare whether two answers give the same partitions to the same members, in the same order inside each topic.

    The wire groups partitions by topic, so the order across topics is not recorded. Lists are grouped by topic.
    """
    group = party.group
    differs = np.bincount(
        group, weights=np.diff(recorded.start) != np.diff(answer.start), minlength=len(party.incremental)
    )
    wrong = answer.only(~contains(recorded, answer.member, answer.slot, slots))
    differs += np.bincount(group[wrong.member], minlength=len(differs))
    place = np.full(len(slots), NONE, np.int64)
    place[recorded.slot] = _place_in_topic(recorded, slots)
    moved = answer.only(place[answer.slot] != _place_in_topic(answer, slots))
    disordered = np.bincount(group[moved.member], minlength=len(differs))
    equal: Mask = differs == 0
    return Comparison(equal & (disordered == 0), equal)


def _place_in_topic(lists: MemberSlots, slots: Slots) -> LongArray:
    """Return each entry's position among the entries of its member and topic."""
    topic, member = slots.topic[lists.slot], lists.member
    return ragged.places(np.append(np.flatnonzero(ragged.begins(topic, member)), len(topic)))


def other_moments(topics: TopicViews, topic_group: LongArray, subscribed: Mask, groups: int) -> list[IntArray]:
    """Return partition counts [T] just before a group's last topic change, before the one before, after the next."""
    last = _extreme(np.maximum, LEAST, topics.changed, topic_group, subscribed, groups)[topic_group]
    changed = (topics.changed == last) & (last > LEAST)
    older = np.where(changed, topics.before, topics.now)
    older_changed = np.where(changed, topics.changed_before, topics.changed)
    last_but_one = _extreme(np.maximum, LEAST, older_changed, topic_group, subscribed, groups)[topic_group]
    again = (older_changed == last_but_one) & (last_but_one > LEAST)
    oldest = np.where(again, np.where(changed, topics.before_that, topics.before), older)
    following = _extreme(np.minimum, GREATEST, topics.changed_after, topic_group, subscribed, groups)[topic_group]
    newer = np.where((topics.changed_after == following) & (following < GREATEST), topics.after, topics.now)
    return [each.astype(np.int32) for each in (older, oldest, newer)]


def recorded_counts(snapshots: Snapshots) -> IntArray:
    """Return partition counts [T] that records show: of a topic of which partitions 0 to n - 1 are recorded, n.

    A count between the listings before and after may be listed nowhere, nor is one of before the first listing. An
    assignor of Kafka's leaves no partition out, except that a cooperative round withholds what a member claims. The
    count stays that of the listing where a partition is missing, or more or fewer are recorded than the listings around
    the record allow, and where nothing of a topic is recorded, unless the next listing lacks the topic.
    """
    topics = snapshots.topics
    listed = np.stack((topics.now, topics.before, topics.before_that))
    least = np.where(listed == NONE, np.iinfo(np.int32).max, listed).min(axis=0)
    least = np.where((topics.now == NONE) & ~topics.gone, 1, least)
    later = topics.after != NONE
    most = np.where(later, np.maximum(topics.now, topics.after), np.iinfo(np.int32).max)
    most = np.where(later | (topics.now != NONE) | topics.gone, most, 0)  # 0: never listed
    lists = snapshots.recorded, snapshots.claims
    key = np.unique(np.concatenate([each.topic.astype(np.int64) << 32 | each.partition for each in lists]))
    key = key[(key & 0xFFFFFFFF) < most[key >> 32]]
    found = np.bincount(key >> 32, minlength=len(most))
    highest = np.zeros(len(most), np.int64)
    np.maximum.at(highest, key >> 32, (key & 0xFFFFFFFF) + 1)
    given = np.bincount(snapshots.recorded.topic, minlength=len(most)) > 0
    deleted = ~given & (topics.after == NONE) & (topics.changed_after < GREATEST)
    counts = np.where(given & (found == highest) & (least <= found), found, topics.now)
    return np.where(deleted, NONE, counts).astype(np.int32)


def _extreme(
    pick: np.ufunc, nothing: int, times: LongArray, topic_group: LongArray, subscribed: Mask, groups: int
) -> LongArray:
    found = np.full(groups, nothing, np.int64)
    pick.at(found, topic_group[subscribed], times[subscribed])
    return found


def without_unrecorded(counts: IntArray, slots: Slots, recorded: MemberSlots) -> IntArray:
    """Return partition counts [T] with NONE for each topic of which nothing was recorded."""
    given = np.zeros(len(counts), np.bool_)
    given[slots.topic[recorded.slot]] = True
    return np.where(given, counts, NONE).astype(np.int32)


def breaches(slots: Slots, subscribed: Subscribed, owned: MemberSlots, recorded: MemberSlots) -> Breaches:
    """Find where a recorded answer breaks the rules for any assignor. Withheld partitions are no breach."""
    given = recorded.mask(len(slots))
    topic_given = np.zeros(int(slots.topic.max(initial=-1)) + 1, np.bool_)
    topic_given[slots.topic[recorded.slot]] = True
    claims = owned.holders(len(slots))
    twice = np.flatnonzero(recorded.holders(len(slots)) > 1)
    left = slots.wanted & ~given & (claims == 0) & topic_given[slots.topic]
    stranger = ~subscribed.names(recorded.member, slots.topic[recorded.slot])
    taken = (claims[recorded.slot] > 0) & ~contains(owned, recorded.member, recorded.slot, slots)
    found = twice, np.unique(recorded.slot[stranger]), np.flatnonzero(left), np.unique(recorded.slot[taken])
    return Breaches(*(TopicRowPartitions(slots.topic[each], slots.partition[each]) for each in found))
