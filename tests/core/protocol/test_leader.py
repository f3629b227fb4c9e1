"""What whoever leads a group knows of its topics."""

from __future__ import annotations

from groupledger.core.protocol import events as e
from groupledger.core.protocol.leader import MissingTopics
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.simulator import simulate

TOPICS = {"t": 4, "u": 3}


def test_a_leader_lacks_a_topic_for_as_many_assignments_as_it_is_told():
    missing = MissingTopics()
    missing.miss("u", 3)
    seen = [(missing.known(TOPICS), missing.assigned()) for _ in range(4)]
    assert seen == [({"t": 4}, False), ({"t": 4}, False), ({"t": 4}, True), (TOPICS, False)]


def test_a_leader_that_lacks_a_topic_for_no_assignment_knows_it():
    missing = MissingTopics()
    missing.miss("u", 0)
    assert missing.known(TOPICS) == TOPICS


def test_what_a_member_remembers_for_sticky_is_in_the_order_of_its_user_data():
    """By topic, as Java's hash map has them: t before clicks, though the assignment had it the other way round."""
    joins = e.Join("a", ("t", "clicks"), ("sticky",)), e.Join("b", ("t",), ("sticky",))
    settled = simulate(Script({"clicks": 1, "t": 2}, joins))
    assigned = [each.rounds[-1].members[0].assigned for each in settled]
    assert assigned == [(("clicks", 0), ("t", 0), ("t", 1)), (("t", 1), ("clicks", 0))]
