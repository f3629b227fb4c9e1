"""`groupledger plan-migration`: rehearse two rolling bounces member by member, and name the first unsafe step."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from groupledger.answers.answer_columns import Column
from groupledger.answers.spoken import numbered
from groupledger.cli.exits import exit_if
from groupledger.cli.options import Job, takes
from groupledger.core.faults import Fault
from groupledger.core.moments import from_millis, iso
from groupledger.core.rebalance.registry import COOPERATIVE_STICKY, called

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from groupledger.cli.output import Output
    from groupledger.core.protocol.rolling_migration import BounceStep, GroupClient, Hazard, MigrationRehearsal, StopAll

PARTITIONS_A_MEMBER = 3
"""For a topic whose partition count is unknown."""
NAMED = 12
"""Members named in a line of the checklist; with --json, `members` has them all."""
DEFAULT_CLIENTS, WANTED = ("java=3",), COOPERATIVE_STICKY.name


@click.command("plan-migration", short_help="Rehearse a change of assignor, member by member.")
@takes("group")
@click.option("--listed", metavar="NAMES", help="Assignors that members list now: range,roundrobin; default: those of "
              "the libraries of --client.")  # fmt: skip
@takes("assignor")
@click.option("--client", "clients", multiple=True, metavar="LIBRARY=N", help="Members by library: java=3 (default), "
              "java@2.3=1.")  # fmt: skip
@click.option("--from", "listed_before", hidden=True)  # what scripts of earlier versions say
@click.option("--to", "assignor_before", hidden=True)
@takes("cluster")
@click.option("--before-2.4", "old", is_flag=True, help="Members now run clients older than Kafka 2.4 (KIP-429).")
@click.option("--single-bounce", is_flag=True, help="Rehearse one bounce instead of two, to see what goes wrong.")
@takes("ledger", "json")
def plan_migration(
    output: Output,
    *,
    group: str | None,
    listed: str | None,
    assignor: str | None,
    listed_before: str | None,
    assignor_before: str | None,
    clients: tuple[str, ...],
    cluster: str | None,
    old: bool,
    single_bounce: bool,
    opened: Callable[..., Job],
) -> None:
    """Play both rolling bounces of KIP-429 to --assignor (default: cooperative-sticky); check every state on the way.

    Exit code 4 if a step is unsafe: the last one shown.
    For Kafka Streams: --listed stream --assignor stream --before-2.4.

    \b
    groupledger plan-migration --listed range --client java=2 --client franz-go=1
    groupledger plan-migration payments

    With GROUP, its members, topics and assignor are those in the ledger. The log holds only the chosen assignor: name
    all that members list with --listed. If it does not show their library, use --client LIBRARY.
    """
    from groupledger.core.protocol.compatibility import ByteCode

    listed, assignor = listed or listed_before, assignor or assignor_before
    assignors = tuple(called(each.strip()) for each in listed.split(",")) if listed else ()
    topics: dict[str, int] = {}
    if group is None and cluster is not None:
        raise click.UsageError("--cluster says where GROUP is; there is no GROUP.")
    if group is None:
        members = _made_up(assignors, clients)
    else:
        members, topics = _recorded(opened(output), group, cluster, assignors, clients)
    members = [replace(each, byte_code=ByteCode.BEFORE_KIP_429) for each in members] if old else members
    with output.status("rehearsing every step"):
        rehearsal = rehearsed(members, topics, assignor or WANTED, single_bounce=single_bounce)
    print_rehearsal(output, rehearsal, members)
    output.result(_rows(rehearsal, members))
    exit_if(rehearsal.first_unsafe is not None)


def rehearsed(
    members: Sequence[GroupClient], topics: Mapping[str, int], wanted: str, *, single_bounce: bool = False
) -> MigrationRehearsal:
    """Rehearse both bounces, or a single one; a topic without a count in `topics` gets three partitions per member."""
    from groupledger.core.protocol.rolling_migration import one_bounce, rehearse, two_bounces

    counts = {topic: topics.get(topic, PARTITIONS_A_MEMBER * len(members)) for each in members for topic in each.topics}
    return rehearse(members, one_bounce(wanted) if single_bounce else two_bounces(members, wanted), counts)


def _made_up(assignors: tuple[str, ...], clients: tuple[str, ...]) -> list[GroupClient]:
    """Make members from the options' counts. Raises Fault: BAD_CLIENT, NO_COMMON_ASSIGNOR."""
    if not assignors and not clients:
        raise click.UsageError(
            "expected GROUP, a group of the ledger, or --listed and --client, for one that is made up"
        )
    from groupledger.core.protocol.compatibility import read_client_library
    from groupledger.core.protocol.rolling_migration import GroupClient

    members = [
        (library, at)
        for each in clients or DEFAULT_CLIENTS
        for library, count in [_counted(each)]
        for at in range(count)
    ]
    known = {text: read_client_library(text) for text, _ in members}
    if not assignors and not set.intersection(*(set(each.default) for each in known.values())):
        listed = "; ".join(f"{text}: {', '.join(each.default)}" for text, each in known.items())
        raise Fault(
            "NO_COMMON_ASSIGNOR", f"by default these clients list no assignor in common ({listed}); give --listed"
        )
    return [
        GroupClient(
            f"{text}-{at + 1}",
            assignors or known[text].default,
            ("topic",),
            known[text].name,
            byte_code=known[text].byte_code,
        )
        for text, at in members
    ]


