"""Print what a run did, in tables: the account of every record, each group's verdicts, the timings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from groupledger.cli.output import mark, plain
from groupledger.core.attributed import AS_OF_4_0_0, NOT_OF_3_7_1
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from groupledger.cli.output import Output
    from groupledger.pipeline.accounts import Account
    from groupledger.pipeline.assign import AssignSummary
    from groupledger.pipeline.ingest import IngestSummary
    from groupledger.pipeline.verdicts import GroupVerdicts

WORDS = {
    "exact": "equal to the recorded assignment",
    "equal-sets": "equal to it; the lists are in another order",
    "exact-older-topics": "equal, with the topics as they were before: the leader's view was older",
    "exact-newer-topics": "equal, with the topics as they were after: the leader's view was newer",
    "exact-recorded-topics": "equal, with as many partitions as the record has: no listing has the counts of that time",
    "topic-unknown-to-leader": "equal, but for a topic the leader did not know yet",
    "rewrite": "the same generation written again (a static member came back): nothing was computed",
    "carried-over": "converted while running: the assignment that it had in the other form; nothing was computed",
    "valid-different": "another answer that breaks no rule: the client library's own algorithm",
    NOT_OF_3_7_1: "another answer that breaks no rule, as sticky assignors of Java clients before 3.7.1 give, "
    "and the leader writes as such a client; or topics differed from all listings",
    "invalid": "breaks a rule any assignor must keep",
    "not-compared": "another assignor ran than the recorded one, or none",
    "no-members": "nothing to assign: a group is born, empty or deleted",
    "cannot-tell: bucket neighbours compete": "an order that the log does not show may have decided (KIP-848)",
    "cannot-tell: the group before is not known": "the log does not hold what it was computed from (KIP-848)",
    "cannot-tell: a regular expression subscribes": "the log lacks the record of its topics at that moment (KIP-848)",
    "cannot-tell: Kafka has no assignor of this name": "the record stands; `attribution` says whether one of another "
    "library gives it; assign.overrides can name a custom one",
    "cannot-tell: no assignor recorded": "the record stands; one can be named in assign.overrides",
    "cannot-tell: other protocol type": "no consumers, such as Connect: what was assigned is not known",
    "cannot-tell: a share group": "recorded; its coordinator's assignor is not recomputed here",
    "cannot-tell: a streams group": "recorded; its coordinator's assignor is not recomputed here",
    "cannot-tell: incomplete snapshot": "the log was cut here: no verdict rests on it",
    "cannot-tell: nothing recorded": "there is no assignment to compare with",
    "cannot-tell: the assignor fails on this input": "Kafka's own code fails on it, yet something was recorded",
    "cannot-tell: no partition counts": "no topic listing says how many partitions there were then",
}
"""The verdicts in words for a person; those that `meaning` composes, by what they begin with."""

EQUAL = {
    *("exact", "equal-sets", "exact-older-topics", "exact-newer-topics", "exact-recorded-topics"),
    "topic-unknown-to-leader",
}
UNLESS = ", unless bucket neighbours compete"
CLASSES = ("used", "unused", "tombstones", "quarantined")
SHOWN = (*CLASSES, "listings")
TOLD = ("group_snapshots", "ownership_changes", "topic_snapshots")
"""The tables whose new rows appear in the line of one ingest of many."""


def tell_ingest(output: Output, summary: IngestSummary) -> None:
    """Print the account of an ingest."""
    if summary.nothing_new:
        output.line(f"nothing new since run {summary.run.run_id} (commit {summary.run.sequence})")
        return
    output.title(run_title("ingest", summary.run.run_id, already_committed=summary.already_committed))
    tell_accounts(output, summary.accounts)
    tell_rows(output, summary.rows)
    for cluster_id, left in summary.left.items():
        if left:
            output.line(f"{left:,} offsets of cluster {cluster_id} are left for the next run (max_records)")


def tell_turn(output: Output, summary: IngestSummary, now: datetime) -> None:
    """Print one ingest of many as a line per cluster: time, number of records, what became of them."""
    run = summary.run
    for each in summary.accounts:
        read = _counts({"duplicates": each.duplicates, "quarantined": sum(each.quarantined.values())})
        rows = _counts({name: number for name, number in summary.rows.items() if name in TOLD and number})
        told = f"{each.records:,} records ({read})" + (f"; {rows}" if rows else "")
        output.line(f"{iso(now)} {run.run_id} {each.cluster_id}: {told}")


def ingest_json(summary: IngestSummary) -> dict[str, Any]:
    """Return the summary for a program: which run, the account of every record, rows by table.

    If there was nothing new, `run_id` is that of the last run, without other details of it.
    """
    if summary.nothing_new:
        return {"run_id": summary.run.run_id, "nothing_new": True, "timings": plain(summary.timings)}
    return {
        "run_id": summary.run.run_id,
        "attempt_id": summary.run.attempt_id,
        "already_committed": summary.already_committed,
        "nothing_new": False,
        "left": plain(summary.left),
        "accounts": [{**plain(each), "balanced": each.balanced} for each in summary.accounts],
        "rows": plain(summary.rows),
        "quarantined": summary.quarantined,
        "result_digest": summary.run.result_digest,
        "timings": plain(summary.timings),
    }


def tell_assign(output: Output, summary: AssignSummary) -> None:
    """Print what an assign computed, and how often it agrees with the record."""
    output.title(run_title("assign", summary.run_id, already_committed=summary.already_committed))
    outcomes = _counts({name: number for name, number in summary.outcomes.items() if number})
    output.line(f"scenario {summary.scenario}: {summary.groups_in:,} rebalances in; {outcomes or 'none'} out")
    if summary.since_run is not None:
        output.line(f"groups without newer facts keep the results of run {summary.since_run}")
    explain_verdicts(output, summary.verdicts)
    sums = {name: summary.sums.get(name, 0) for name in ("moves", "least_moves", "unassigned")}
    output.line(_counts({name.replace("_", " "): number for name, number in sums.items()}))


def run_title(kind: str, run_id: str, *, already_committed: bool) -> str:
    """Return the title of a run's summary."""
    return f"{kind} {run_id}" + (" (already committed: nothing changed)" if already_committed else "")


