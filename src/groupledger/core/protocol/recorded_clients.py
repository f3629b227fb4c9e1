"""The members of a recorded classic group as `migration` takes them: assignor, library, byte code, subscription.

What the log does not have: the assignors that members list beside the chosen one, and the library by name. The
libraries are told by what each of them writes (`handwriting`), over all generations of the member.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupledger.core.faults import Fault
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol.compatibility import LIBRARIES, ByteCode
from groupledger.core.protocol.dangers import GroupClient
from groupledger.core.protocol.handwriting import libraries
from groupledger.core.protocol.recorded import CLASSIC, CONSUMERS


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
    """The last state with members, of all snapshots of a group in order. `library` is that of all members the log does
    not tell.

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
            told = libraries(assignor, row.subscription_version, row.user_data)
            written.setdefault(row.member_id, []).append(told)
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
    told = frozenset.intersection(*written) if written else frozenset()
    likely = [each for each in LIBRARIES if each in told]
    if len(likely) != 1 and library is not None:
        likely = [library]
    if not likely:
        return None
    topics = row.topics if row.topics is not None else snapshot.shared_topics or ()
    return GroupClient(
        name,
        (snapshot.assignor or "",),
        topics,
        likely[0],
        _byte_code(likely[0], row.subscription_version),
        row.group_instance_id,
        perhaps=tuple(likely[1:]),
    )


def _byte_code(library: str, version: int | None) -> ByteCode:
    """Java writes one version whatever the assignor; of the others a low one does not say that they are old."""
    if library != "java" or version is None:
        return ByteCode.KIP_792
    return ByteCode(min(version, ByteCode.KIP_792))
