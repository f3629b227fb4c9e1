"""The reports of `groupledger report` for a person: a table of groups, then what makes each so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.answers.spoken import spans
from groupledger.cli.audit import WHEN
from groupledger.core.length import length, stretch
from groupledger.core.moment import iso
from groupledger.core.short_names import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.answers.racks import RackShares
    from groupledger.answers.skew import Load, Skew, Skews
    from groupledger.answers.static_members import StaticMembers
    from groupledger.answers.stickiness import Stickinesses
    from groupledger.answers.storms import Share, Storm, Storms
    from groupledger.cli.output import Output

MEMBERS_SHOWN = 5
"""Members of a group; of more, the heaviest and the lightest."""


def tell_storms(output: Output, answer: Storms) -> None:
    """A line a group, then its causes, members, partitions and findings."""
    output.table(
        ["group", "cluster", "rebalances", "in an hour", WHEN],
        [(g.group_id, g.cluster_id, g.rebalances, g.in_an_hour, stretch(g.first, g.last)) for g in answer.groups],
    )
    for group in answer.groups:
        _tell_storm(output, group)


def _tell_storm(output: Output, group: Storm) -> None:
    times = "rebalance" if group.rebalances == 1 else f"rebalances in {length(group.last - group.first)}"
    output.title(f"{group.group_id} (cluster {group.cluster_id}): {group.rebalances:,} {times}")
    if group.looked_at < group.rebalances:
        output.line(f"causes of the last {group.looked_at:,}:")
    kinds = (
        ("causes", group.causes),
        ("members", group.members),
        ("partitions", group.partitions),
        ("findings", group.findings),
    )
    for name, shares in kinds:
        if shares:
            output.line(f"{name + ':':11} {_shares(shares)}")


def _shares(shares: Iterable[Share]) -> str:
    return ", ".join(f"{share.what} {share.times:,}" for share in shares)


def tell_skew(output: Output, answer: Skews) -> None:
    """A line a group, then its members."""
    weighed = any(group.most_weight is not None for group in answer.groups)
    heads = ["group", "cluster", "assignor", "members", "idle", "most", "least"]
    rows: list[tuple[object, ...]] = [
        (g.group_id, g.cluster_id, g.assignor, g.members, g.idle, g.most, g.least) for g in answer.groups
    ]
    if weighed:
        heads += ["heaviest", "lightest"]
        rows = [(*row, g.most_weight, g.least_weight) for row, g in zip(rows, answer.groups, strict=True)]
    output.table(heads, rows)
    for group in answer.groups:
        if group.most > group.least or weighed:
            _tell_loads(output, group)


def _tell_loads(output: Output, group: Skew) -> None:
    output.title(f"{group.group_id} (cluster {group.cluster_id}), {iso(group.observed_at)}  [{group.snapshot_id}]")
    short = shortened(load.member_id for load in group.loads)
    shown: list[Load] = list(group.loads)
    if len(shown) > 2 * MEMBERS_SHOWN:
        shown = [*shown[:MEMBERS_SHOWN], *shown[-MEMBERS_SHOWN:]]
    weighed = group.most_weight is not None
    output.table(
        ["member", "partitions", *(["weight"] if weighed else []), "which"],
        [
            (short[each.member_id], len(each.partitions), *([each.weight] if weighed else []), spans(each.partitions))
            for each in shown
        ],
    )
    if len(shown) < len(group.loads):
        output.line(f"... and {len(group.loads) - len(shown):,} members between them (--json has all)")
    if group.unweighted:
        output.line(f"{group.unweighted:,} partitions have no weight in the file: they count as 0")


def tell_static(output: Output, answer: StaticMembers) -> None:
    """A line an instance id; what says that one is shared stands below."""
    output.table(
        ["group", "cluster", "instance", "takeovers", "moved", WHEN],
        [
            (m.group_id, m.cluster_id, m.instance_id, m.takeovers, m.moved, stretch(m.first, m.last))
            for m in answer.members
        ],
    )
    for member in answer.members:
        if member.shared is not None:
            output.line(f"- {member.group_id}: {member.shared}")


def tell_stickiness(output: Output, answer: Stickinesses) -> None:
    """A line a group and assignor."""
    output.table(
        ["group", "cluster", "assignor", "rebalances", "moves", "least", "excess", "worst", "worst at"],
        [
            (g.group_id, g.cluster_id, g.assignor, g.compared, g.moves, g.least, g.excess, g.worst, g.worst_at)
            for g in answer.groups
        ],
    )
    others = sum(group.others for group in answer.groups)
    bounds = sum(group.compared - group.certain for group in answer.groups)
    if bounds:
        output.line(
            f"in {bounds:,} of these rebalances least is a lower bound: they are in moves and least, not in excess"
        )
    if others:
        output.line(f"{others:,} more are not compared: their record is not what Kafka's own code gives (verdict)")


def tell_rack(output: Output, answer: RackShares) -> None:
    """A line a group, then its members with most to read from other racks."""
    output.table(
        ["group", "cluster", "local %", "local", "remote", "possible", "unknown"],
        [
            (g.group_id, g.cluster_id, round(100 * g.share), g.local, g.remote, g.possible, g.unknown)
            for g in answer.groups
        ],
    )
    for group in answer.groups:
        if group.remote:
            short = shortened(member.member_id for member in group.members)
            output.title(f"{group.group_id} (cluster {group.cluster_id}), {iso(group.observed_at)}")
            output.table(
                ["member", "rack", "local", "remote", "which"],
                [
                    (short[m.member_id], m.rack_id, m.local, len(m.remote), spans(m.remote))
                    for m in group.members[:MEMBERS_SHOWN]
                    if m.remote
                ],
            )
