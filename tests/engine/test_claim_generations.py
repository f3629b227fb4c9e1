"""What dates a member's claims (KIP-792), from the bytes it sent to Kafka's answer: as the fold reads them."""

from __future__ import annotations

from base64 import b64decode

import pytest

from groupledger.core.history.members import read_subscription
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolSubscription,
    UserData,
    UserDataForm,
    encode_subscription,
    encode_user_data,
)
from groupledger.tables import columns as c
from tests.core.assignors.golden import pairs
from tests.engine.bucket_rows import computed, group_row, member_row, scenario_rows, topic_row, wire

COOPERATIVE, STICKY = "cooperative-sticky", "sticky"


def said(member, assignor):
    """The member as a fold reads its subscription."""
    generation = member["generation"]
    data = None if member["user_data"] is None else b64decode(member["user_data"])
    owned = tuple((entry["topic"], tuple(entry["partitions"])) for entry in wire(map(tuple, member["owned"])))
    version = 3 if generation >= 0 else 1
    told = ConsumerProtocolSubscription(
        version, tuple(member["topics"]), data, owned, generation if generation >= 0 else None
    )
    return read_subscription(encode_subscription(told), assignor)


def with_user_data(scenario, result):
    """The rows of a scenario, members as they spoke."""
    told = {member["id"]: said(member, scenario["assignor"]) for member in scenario["members"]}
    for row in scenario_rows(scenario, result["assignment"]):
        if row["row_kind"] == 1:
            one = told[row[c.MEMBER_ID]]
            row |= {
                c.CLAIMED: wire((topic, number) for topic, numbers in one.claim.owned for number in numbers),
                c.CLAIMED_GENERATION: one.claim.generation,
                c.SUBSCRIPTION_GENERATION: one.claim.subscription_generation,
                c.USER_DATA: one.user_data,
            }
        yield row


def undated(profile, assignor, every):
    """Answered scenarios with members that only user data dates: some of them, or every one."""
    for scenario, result in pairs(profile):
        by_data = [member["user_data"] is not None for member in scenario["members"]]
        if scenario["assignor"] == assignor and "error" not in result and (all(by_data) if every else any(by_data)):
            yield scenario, result


def hands_out_twice(result):
    """A defect of Kafka's on contradicting claims; where a partition stands is then said twice, and not compared."""
    given = [tuple(each) for partitions in result["assignment"].values() for each in partitions]
    return len(set(given)) < len(given)


@pytest.mark.parametrize(("assignor", "every", "at_least"), [(COOPERATIVE, False, 800), (STICKY, True, 140)])
def test_claims_are_dated_as_kafka_dates_them(assignor, every, at_least):
    """Sticky members without user data would have to be given some: only groups where every one sent its own."""
    profiles = ("conflict", "homog", "static", "hetero", "user-data")
    found = [each for name in profiles for each in undated(name, assignor, every)]
    assert len(found) >= at_least
    rows = [row for scenario, result in found for row in with_user_data(scenario, result)]
    verdicts = {row[c.GROUP_ID]: row[c.VERDICT] for row in computed(rows)["rebalances"]}
    for scenario, result in found:
        expected = {"exact", "equal-sets"} if hands_out_twice(result) else {"exact"}
        assert verdicts[scenario["id"]] in expected, scenario["id"]


def test_a_sticky_claim_without_a_generation_has_none():
    """The subscription's generation, which only other assignors read, does not date it (KIP-54 version 0)."""
    told = ConsumerProtocolSubscription(3, ("t",), b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0", (), 9, None)
    assert read_subscription(encode_subscription(told), STICKY).claim.generation is None
    assert read_subscription(encode_subscription(told), "range").claim.generation == 9


def test_users_may_give_the_generation_without_the_bytes():
    """A newer claim wins; user data shorter than four bytes dates nothing."""
    rows = [
        group_row("g/1", assignor=COOPERATIVE, shared_topics=["t"]),
        member_row("g/1", 0, "A", claimed=wire([("t", 0)]), claimed_generation=4),
        member_row("g/1", 1, "B", claimed=wire([("t", 0)]), claimed_generation=5, user_data=b"abc"),
        topic_row("g/1", "t", 1),
    ]
    target = {row[c.MEMBER_ID]: row[c.TARGET] for row in computed(rows)["assignments"]}
    assert target == {"A": [], "B": wire_of("t", [0])}


def test_kafka_reads_four_bytes_whoever_wrote_them():
    """librdkafka's user data begin with how many topics the member owns: to Java, 1 is a generation, and 5 is newer."""
    kip_54 = encode_user_data(UserData(UserDataForm.OWNED_GENERATION, (("t", (0,)),), 9))
    rows = [
        group_row("g/1", assignor=COOPERATIVE, shared_topics=["t"]),
        member_row("g/1", 0, "A", claimed=wire([("t", 0)]), subscription_generation=5),
        member_row("g/1", 1, "B", claimed=wire([("t", 0)]), claimed_generation=9, user_data=kip_54),
        topic_row("g/1", "t", 1),
    ]
    target = {row[c.MEMBER_ID]: row[c.TARGET] for row in computed(rows)["assignments"]}
    assert target == {"A": wire_of("t", [0]), "B": []}


def wire_of(topic, partitions):
    return [{"topic": topic, "partitions": partitions}]
