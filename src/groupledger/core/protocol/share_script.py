"""What a script with share consumers (KIP-932) may have: they are a group of their own, and configure less."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

from groupledger.core.protocol import events as e
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_checks import require

OF_SHARE_CONSUMER = frozenset({"member", "topics", "group_protocol", "at_ms", "together"})
"""Fields of a join that a share consumer has a use for."""


def require_one_kind(script: Script) -> None:
    """Raise Fault("BAD_SCRIPT") where share consumers are in a script, and what is no share group's is too."""
    if coordinator_of(script.events) is not e.GroupProtocol.SHARE:
        return
    joins = [(at, each) for at, each in enumerate(script.events) if isinstance(each, e.Join)]
    other = next(((at, each) for at, each in joins if each.group_protocol is not e.GroupProtocol.SHARE), None)
    if other is not None:
        at, join = other
        expected = "share, as of all members: a share group has no others"
        require(False, f"events.{at}.group_protocol", join.group_protocol.value, expected)
    require(script.times is None, "times", "given", "none for a share group, whose clock are its heartbeats")
    for at, join in joins:
        for name, value in _set_fields(join).items():
            require(name in OF_SHARE_CONSUMER, f"events.{at}.{name}", value, "nothing: a share consumer has none")


def coordinator_of(events: Iterable[e.Event]) -> e.GroupProtocol:
    """What kind of group members make that their coordinator assigns: a share group, else a consumer group."""
    shares = any(isinstance(each, e.Join) and each.group_protocol is e.GroupProtocol.SHARE for each in events)
    return e.GroupProtocol.SHARE if shares else e.GroupProtocol.CONSUMER


def require_consumers(events: Iterable[e.Event], what: str) -> None:
    """Raise Fault("BAD_SCRIPT") for share consumers: they have no rebalance listener, and none of KIP-429's metrics."""
    shares = coordinator_of(events) is e.GroupProtocol.SHARE
    require(not shares, what, "asked for", "a script without share consumers, which are called by nothing")


def _set_fields(join: e.Join) -> dict[str, Any]:
    """Those fields that are not at their default."""
    told = ((each.name, getattr(join, each.name), each.default) for each in fields(join))
    return {name: value for name, value, default in told if default is MISSING or value != default}
