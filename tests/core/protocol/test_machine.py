"""Any history of a group, drawn event by event: what must hold after each. `make machine` draws 5,000 of 30 events."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from groupledger.core.protocol import events as e
from groupledger.core.protocol.consumer import Callback
from groupledger.core.protocol.simulator import Script, live
from groupledger.core.rebalance.step import Form

RUNS = int(os.environ.get("GROUPLEDGER_MACHINE_RUNS", "25"))
EVENTS = 30
ASSIGNORS = (("cooperative-sticky",), ("range", "cooperative-sticky"), ("sticky",), ("roundrobin",))
TOPICS = ("t", "u")
MOST_MEMBERS = 6
topics = st.sampled_from((("t",), ("u",), ("t", "u")))


class Feed(Iterator[e.Event]):
    """Events as the machine draws them: the simulator takes one after the other."""

    def __init__(self):
        self.waiting = []

    def __next__(self):
        return self.waiting.pop()


class GroupMachine(RuleBasedStateMachine):
    """A group under the form `kip`, and beside it only what the rules need to know."""

    @initialize(assignors=st.sampled_from(ASSIGNORS), count=st.integers(1, 6))
    def start(self, assignors, count):
        self.assignors = assignors
        self.cooperative = assignors == ("cooperative-sticky",)
        self.topics = dict.fromkeys(TOPICS, count)
        self.events = Feed()
        self.game = live(Script(self.topics, self.events, Form.KIP))
        self.talking, self.paused, self.ended, self.frozen, self.missing = [], [], [], set(), set()
        self.static = set()
        self.born = 0
        self.last = None
        self.happens(e.SetPartitions("t", count))

    def happens(self, event):
        self.events.waiting.append(event)
        self.last = next(self.game)

    def someone(self, data, among):
        return data.draw(st.sampled_from(sorted(among)))

    @precondition(lambda self: len(self.talking) + len(self.paused) + len(self.ended) < MOST_MEMBERS)
    @rule(subscribed=topics, static=st.booleans())
    def join(self, subscribed, static):
        self.born += 1
        name = f"m{self.born}"
        self.talking.append(name)
        if static:
            self.static.add(name)
        self.happens(e.Join(name, subscribed, self.assignors, f"i-{name}" if static else None))
        self.settled()

    @precondition(lambda self: self.talking)
    @rule(data=st.data())
    def leave(self, data):
        name = self.someone(data, self.talking)
        self.gone(name)
        if name in self.static:
            self.ended.append(name)
        self.happens(e.Leave(name))
        self.settled()

    @precondition(lambda self: self.talking)
    @rule(data=st.data())
    def crash(self, data):
        name = self.someone(data, self.talking)
        self.gone(name)
        self.ended.append(name)
        self.happens(e.Crash(name))

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def restart(self, data):
        name = self.someone(data, self.ended)
        self.ended.remove(name)
        self.talking.append(name)
        self.happens(e.Restart(name))
        self.settled()

    @precondition(lambda self: self.talking)
    @rule(data=st.data())
    def pause(self, data):
        name = self.someone(data, self.talking)
        self.talking.remove(name)
        self.paused.append(name)
        self.happens(e.Pause(name))

    @precondition(lambda self: self.paused)
    @rule(data=st.data(), expired=st.booleans())
    def resume(self, data, expired):
        name = self.someone(data, self.paused)
        if expired:
            self.happens(e.Expire(name))
            self.settled()
        self.paused.remove(name)
        self.talking.append(name)
        self.happens(e.Resume(name))
        self.settled()

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def expire(self, data):
        name = self.someone(data, self.ended)
        self.ended.remove(name)
        self.happens(e.Expire(name))
        self.settled()

    @precondition(lambda self: self.talking)
    @rule(data=st.data(), subscribed=topics)
    def subscribe(self, data, subscribed):
        self.happens(e.Subscribe(self.someone(data, self.talking), subscribed))
        self.settled()

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 3))
    def add_partitions(self, topic, more):
        self.topics = {**self.topics, topic: min(self.topics.get(topic, 0) + more, 9)}
        self.happens(e.SetPartitions(topic, self.topics[topic]))
        self.settled()

    @rule(topic=st.sampled_from(TOPICS))
    def delete_topic(self, topic):
        if topic not in self.topics:
            return
        self.topics = {name: count for name, count in self.topics.items() if name != topic}
        self.happens(e.DeleteTopic(topic))
        self.settled()

    @precondition(lambda self: self.talking)
    @rule(data=st.data())
    def freeze(self, data):
        name = self.someone(data, self.talking)
        self.frozen.add(name)
        self.happens(e.FreezeMetadata(name))

    @precondition(lambda self: self.frozen - set(self.paused))
    @rule(data=st.data())
    def refresh(self, data):
        name = self.someone(data, self.frozen - set(self.paused))
        self.frozen.remove(name)
        self.happens(e.RefreshMetadata(name))
        self.settled()

    @precondition(lambda self: self.talking)
    @rule(data=st.data())
    def miss(self, data):
        name = self.someone(data, self.talking)
        self.missing.add(name)
        self.happens(e.MissAssignment(name))

    def gone(self, name):
        self.talking.remove(name)
        self.frozen.discard(name)
        self.missing.discard(name)

    def settled(self):
        """Within two rounds, and with every partition owned, once nothing is pending and the leader sees clearly."""
        if self.last.rounds:
            self.missing.clear()
        if self.frozen or self.ended or self.paused:
            return
        assert self.last.unowned == ()
        undisturbed = [took for took in self.last.rounds if all(row.answered for row in took.members)]
        if self.cooperative and len(undisturbed) == len(self.last.rounds):
            assert len(self.last.rounds) <= 2

    @invariant()
    def the_group_comes_to_rest(self):
        """But for a static member that is away: until its session ends, others may hand a partition to it for ever."""
        if self.last is not None:
            assert (self.last.failure, self.last.refused) == (None, None)
            assert self.last.cycle is None or self.paused or self.ended

    @invariant()
    def nothing_has_two_owners_in_a_generation(self):
        for took in self.last.rounds if self.last else ():
            given = [each for row in took.members for each in row.assigned]
            assert len(given) == len(set(given))

    @invariant()
    def nobody_is_given_what_another_still_owns(self):
        for took in self.last.rounds if self.last else ():
            kept = {each: row.member for row in took.members for each in row.owned}
            added = [(each, row.member) for row in took.members for each in set(row.assigned) - set(row.owned)]
            assert [each for each, name in added if kept.get(each, name) != name] == []

    @invariant()
    def nobody_consumes_what_another_consumes(self):
        assert self.last is None or self.last.double_owners == ()

    @invariant()
    def lost_is_called_only_where_the_kip_says(self):
        lost = [each for each in (self.last.calls if self.last else ()) if each.call.callback is Callback.LOST]
        assert all(each.call.partitions and each.round == 0 for each in lost)
        if lost and isinstance(self.last.event, e.Resume):
            assert {each.member for each in lost} == {self.last.event.member}
        else:
            gone = [number >= self.topics.get(topic, 0) for each in lost for topic, number in each.call.partitions]
            assert all(gone)


GroupMachine.TestCase.settings = settings(
    max_examples=RUNS,
    stateful_step_count=EVENTS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a machine that stands still for a minute is not a slow test
)
test_machine = GroupMachine.TestCase