def _recorded(
    job: Job, group: str, cluster: str | None, assignors: tuple[str, ...], clients: tuple[str, ...]
) -> tuple[list[GroupClient], dict[str, int]]:
    """Return members and the partitions of their topics from the ledger."""
    from groupledger.answers.recorded_history import recorded_members

    if len(clients) > 1 or any("=" in each for each in clients):
        given = " ".join(clients)
        raise Fault("BAD_CLIENT", f"--client is {given!r}; with GROUP expected one LIBRARY, whose members are counted")
    with job.output.status("reading the group's history"):
        recorded, topics = recorded_members(job.reader(), group, cluster, *clients)
    seen = recorded.snapshot
    since = "; it is empty now" if recorded.empty_since else ""
    job.output.title(f"{group}, generation {seen.generation}, {iso(from_millis(seen.observed_at))}{since}")
    members = [replace(each, assignors=assignors) if assignors else each for each in recorded.clients]
    rows = [(each.member, " or ".join((each.library, *each.perhaps)), ", ".join(each.topics)) for each in members]
    job.output.table(("member", "client library", "topics"), rows)
    return members, topics


def _counted(text: str) -> tuple[str, int]:
    """`java=3` -> ("java", 3), `java@2.3=1` -> ("java@2.3", 1)."""
    library, _, count = text.partition("=")
    if not (count.isascii() and count.isdigit() and 0 < int(count) <= 1_000):
        raise Fault("BAD_CLIENT", f"--client is {text!r}; expected LIBRARY=N with N from 1 to 1,000, such as java=3")
    return library, int(count)


def print_rehearsal(output: Output, rehearsal: MigrationRehearsal, group: Sequence[GroupClient]) -> None:
    """Print every step, and what to do: a checklist, or where to stop and why."""
    output.title(f"{numbered(len(group), 'member')}, {numbered(len(rehearsal.bounces), 'rolling bounce')}")
    if rehearsal.played < len(group):
        output.line(
            f"{rehearsal.played} members were played, some of each kind: leader and rounds are those of that smaller"
            " group; what was found holds for all who are configured alike"
        )
    output.rows(map(_cells, rehearsal.steps), wide=not sys.stdout.isatty(), more="--json has all")
    output.title("Checklist")
    for line in _checklist(rehearsal, [each.member for each in group]):
        output.line(line)


