"""The leader of a group (KIP-429, "Proposed Changes", step 2): what members said in, what each is assigned out.

Pure, and for many groups at once: `plan_all` runs each assignor once over all groups that use it, and the step of
`core.step` once over all of them.

Worked example: A says it owns t-0 and t-1, B owns nothing; the assignor gives t-1 to B. A is assigned t-0, B nothing
yet, and t-1 is in transfer until A has revoked it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import View
from groupledger.core.protocol.subscription import Seat
from groupledger.core.step import Form

Lists = Mapping[str, tuple[TopicPartition, ...]]
"""Partitions by member id."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a leader is asked: members in JoinGroup order, and the topics as its own metadata has them.

    A leader on byte code before KIP-429 reads neither owned partitions nor generations, and adjusts nothing.
    """

    assignor: str
    seats: tuple[Seat, ...]
    view: View
    form: Form
    byte_code: ByteCode = ByteCode.KIP_792

    @property
    def reads_owned(self) -> bool:
        """Whether this leader knows that a member may keep what it owns while it joins."""
        return self.byte_code >= ByteCode.KIP_429


class Sets(NamedTuple):
    """KIP-429's three exclusive sets (step 2.3), each by topic and number."""

    maybe_revoking: tuple[TopicPartition, ...] = ()
    ready_to_migrate: tuple[TopicPartition, ...] = ()
    unknown_but_owned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The leader's answer: `assigned` goes to the members, `target` is where the assignor wants them to be.

    `failure` is what the assignor threw; then there is nothing to assign, and no member is answered.
    """

    assigned: Lists
    target: Lists
    sets: Sets
    failure: str | None = None


def plan_all(questions: Sequence[Question], custom: Mapping[str, CustomAssignor] | None = None) -> list[Plan]:
    """One plan for each question. `custom` are the assignors that are not ours; an unknown name raises Fault."""
    from groupledger.core.protocol.planning import plans  # numpy and all assignors: only where somebody plans

    return plans(questions, custom or {})


def plan(question: Question, custom: Mapping[str, CustomAssignor] | None = None) -> Plan:
    """The plan of one group."""
    return plan_all([question], custom)[0]
