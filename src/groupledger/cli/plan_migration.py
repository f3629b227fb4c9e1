"""`groupledger plan-migration`: two rolling bounces rehearsed member by member, and the first unsafe step by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from groupledger.cli.exits import Exit
from groupledger.cli.options import takes_json
from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from groupledger.cli.output import Output
    from groupledger.core.protocol.migration import Client, Rehearsal, Step

PARTITIONS_A_MEMBER = 3


@click.command("plan-migration", short_help="Rehearse the way to another assignor, member by member; no Spark.")
@click.option("--from", "present", required=True, metavar="NAMES", help="Assignors now: range,roundrobin.")
@click.option("--to", "wanted", default="cooperative-sticky", show_default=True, help="The new assignor.")
@click.option("--client", "clients", multiple=True, metavar="LIBRARY=N", help="Members by library; default: java=3.")
@click.option("--before-2.4", "old", is_flag=True, help="Members run byte code before Kafka 2.4 (KIP-429) now.")
@click.option("--single-bounce", is_flag=True, help="Rehearse one bounce instead of two: what goes wrong.")
@takes_json
def plan_migration(
    output: Output, *, present: str, wanted: str, clients: tuple[str, ...], old: bool, single_bounce: bool
) -> None:
    """Play both rolling bounces of KIP-429 and check every state on the way.

    Exit code 4 where a step is unsafe: the last one shown. For Kafka Streams: --from stream --to stream --before-2.4.
    """
    from groupledger.core.protocol.migration import one_bounce, rehearse, two_bounces

    group = _group(tuple(present.split(",")), clients or ("java=3",), old)
    bounces = one_bounce(wanted) if single_bounce else two_bounces(group, wanted)
    rehearsal = rehearse(group, bounces, {"topic": PARTITIONS_A_MEMBER * len(group)})
    _show(output, rehearsal, group)
    output.result(_rows(rehearsal))
    if rehearsal.first_unsafe is not None:
        click.get_current_context().exit(Exit.VIOLATIONS)


def _group(assignors: tuple[str, ...], clients: tuple[str, ...], old: bool) -> list[Client]:
    from groupledger.core.protocol.compatibility import ByteCode
    from groupledger.core.protocol.migration import Client

    code = ByteCode.BEFORE_KIP_429 if old else ByteCode.KIP_792
    members = [(library, at) for each in clients for library, count in [_counted(each)] for at in range(count)]
    return [Client(f"{library}-{at + 1}", assignors, ("topic",), library, code) for library, at in members]


def _counted(text: str) -> tuple[str, int]:
    """`java=3` -> ("java", 3)."""
    library, _, count = text.partition("=")
    if not (count.isascii() and count.isdigit() and 0 < int(count) <= 1_000):
        raise Fault("BAD_CLIENT", f"--client is {text!r}; expected LIBRARY=N with N from 1 to 1,000, such as java=3")
    return library, int(count)


def _show(output: Output, rehearsal: Rehearsal, group: list[Client]) -> None:
    output.title(f"{len(group)} members, {len(rehearsal.bounces)} rolling bounces")
    columns = ("step", "bounce", "member", "assignor", "leader", "cooperative", "rounds", "findings")
    output.table(columns, [_row(step) for step in rehearsal.steps])
    output.title("Checklist")
    for line in _checklist(rehearsal):
        output.line(line)


def _row(step: Step) -> tuple[object, ...]:
    cooperative = sum(protocol.value == "COOPERATIVE" for protocol in step.protocols.values())
    found = ", ".join(dict.fromkeys(each.danger.value for each in step.findings)) or "none"
    named = (step.number, step.bounce, step.member, step.assignor, step.leader)
    return (*named, f"{cooperative} of {len(step.protocols)}", step.rounds, found)


def _checklist(rehearsal: Rehearsal) -> list[str]:
    """What to do, bounce by bounce; or where to stop, and why."""
    unsafe = rehearsal.first_unsafe
    if unsafe is not None:
        stop = f"[ ] STOP before step {unsafe.number}: {unsafe.member}, bounce '{unsafe.bounce}'"
        return [stop, *(f"    {each.danger.value}: {each.evidence}" for each in unsafe.findings)]
    lines = []
    for number, bounce in enumerate(rehearsal.bounces, 1):
        members = [step.member for step in rehearsal.steps if step.bounce == bounce.name]
        after = [step for step in rehearsal.steps if step.bounce == bounce.name][-1]
        lines.append(f"[ ] Bounce {number}: {bounce.name}; one member after the other: {', '.join(members)}")
        lines.append(f"[ ] Before going on: all {len(members)} are back, and the group's assignor is {after.assignor}")
    return lines


def _rows(rehearsal: Rehearsal) -> dict[str, object]:
    unsafe = rehearsal.first_unsafe
    steps = [
        {
            "step": step.number,
            "bounce": step.bounce,
            "member": step.member,
            "assignor": step.assignor,
            "leader": step.leader,
            "common": list(step.common),
            "protocols": {member: protocol.value for member, protocol in step.protocols.items()},
            "rounds": step.rounds,
            "unavailable": step.unavailable,
            "findings": [{"danger": each.danger.value, "evidence": each.evidence} for each in step.findings],
        }
        for step in rehearsal.steps
    ]
    first = None if unsafe is None else {"step": unsafe.number, "danger": unsafe.findings[0].danger.value}
    return {"status": "safe" if unsafe is None else "unsafe", "first_unsafe": first, "steps": steps}