def _cells(step: BounceStep) -> dict[Column, object]:
    cooperative = sum(protocol.value == "COOPERATIVE" for protocol in step.protocols.values())
    return {
        Column("step"): step.number,
        Column("bounce", 0, 16): step.bounce,
        Column("member", 0, 16): f"{step.member} and {len(step.alike)} alike" if step.alike else step.member,
        Column("assignor", 2): step.assignor,
        Column("leader", 4): step.leader,
        Column("cooperative", 1): f"{cooperative} of {len(step.protocols)}",
        Column("rounds", 3): step.rounds,
        Column("findings", 0, 16): ", ".join(dict.fromkeys(each.danger.value for each in step.findings)) or "none",
    }


def _checklist(rehearsal: MigrationRehearsal, members: list[str]) -> list[str]:
    """Return what to do, bounce by bounce; or where to stop, and why."""
    unsafe = rehearsal.first_unsafe
    if unsafe is not None:
        stop = f"[ ] STOP before step {unsafe.number}: {unsafe.member}, bounce '{unsafe.bounce}'"
        return [stop, *_evidence(unsafe.findings), *_other_way(rehearsal.stop_all, len(members))]
    lines = _warnings(rehearsal)
    named = members if len(members) <= NAMED else [*members[: NAMED - 1], f"and {len(members) - NAMED + 1} more"]
    for number, bounce in enumerate(rehearsal.bounces, 1):
        after = [step for step in rehearsal.steps if step.bounce == bounce.name][-1]
        lines.append(f"[ ] Bounce {number}: {bounce.name}; one member after the other: {', '.join(named)}")
        back = f"all {len(members)} are back" if len(members) > 1 else "it is back"
        lines.append(f"[ ] Before going on: {back}, and the group's assignor is {after.assignor}")
    return lines


def _warnings(rehearsal: MigrationRehearsal) -> list[str]:
    """Return each warning of any step once, and where its code is explained."""
    found = dict.fromkeys(each for step in rehearsal.steps for each in step.findings)
    lines = [f"[ ] First, {each.danger.value}: {each.evidence}" for each in found]
    return [*lines, "    (docs/reference/codes.md, Findings of plan-migration, explains the codes)"] if lines else []


def _evidence(found: Iterable[Hazard]) -> list[str]:
    return [f"    {each.danger.value}: {each.evidence}" for each in found]


def _other_way(stop_all: StopAll | None, members: int) -> list[str]:
    """Return the instructions for stopping all members, if that was rehearsed."""
    if stop_all is None:
        return []
    them = f"all {members} members, then start them" if members > 1 else "the member, then start it"
    way = f"[ ] Or stop {them} anew ({stop_all.bounce})"
    if stop_all.findings:
        return [f"{way}; not safe either:", *_evidence(stop_all.findings)]
    cost = f"{numbered(stop_all.unavailable, 'partition')} without an owner meanwhile"
    return [f"{way}: rehearsed, safe, under {stop_all.assignor}; {cost}"]


def _rows(rehearsal: MigrationRehearsal, members: list[GroupClient]) -> dict[str, object]:
    unsafe, stop_all = rehearsal.first_unsafe, rehearsal.stop_all
    of_member = ("member", "library", "perhaps", "assignors", "topics")
    of_step = ("bounce", "member", "alike", "assignor", "leader", "common", "protocols", "rounds", "unavailable")
    return {
        "status": "safe" if unsafe is None else "unsafe",
        "command": "plan-migration",
        "first_unsafe": None if unsafe is None else {"step": unsafe.number, "danger": unsafe.findings[0].danger},
        "members": [_picked(each, of_member) for each in members],
        "played": rehearsal.played,
        "steps": [
            {"step": each.number, **_picked(each, of_step), "findings": _findings(each)} for each in rehearsal.steps
        ],
        "stop_all": None if stop_all is None else {**stop_all._asdict(), "findings": _findings(stop_all)},
    }


def _findings(of: BounceStep | StopAll) -> list[dict[str, object]]:
    return [each._asdict() for each in of.findings]


def _picked(of: object, names: Sequence[str]) -> dict[str, object]:
    return {name: getattr(of, name) for name in names}