def tell_rows(output: Output, rows: Mapping[str, int]) -> None:
    """Print the rows of each table that has any."""
    output.line(f"rows written: {_counts({name: number for name, number in rows.items() if number}) or 'none'}")


def tell_accounts(output: Output, accounts: Sequence[Account]) -> None:
    """Print an account of every line and record: one line per cluster that adds up, then one per kind."""
    if any(account.arrived is not None for account in accounts):
        output.table(
            ["cluster", "lines in", "+ table rows", "= records", "+ topic listings", "+ blank"],
            [_arrived(account) for account in accounts],
        )
        output.line()
    output.table(
        ["cluster", "records in", "= used", "+ unused", "+ tombstones", "+ duplicates", "+ quarantined", "adds up"],
        [_account(account) for account in accounts],
    )
    kinds = sorted({(SHOWN.index(name), kind) for account in accounts for name, kind in _kinds(account)})
    rows = [[SHOWN[at], kind, *(_kinds(each).get((SHOWN[at], kind)) for each in accounts)] for at, kind in kinds]
    output.line()
    output.table(["", "kind of record", *(account.cluster_id for account in accounts)], rows)


def _arrived(account: Account) -> list[object]:
    listings = sum(account.listings.values())
    return [account.cluster_id, account.lines, account.rows, account.records, listings, account.blank]


def _account(account: Account) -> list[object]:
    kinds = _kinds(account)
    sums = {name: sum(number for (own, _), number in kinds.items() if own == name) for name in CLASSES}
    known = [sums["used"], sums["unused"], sums["tombstones"], account.duplicates, sums["quarantined"]]
    return [account.cluster_id, account.records, *known, mark(account.balanced)]


def _kinds(account: Account) -> dict[tuple[str, str], int]:
    """Count records by (class, kind or code)."""
    return {(name, kind): number for name in SHOWN for kind, number in getattr(account, name).items()}


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def tell_verdicts(output: Output, groups: Sequence[GroupVerdicts]) -> None:
    """Print one line per group: its generations, assignors, members, and agreement with the record."""
    output.table(
        ["group", "type", "generations", "assignor", "members", "equal", "recomputed against recorded"],
        [
            (
                group.group_id,
                group.group_type,
                _span(group),
                ", ".join(group.assignors) or None,
                group.members,
                _equal(group.verdicts),
                _counts(group.verdicts) or None,
            )
            for group in groups
        ],
    )


def _equal(verdicts: Mapping[str, int]) -> str | None:
    """Return `10/10` and a mark: equal results among the comparable ones; a different valid answer is no error."""
    counts = Counter[str]()
    for name, number in verdicts.items():
        counts[_plain(name)] += number
    equal, invalid = sum(counts[name] for name in EQUAL), counts["invalid"]
    compared = equal + invalid + counts["valid-different"] + counts[NOT_OF_3_7_1]
    if not compared:
        return None
    return f"{equal}/{compared}" + (f" {mark(not invalid)}" if invalid or equal == compared else "")


def _span(group: GroupVerdicts) -> str | None:
    return None if group.first is None else f"{group.first}-{group.last}"


def meaning(verdict: str) -> str:
    """Return a verdict in words."""
    words = WORDS.get(_plain(verdict), "")
    if AS_OF_4_0_0 in verdict:
        words += "; by the rule of uniform in Kafka 4.0.0, which the previews in 3.8 and 3.9 share"
    if verdict.endswith(UNLESS):
        words += "; but the log does not show an order that could have mattered"
    return words


def _plain(verdict: str) -> str:
    """Return what a composed verdict begins with."""
    if verdict.startswith(NOT_OF_3_7_1):
        return NOT_OF_3_7_1
    return verdict.removesuffix(UNLESS).removesuffix(AS_OF_4_0_0)


def explain_verdicts(output: Output, verdicts: Mapping[str, int]) -> None:
    """Explain each verdict that was given."""
    output.table(
        ["verdict", "rebalances", "meaning"], [(name, number, meaning(name)) for name, number in verdicts.items()]
    )


def tell_timings(output: Output, timings: Mapping[str, float]) -> None:
    """Print seconds by stage, in order, and their sum."""
    output.title("timings")
    output.table(["stage", "seconds"], [*timings.items(), ("together", sum(timings.values()))])
