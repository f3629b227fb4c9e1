"""What a classic member claims to own, and of which generation the claim is: an input of the sticky assignors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription, TopicPartitions
from groupledger.core.wire.user_data import STICKY, decode_user_data, taken

FIRST_VERSION_WITH_OWNED = 1
"""Of the subscription (KIP-429)."""


class ClaimSource(StrEnum):
    """Where `Claim.owned` was stated."""

    SUBSCRIPTION = "subscription"
    USER_DATA = "user_data"
    NONE = "none"


class Taken(NamedTuple):
    """What Kafka's assignor takes a member to own, and of which generation; None: of none."""

    owned: TopicPartitions
    generation: int | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim as the member sent it: topics in its order, repeats kept (`consumer_protocol.merged` joins them).

    `generation` is the one that the claim belongs to. The two it may come from are kept apart, since they can differ: a
    Java member that missed an assignment has the newer generation in its subscription and, in its user data, the one
    that the claim belongs to. A claim of nothing has a source; source NONE means that the member stated none.
    `taken` is what Kafka's assignor makes of the same bytes.
    """

    owned: TopicPartitions
    generation: int | None
    source: ClaimSource
    subscription_generation: int | None
    user_data_generation: int | None
    taken: Taken


def claim(subscription: ConsumerProtocolSubscription, assignor: str | None) -> Claim:
    """The member's claim under this assignor (the group's selected protocol).

    "sticky": owned and generation of the user data (KIP-54), whatever the subscription says, as Java's does. Any
    other: owned of the subscription (KIP-429, v1+), generation of the user data, which a stale claim does not renew,
    or, where it has none, of the subscription (KIP-792, v2+). A negative generation of a subscription is none.
    """
    user_data = decode_user_data(subscription.user_data, assignor)
    said, carried = _valid(subscription.generation), user_data.generation
    if assignor == STICKY:
        owned, dated = user_data.owned, carried
        source = ClaimSource.USER_DATA if user_data.states_owned else ClaimSource.NONE
    else:
        owned, dated = subscription.owned, said if carried is None else carried
        states_owned = (subscription.version or 0) >= FIRST_VERSION_WITH_OWNED
        source = ClaimSource.SUBSCRIPTION if states_owned else ClaimSource.NONE
    kept, decisive = taken(assignor, owned, dated, said, subscription.user_data)
    return Claim(owned, dated, source, said, carried, Taken(tuple(kept), decisive))


def _valid(generation: int | None) -> int | None:
    return generation if generation is not None and generation >= 0 else None
