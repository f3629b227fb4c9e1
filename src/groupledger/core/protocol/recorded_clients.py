"""The members of a recorded classic group as `migration` takes them: assignor, library, byte code, subscription.

What the log does not have: the assignors that members list beside the chosen one, and the library by name. The
libraries are found by what each of them writes (`compatibility.libraries`), over all generations of the member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.history.fold_rows import Assignment, GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import LIBRARIES, ByteCode, libraries
from groupledger.core.protocol.recorded import CLASSIC, CONSUMERS, assigned_partitions
from groupledger.core.protocol.rolling_migration import GroupClient


class RecordedGroup(NamedTuple):
    """A group as it last had members, a row of `members` for each client; `last` is its last snapshot."""

    snapshot: GroupSnapshotRow
    clients: tuple[GroupClient, ...]
    members: tuple[MemberSnapshotRow, ...]
    last: GroupSnapshotRow

    @property
    def empty_since(self) -> bool:
        """Whether it had no members in its last snapshot."""
        return self.last.members == 0


def recorded_group(
    snapshots: Sequence[GroupSnapshotRow],
    members: Iterable[MemberSnapshotRow],
    library: str | None = None,
    *,
    else_do: str = "name it with --client",
) -> RecordedGroup:
    """Return the last state with members, of all snapshots of a group in order. `library`: of members whose
    library the log does not show.

    Raises Fault: NOT_CLASSIC for a group whose members have no client-side assignor, NO_MEMBERS, UNKNOWN_CLIENT for a
    member that writes as no library we know and for a `library` we do not know.
    """
    if library is not None and library not in LIBRARIES:
        raise Fault("UNKNOWN_CLIENT", f"client is {library!r}; expected one of {', '.join(LIBRARIES)}")
    last = next((each for each in reversed(snapshots) if each.members > 0), None)
    if last is None:
        raise Fault("NO_MEMBERS", f"group {snapshots[-1].group_id!r} never had members: name them with --client")
    if last.group_type != CLASSIC or last.protocol_type not in CONSUMERS:
        kind = last.protocol_type if last.group_type == CLASSIC else last.group_type
        message = f"group {last.group_id!r} is of type {kind!r}; expected a classic group of consumers,"
        raise Fault("NOT_CLASSIC", f"{message} whose members bring assignors")
    assignors = {each.snapshot_id: each.assignor for each in snapshots}
    written: dict[str, list[frozenset[str]]] = {}
    present: list[MemberSnapshotRow] = []
    for row in members:
        assignor = assignors.get(row.snapshot_id)
        if assignor:
            found = libraries(assignor, row.subscription_version, row.user_data)
            written.setdefault(row.member_id, []).append(found)
        if row.snapshot_id == last.snapshot_id:
            present.append(row)
    named = names_of(present)
    clients = []
    for row in present:
        client = _client(row, named[row.member_id], last, written.get(row.member_id, ()), library)
        if client is None:
            unknown = f"member {named[row.member_id]!r} writes subscriptions as no library we know, or as several"
            raise Fault("UNKNOWN_CLIENT", f"{unknown}: {else_do}")
        clients.append(client)
    return RecordedGroup(last, tuple(clients), tuple(present), snapshots[-1])


def names_of(rows: Iterable[MemberSnapshotRow]) -> dict[str, str]:
    """Member ids -> the shortest name that is a member's own: instance id, client id, member id."""
    wanted = {row.member_id: row.group_instance_id or row.client_id or row.member_id for row in rows}
    taken = list(wanted.values())
    return {member_id: name if taken.count(name) == 1 else member_id for member_id, name in wanted.items()}


def _client(
    row: MemberSnapshotRow,
    name: str,
    snapshot: GroupSnapshotRow,
    written: Sequence[frozenset[str]],
    library: str | None,
) -> GroupClient | None:
    """Return the member as a client; None where its library is not known."""
    found = frozenset.intersection(*written) if written else frozenset()
    likely = [each for each in LIBRARIES if each in found]
    if len(likely) != 1 and library is not None:
        likely = [library]
    if not likely:
        return None
    topics = row.topics if row.topics is not None else snapshot.shared_topics or ()
    # Java writes one version whatever the assignor; of the others a low one does not say that they are old.
    version = row.subscription_version if likely[0] == "java" else None
    code = ByteCode.KIP_792 if version is None else ByteCode(min(version, ByteCode.KIP_792))
    return GroupClient(
        name, (snapshot.assignor or "",), topics, likely[0], code, row.group_instance_id, perhaps=tuple(likely[1:])
    )


