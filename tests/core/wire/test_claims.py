"""What members claim, from tables and from the captured groups that were made to claim wrongly."""

from __future__ import annotations

import pytest

from groupledger.core.wire.consumer_protocol import (
    COOPERATIVE_STICKY,
    STICKY,
    ClaimSource,
    ConsumerProtocolSubscription,
    UserData,
    UserDataForm,
    claim,
    decode_subscription,
    encode_user_data,
)
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata
from tests.core.wire.captured import log

A = (("a", (0, 1)),)
B = (("b", (2,)),)
SAID, CARRIED, NONE = ClaimSource.SUBSCRIPTION, ClaimSource.USER_DATA, ClaimSource.NONE


def kip_54(owned, generation, form=UserDataForm.OWNED_GENERATION):
    return encode_user_data(UserData(form, owned, generation))


FOUR_BYTES_3 = encode_user_data(UserData(UserDataForm.GENERATION, generation=3))


NOTHING = ((), None)


@pytest.mark.parametrize(
    ("assignor", "subscription", "meant", "kafka"),
    [
        # Java cooperative-sticky after a missed assignment: two generations; the claim's is older, the assignor's newer
        (COOPERATIVE_STICKY, ConsumerProtocolSubscription(3, ("a",), FOUR_BYTES_3, A, 4), (A, 3, SAID, 4, 3), (A, 4)),
        # before v2 the generation is the user data's
        (COOPERATIVE_STICKY, ConsumerProtocolSubscription(1, ("a",), FOUR_BYTES_3, A), (A, 3, SAID, None, 3), (A, 3)),
        (COOPERATIVE_STICKY, ConsumerProtocolSubscription(1, ("a",), b"", A), (A, None, SAID, None, None), (A, None)),
        # librdkafka: both say it; without the subscription's, Java dates by the number of topics in the user data
        (
            COOPERATIVE_STICKY,
            ConsumerProtocolSubscription(3, ("a",), kip_54(B, 3), A, 3, ""),
            (A, 3, SAID, 3, 3),
            (A, 3),
        ),
        (COOPERATIVE_STICKY, ConsumerProtocolSubscription(1, ("a",), kip_54(B, 5), A), (A, 5, SAID, None, 5), (A, 1)),
        (
            COOPERATIVE_STICKY,
            ConsumerProtocolSubscription(3, ("a",), kip_54(B, None), A),
            (A, None, SAID, None, None),
            (A, 1),
        ),
        # a newcomer states that it owns nothing; a v0 member states nothing
        (
            COOPERATIVE_STICKY,
            ConsumerProtocolSubscription(3, ("a",), kip_54((), None)),
            ((), None, SAID, None, None),
            ((), 0),
        ),
        (COOPERATIVE_STICKY, ConsumerProtocolSubscription(0, ("a",)), ((), None, NONE, None, None), NOTHING),
        # sticky: the user data alone, whatever the subscription says
        (STICKY, ConsumerProtocolSubscription(3, ("a",), kip_54(A, 3), B, 4), (A, 3, CARRIED, 4, 3), (A, 3)),
        (
            STICKY,
            ConsumerProtocolSubscription(0, ("a",), kip_54(A, None, UserDataForm.OWNED)),
            (A, None, CARRIED, None, None),
            (A, None),
        ),
        # kafka-python's, which Java's assignor cannot read
        (
            STICKY,
            ConsumerProtocolSubscription(0, ("a",), kip_54(A, 1, UserDataForm.PREFIXED_OWNED_GENERATION)),
            (A, 1, CARRIED, None, 1),
            NOTHING,
        ),
        (STICKY, ConsumerProtocolSubscription(3, ("a",), None, B, 4), ((), None, NONE, 4, None), NOTHING),
        (STICKY, ConsumerProtocolSubscription(3, ("a",), b"\x07nonsense", B, 4), ((), None, NONE, 4, None), NOTHING),
        # assignors without user data of their own
        ("range", ConsumerProtocolSubscription(3, ("a",), kip_54(A, 3), B, 4), (B, 4, SAID, 4, None), (B, 4)),
        ("range", ConsumerProtocolSubscription(0, ("a",), b""), ((), None, NONE, None, None), NOTHING),
        (None, ConsumerProtocolSubscription(None), ((), None, NONE, None, None), NOTHING),
        # a negative generation of a subscription is none; one in user data is a number that Kafka compares
        (
            COOPERATIVE_STICKY,
            ConsumerProtocolSubscription(3, ("a",), FOUR_BYTES_3, A, -7),
            (A, 3, SAID, None, 3),
            (A, 3),
        ),
        (STICKY, ConsumerProtocolSubscription(0, ("a",), kip_54(A, -7)), (A, -7, CARRIED, None, -7), (A, -7)),
    ],
)
def test_claims(assignor, subscription, meant, kafka):
    told = claim(subscription, assignor)
    generations = told.subscription_generation, told.user_data_generation
    assert (told.owned, told.generation, told.source, *generations) == meant
    assert told.taken == kafka


def claims_of(group_id, generation):
    """client_id -> claim, in the first record of a generation of a captured edge group."""
    for key, value in log("edge/offsets"):
        record = decode(key, value)
        group = record.value
        if record.group_id == group_id and isinstance(group, GroupMetadata) and group.generation == generation:
            members = group.members
            return {m.client_id: claim(decode_subscription(m.subscription), group.protocol) for m in members}
    raise AssertionError((group_id, generation))


@pytest.mark.parametrize(
    ("group_id", "generation", "said", "carried"),
    [("stale-java", 5, 4, 3), ("stale-java", 6, 5, 3), ("stale-rdk", 5, 3, 3)],
)
def test_stale_claims_are_of_generation_3(group_id, generation, said, carried):
    found = claims_of(group_id, generation)[f"{group_id}-z"]
    assert (found.generation, found.subscription_generation, found.user_data_generation) == (carried, said, carried)
    assert found.taken == (found.owned, said)
    assert found.owned


def test_an_eager_member_of_an_upgrade_states_an_empty_claim():
    found = claims_of("up-coop-first", 12)
    assert {one.source for one in found.values()} == {SAID}
    assert any(not one.owned for one in found.values())
