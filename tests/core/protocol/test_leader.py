"""What whoever leads a group knows of its topics."""

from __future__ import annotations

from groupledger.core.protocol.leader import MissingTopics

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