# Members of a recorded group as a script has them before its first event: what each holds, in which generation.
#
# A classic group continues from any record, since each is of a whole generation. A consumer group (KIP-848) does only
# from a stable one: what its members had sent, and the coordinator's timers, are not in the log.

CONSUMER = e.GroupProtocol.CONSUMER.value
CANNOT_START = "CANNOT_START"


class GroupStart(NamedTuple):
    """The last recorded state of a group; `joins` seat its members, in the order of the record."""

    snapshot: GroupSnapshotRow
    generation: int
    joins: tuple[e.Join, ...]


def recorded_start(snapshots: Sequence[GroupSnapshotRow], members: Sequence[MemberSnapshotRow]) -> GroupStart:
    """Return the last state of a group, of all its snapshots in order; an empty group has no members to seat.

    Raises Fault: CANNOT_START for a state that the record does not have in full, and as `recorded_group`.
    """
    last = snapshots[-1]
    number = last.generation if last.group_type != CONSUMER else last.group_epoch
    if not last.members:
        return GroupStart(last, number or 0, ())
    if last.group_type == CONSUMER:
        rows = [row for row in members if row.snapshot_id == last.snapshot_id]
        return GroupStart(last, number or 0, tuple(_consumer_members(last, rows)))
    return GroupStart(last, number or 0, tuple(_classic_members(snapshots, members)))


def _classic_members(snapshots: Sequence[GroupSnapshotRow], members: Sequence[MemberSnapshotRow]) -> Iterator[e.Join]:
    recorded = recorded_group(snapshots, members, else_do="write its join in a script that starts without a ledger")
    for client, row in zip(recorded.clients, recorded.members, strict=True):
        yield e.Join(
            client.member,
            client.topics,
            client.assignors,
            client.group_instance_id,
            client.byte_code,
            library=client.library,
            seat=e.RecordedSeat(
                row.member_id,
                _partitions(row, row.recorded, "assignment"),
                _partitions(row, row.claimed or (), "claim"),
                row.claimed_generation,
                leads=row.member_id == recorded.snapshot.leader,
            ),
        )


def _consumer_members(snapshot: GroupSnapshotRow, rows: Sequence[MemberSnapshotRow]) -> Iterator[e.Join]:
    _require_stable(snapshot, rows)
    names = names_of(rows)
    for row in rows:
        assigned = _partitions(row, row.recorded, "assignment")
        yield e.Join(
            names[row.member_id],
            row.topics if row.topics is not None else snapshot.shared_topics or (),
            group_instance_id=row.group_instance_id,
            group_protocol=e.GroupProtocol.CONSUMER,
            remote_assignor=snapshot.assignor,
            seat=e.RecordedSeat(row.member_id, assigned, assigned, row.member_epoch),
        )


def _require_stable(snapshot: GroupSnapshotRow, rows: Iterable[MemberSnapshotRow]) -> None:
    """Raise Fault("CANNOT_START") for a consumer group whose record does not show what comes next."""
    got = f"group {snapshot.group_id!r} is at group epoch {snapshot.group_epoch}"
    if not snapshot.complete or snapshot.state != "Stable":
        expected = "a stable one: timers and what members last sent are not in the log"
        raise Fault(CANNOT_START, f"{got}, {snapshot.state}; expected {expected}")
    for row in rows:
        if row.subscribed_regex is not None:
            raise Fault(CANNOT_START, f"{got}; member {row.member_id!r} subscribes by a pattern; expected topic names")
        if row.subscription_version is not None:
            raise Fault(CANNOT_START, f"{got}; member {row.member_id!r} is a classic one; expected no conversion")


def _partitions(row: MemberSnapshotRow, found: Assignment | None, what: str) -> tuple[TopicPartition, ...]:
    """Return partitions by name. Raises Fault("CANNOT_START") where the record does not have them."""
    if found is None:
        raise Fault(CANNOT_START, f"the record of member {row.member_id!r} has no {what} that can be read")
    unnamed = next((topic_id for topic_id, name, _ in found if name is None), None)
    if unnamed is not None:
        raise Fault(
            CANNOT_START, f"the {what} of member {row.member_id!r} has topic id {unnamed}, which no listing names"
        )
    return tuple(sorted(assigned_partitions(found)))
