"""What Kafka's sticky assignors take from a member's bytes, as the real jar said (kafka-clients 4.4.0).

The questions are those of `tests.oracle.member_data`: every client's form of user data, whole, cut, behind a prefix,
with more behind it or a number changed, in subscriptions of all versions with a generation and without.
"""

from __future__ import annotations

from base64 import b64decode
from functools import cache

import pytest

from groupledger.core.custom.custom_group import Member, TopicPartition
from groupledger.core.scenarios.form import read_claim
from groupledger.core.wire.consumer_protocol import claim, decode_subscription
from tests.core.assignors.golden import gold
from tests.oracle.member_data import ASSIGNORS, questions

REPLACEMENT = "\ufffd"
"""Java puts it where a topic's name is no UTF-8. How many stand for how many bytes is the language's choice."""


@cache
def golden():
    return gold("member-data")


def flat(owned):
    return [(topic, number) for topic, numbers in owned for number in numbers]


def readable(pairs):
    return [(REPLACEMENT if REPLACEMENT in topic else topic, number) for topic, number in pairs]


def expected(pair):
    """Kafka's answer; it has two ways to say that there is no generation, and uses both alike."""
    generation = pair["result"]["generation"]
    return readable(pair["result"]["partitions"]), None if generation == -1 else generation


def of(assignor):
    return [pair for pair in golden() if pair["assignor"] == assignor]


def test_the_jar_was_asked_all_of_it():
    asked = [{name: pair[name] for name in ("assignor", "subscription")} for pair in golden()]
    assert asked == list(questions())
    assert len(asked) > 4_000
    assert not [pair for pair in golden() if "error" in pair["result"]]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_claim_tells_what_kafka_takes(assignor):
    wrong = []
    for pair in of(assignor):
        taken = claim(decode_subscription(b64decode(pair["subscription"])), assignor).taken
        if (readable(flat(taken.owned)), taken.generation) != expected(pair):
            wrong.append((pair, taken))
    assert wrong == []


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_scenario_takes_what_kafka_takes(assignor):
    wrong = []
    for pair in of(assignor):
        sent = decode_subscription(b64decode(pair["subscription"]))
        if assignor == "sticky" and sent.user_data is None:
            continue  # a scenario's member without user data has that which Java writes for what it owned
        owned = tuple(TopicPartition(*each) for each in flat(sent.owned))
        stated = None if sent.generation is None or sent.generation < 0 else sent.generation
        member = Member("a", tuple(sent.topics), owned, stated, user_data=sent.user_data)
        claimed, generation = read_claim(assignor, member)
        if (readable(claimed), generation) != expected(pair):
            wrong.append((pair, claimed, generation))
    assert wrong == []
