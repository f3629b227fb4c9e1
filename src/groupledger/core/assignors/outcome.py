"""Encode how a group's assignment ended: small integers for the kernels, Kafka's words for people."""

from __future__ import annotations

from enum import IntEnum


class Path(IntEnum):
    """Which algorithm decided: the sticky assignors have two."""

    ONLY = 0
    CONSTRAINED = 1
    GENERAL = 2


class Status(IntEnum):
    """OK, one of the ways in which Kafka's own code fails, or an order that is not emulated."""

    OK = 0
    NO_MEMBERS_TO_DIVIDE_BY = 1
    NO_MEMBERS_TO_CIRCLE = 2
    NO_UNFILLED_MEMBER = 3
    NULL_POINTER = 4
    NO_SUCH_ELEMENT = 5
    ORDER_NOT_EMULATED = 6
    SUBSCRIPTIONS_DIFFER = 7
    CUSTOM_REFUSED = 8  # a custom assignor failed; the details are in the group


MESSAGES: dict[Status, str] = {
    Status.NO_MEMBERS_TO_DIVIDE_BY: "ArithmeticException: / by zero",
    Status.NO_MEMBERS_TO_CIRCLE: "IllegalArgumentException: CircularIterator can only be used on non-empty lists",
    Status.NO_UNFILLED_MEMBER: "IllegalStateException: No more unfilled consumers to be assigned.",
    Status.NULL_POINTER: (
        'NullPointerException: Cannot invoke "java.util.List.size()" because the return value of '
        '"java.util.Map.get(Object)" is null'
    ),
    Status.NO_SUCH_ELEMENT: "NoSuchElementException: null",
    Status.ORDER_NOT_EMULATED: (
        "OrderNotEmulated: nine or more ids share one bucket of Java's hash map, which turns it into a tree; "
        "expected fewer; such ids are crafted, judge this group by its invariants instead"
    ),
    Status.SUBSCRIPTIONS_DIFFER: (
        "SubscriptionsDiffer: members subscribe to different topics; constrained-cooperative-sticky expects them "
        "all to subscribe to the same set of topics: use cooperative-sticky instead (KIP-615)"
    ),
    Status.CUSTOM_REFUSED: "CustomRefused: the custom assignor failed or broke its contract on this group",
}
"""What Kafka throws, class and message (kafka-clients 4.4.0 on Java 17), or why there is no answer."""
