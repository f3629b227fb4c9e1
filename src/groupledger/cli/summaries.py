"""What a run did, in tables: the account of every record, each group's verdicts, where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.cli.output import mark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from groupledger.cli.output import Output
    from groupledger.pipeline.accounts import Account
    from groupledger.pipeline.assign import AssignSummary
    from groupledger.pipeline.ingest import IngestSummary
    from groupledger.pipeline.verdicts import GroupVerdicts

AGREE = ("exact", "equal-sets")
WORDS = {
    "exact": "equal to the recorded assignment",
    "equal-sets": "equal to it, in another order",
    "exact-older-topics": "equal, with the topics as they were before: the leader's view was older",
    "exact-newer-topics": "equal, with the topics as they were after",
    "topic-unknown-to-leader": "equal, but for topics the leader did not know yet",
    "rewrite": "the same generation written again (a static member came back): nothing was computed",
    "valid-different": "another answer, which breaks no rule: the client's own algorithm",
    "invalid": "breaks a rule any assignor must keep",
    "not-compared": "no assignor ran: the step from held to recorded",
}
"""The verdicts in words for a person; one that is not here explains itself."""


def tell_ingest(output: Output, summary: IngestSummary) -> None:
    """The account of an ingest."""
    output.title(_run_title("ingest", summary.run.run_id, already_committed=summary.already_committed))
    tell_accounts(output, summary.accounts)
    tell_rows(output, summary.rows)


def tell_assign(output: Output, summary: AssignSummary) -> None:
    """What an assign computed, and how often it agrees with the record."""
    output.title(_run_title("assign", summary.run_id, already_committed=summary.already_committed))
    outcomes = _counts({name: number for name, number in summary.outcomes.items() if number})
    output.line(f"scenario {summary.scenario}: {summary.groups_in:,} rebalances in; {outcomes or 'none'} out")
    explain_verdicts(output, summary.verdicts)
    sums = {name: summary.sums.get(name, 0) for name in ("moves", "least_moves", "unassigned")}
    output.line(_counts({name.replace("_", " "): number for name, number in sums.items()}))


def _run_title(kind: str, run_id: str, *, already_committed: bool) -> str:
    return f"{kind} {run_id}" + (" (already committed: nothing changed)" if already_committed else "")


def tell_rows(output: Output, rows: Mapping[str, int]) -> None:
    """Rows in each table, those with none left out."""
    output.line(f"rows written: {_counts({name: number for name, number in rows.items() if number}) or 'none'}")


def tell_accounts(output: Output, accounts: Sequence[Account]) -> None:
    """Every record accounted for, a line a cluster, with a mark that it adds up; then the kinds."""
    output.table(
        ["cluster", "records in", "used", "unused", "tombstones", "duplicates", "quarantined", "adds up"],
        [
            (
                account.cluster_id,
                account.records,
                sum(account.used.values()),
                sum(account.unused.values()),
                sum(account.tombstones.values()),
                account.duplicates,
                sum(account.quarantined.values()),
                mark(account.balanced),
            )
            for account in accounts
        ],
    )
    for account in accounts:
        output.line(f"{account.cluster_id}: {_kinds(account)}")


def _kinds(account: Account) -> str:
    classes = (("used", account.used), ("unused", account.unused), ("tombstones", account.tombstones))
    named = [(name, kinds) for name, kinds in (*classes, ("quarantined", account.quarantined)) if kinds]
    return "; ".join(f"{name} {_counts(kinds)}" for name, kinds in named) or "no records"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def tell_verdicts(output: Output, groups: Sequence[GroupVerdicts]) -> None:
    """A line a group: its generations, assignors, members, moves, and whether we agree with the record."""
    output.table(
        ["cluster", "group", "type", "generations", "assignor", "members", "moves", "recomputed = recorded"],
        [
            (
                group.cluster_id,
                group.group_id,
                group.group_type,
                _span(group),
                ", ".join(group.assignors) or None,
                group.members,
                group.moves,
                _counts(group.verdicts) or None,
            )
            for group in groups
        ],
    )


def _span(group: GroupVerdicts) -> str | None:
    return None if group.first is None else f"{group.first}-{group.last}"


def explain_verdicts(output: Output, verdicts: Mapping[str, int]) -> None:
    """What each verdict that was given means."""
    output.table(
        ["verdict", "rebalances", "meaning"], [(name, number, WORDS.get(name, "")) for name, number in verdicts.items()]
    )


def tell_timings(output: Output, timings: Mapping[str, float]) -> None:
    """Seconds by stage, in their order, and together."""
    output.title("timings")
    output.table(["stage", "seconds"], [*timings.items(), ("together", sum(timings.values()))])
