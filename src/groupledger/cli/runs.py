"""`groupledger ingest`, `assign`, `callbacks` and `demo`: the jobs, each a run of the ledger or two."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from groupledger.cli.exits import Exit, exit_if
from groupledger.cli.options import DEFAULT_CONFIG, Job, takes
from groupledger.cli.output import Output, mark, plain, say
from groupledger.core.faults import Fault
from groupledger.core.moments import iso
from groupledger.core.rebalance.registry import AS_OF_4_0_0, NOT_OF_3_7_1

if TYPE_CHECKING:
    from datetime import datetime
    from types import FrameType

    from pyspark.sql import SparkSession

    from groupledger.pipeline.assign import AssignSummary
    from groupledger.pipeline.both_jobs import DemoSummary
    from groupledger.pipeline.frames import GroupVerdicts
    from groupledger.pipeline.ingest import IngestSummary
    from groupledger.pipeline.invocation import Account


SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Following:
    """The options of `--follow`: seconds between ingests, and tolerated consecutive failures."""

    every: float
    failures: int

    def run(self, job: Job, once: Callable[[], IngestSummary], report: Callable[[IngestSummary], bool]) -> bool:
        """Ingest until a signal, and report each run that read something; return whether `report` was ever true."""
        from groupledger.pipeline.ingest import follow

        def failed(fault: Fault) -> None:
            say(f"groupledger: {fault.message} [{fault.code}]; the next try is in {self.every:g} s")

        over = False
        with _asked_to_stop() as asked:
            job.output.line(f"following; an ingest every {self.every:g} s, until SIGTERM or Ctrl-C")
            for summary in follow(once, self.every, self.failures, time.monotonic, asked.wait, failed):
                if not summary.nothing_new and not summary.already_committed:
                    over |= report(summary)
        job.output.line("stopped; the next ingest goes on from here")
        return over


def takes_follow(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--follow`, `--every` and `--failures`; the command gets `following`, None without `--follow`."""

    @click.option("--follow", is_flag=True, help="Ingest repeatedly until SIGTERM or Ctrl-C.")
    @click.option(
        "--every", type=click.FloatRange(min=0), metavar="SECONDS", help="With --follow: time between ingests. [60]"
    )
    @click.option(
        "--failures",
        type=click.IntRange(min=0),
        metavar="N",
        help="With --follow: tolerated consecutive failures. [10]",
    )
    @functools.wraps(command)
    def run(*arguments: Any, follow: bool, every: float | None, failures: int | None, **options: Any) -> Any:
        if not follow and (every is not None or failures is not None):
            raise click.UsageError("--every and --failures go with --follow")
        following = Following(60 if every is None else every, 10 if failures is None else failures) if follow else None
        return command(*arguments, following=following, **options)

    return run


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Return an event that SIGTERM and SIGINT set: current work is finished first. A second signal acts as usual."""
    asked = threading.Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, signal.default_int_handler)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


takes_max_quarantined = click.option(
    "--max-quarantined", type=click.IntRange(min=0), metavar="N", help="Exit with 3 on more rejected rows than this."
)


@click.command(short_help="Read the configured sources into the ledger.")
@takes_follow
@takes_max_quarantined
@takes("run_id", "timings", "bootstrap", "config")
def ingest(
    job: Job, *, following: Following | None, run_id: str | None, timings: bool, max_quarantined: int | None
) -> None:
    """Read the offsets log, topic listings and snapshot tables named under `sources`; account for every record.

    The ledger is made if there is none. Known input is recognised: the same files again are the same run, and change
    nothing. A running cluster is read from where its last ingest stopped.

    \b
    groupledger ingest                           # as configured
    groupledger ingest --bootstrap host:9092     # this cluster, into `ledger`
    groupledger ingest --follow                  # again each minute
    """
    from groupledger.config.settings import CLUSTERS
    from groupledger.pipeline.cluster import require_answers
    from groupledger.pipeline.ingest import ingest as run
    from groupledger.pipeline.reading import require_there

    if following is not None and run_id is not None:
        raise click.UsageError("--run-id names one run, and --follow makes many; leave one of them out")
    job = job.override({"limits.max_quarantined": max_quarantined})
    if not job.config.sources:
        place = job.config_file or f"the configuration (there is no {DEFAULT_CONFIG} here)"
        expected = "some there (`groupledger new-config` writes a file to fill in), or --bootstrap HOST:PORT"
        raise Fault("NO_SOURCES", f"nothing to read: {place} names no sources; expected {expected}")
    if job.paths_are_here and run_id is None:  # a run that was committed needs its sources no more
        require_there(job.config.sources)
    clusters = [source for source in job.config.sources if source.kind in CLUSTERS]
    if clusters:
        with job.output.status("asking the cluster"):
            require_answers(clusters, time.perf_counter)
    spark = job.spark()
    _make_ledger(job, spark)
    job.warn_of_writers(spark)

    def once() -> IngestSummary:
        with job.output.status("reading and folding the sources") as doing:
            return run(spark, job.place(), job.config, job.invocation(run_id, doing))

    if following is None:
        summary = once()
        print_ingest(job.output, summary)
        job.output.line(f"the ledger: {job.place()}")
        over = _finished(job, summary, ingest_json(summary), timings=timings)
    else:
        over = following.run(job, once, functools.partial(_turn, job, timings=timings))
    exit_if(over, Exit.QUARANTINE)


@click.command(short_help="Run an assignor over recorded groups; keep the results.")
@takes("assignor", "scenario")
@click.option("--snapshots", type=click.Choice(["latest", "every"]), help="Which snapshots of each group.")
@click.option("--whole", is_flag=True, help="With latest: compute the groups without newer facts, too.")
@takes_max_quarantined
@takes("run_id", "timings", "config")
def assign(
    job: Job,
    *,
    assignor: str | None,
    scenario: str | None,
    snapshots: str | None,
    whole: bool,
    run_id: str | None,
    timings: bool,
    max_quarantined: int | None,
) -> None:
    """Recompute the recorded rebalances, or compute what another assignor would have done, and commit it as one run.

    --assignor recorded is each group's own. The results of another have its name as their scenario.
    Of the latest snapshots it computes those of groups with newer facts than the scenario's last run; the results of
    the others stand.

    \b
    groupledger assign                                      # as configured
    groupledger assign --snapshots every                    # all of history
    groupledger assign --assignor cooperative-sticky        # what if
    """
    from groupledger.pipeline.assign import assign as run
    from groupledger.pipeline.replays import scenario_of

    what_if = scenario_of(assignor, "") if assignor not in (None, "recorded") else None
    job = job.override(
        {
            "assign.assignor": assignor,
            "assign.scenario": scenario or what_if,
            "assign.snapshots": snapshots,
            "limits.max_quarantined": max_quarantined,
        }
    )
    spark = job.spark_for_ledger(assigns=True)
    job.warn_of_writers(spark)
    with job.output.status("computing") as doing:
        summary = run(spark, job.config, job.invocation(run_id, doing), whole=whole)
    print_assign(job.output, summary)
    exit_if(_finished(job, summary, plain(summary), timings=timings), Exit.QUARANTINE)


def _make_ledger(job: Job, spark: SparkSession) -> None:
    """Create the ledger if it is missing, and say where, and which one is nearby."""
    from groupledger.core.ledger_version import ledgers_near
    from groupledger.sinks.ledger_tables import init, require_lasting_catalog, stands
    from groupledger.tables import RUNS

    require_lasting_catalog(spark, job.place())
    if not stands(spark, job.place(), RUNS):
        with job.output.status("making the tables"):
            near = ledgers_near(job.place().path or "catalog://")
            init(spark, job.place())
        say(f"made a new ledger at {job.place()}{f' ({near[0]} is nearby: was that meant?)' if near else ''}")


def _turn(job: Job, summary: IngestSummary, *, timings: bool) -> bool:
    """Report one run of many; return whether it is over the limit."""
    print_turn(job.output, summary, job.invocation(None).now())
    return _finished(job, summary, ingest_json(summary), timings=timings)


def _finished(job: Job, summary: IngestSummary | AssignSummary, result: Mapping[str, Any], *, timings: bool) -> bool:
    """Print the JSON line and the timings; return whether the committed run is over the limit."""
    if timings:
        print_timings(job.output, summary.timings)
    limit = job.config.limits.max_quarantined
    over = summary.quarantined > limit
    job.done(result, "quarantine-over-limit" if over else "done")
    if over:
        text = f"{summary.quarantined} rejected; limits.max_quarantined is {limit}: see `groupledger show --quarantine`"
        say(f"groupledger: {text}{_one_rejected(job, result['attempt_id'])} [QUARANTINE_OVER_LIMIT]")
    return over


def _one_rejected(job: Job, attempt_id: str) -> str:
    """Return one of what a run rejected, with its reason; its file and line where it was a line."""
    from groupledger.answers.at_a_glance import one_rejected

    found = one_rejected(job.reader(), attempt_id)
    return "" if found is None else f"; such as {found}"


# Print what a run did, in tables: the account of every record, each group's verdicts, the timings.

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

UNLESS = ", unless bucket neighbours compete"
CLASSES = ("used", "unused", "tombstones", "quarantined")
SHOWN = (*CLASSES, "listings")
TURN_TABLES = ("group_snapshots", "ownership_changes", "topic_snapshots")
"""The tables whose new rows appear in the line of one ingest of many."""


def print_ingest(output: Output, summary: IngestSummary) -> None:
    """Print the account of an ingest."""
    if summary.nothing_new:
        output.line(f"nothing new since run {summary.run.run_id} (commit {summary.run.sequence})")
        return
    output.title(run_title("ingest", summary.run.run_id, already_committed=summary.already_committed))
    print_accounts(output, summary.accounts)
    print_rows(output, summary.rows)
    for cluster_id, left in summary.left.items():
        if left:
            output.line(f"{left:,} offsets of cluster {cluster_id} are left for the next run (max_records)")


def print_turn(output: Output, summary: IngestSummary, now: datetime) -> None:
    """Print one ingest of many as a line per cluster: time, number of records, what became of them."""
    run = summary.run
    for each in summary.accounts:
        read = _counts({"duplicates": each.duplicates, "quarantined": sum(each.quarantined.values())})
        rows = _counts({name: number for name, number in summary.rows.items() if name in TURN_TABLES and number})
        text = f"{each.records:,} records ({read})" + (f"; {rows}" if rows else "")
        output.line(f"{iso(now)} {run.run_id} {each.cluster_id}: {text}")


def ingest_json(summary: IngestSummary) -> dict[str, Any]:
    """Return the summary for a program: which run, the account of every record, rows by table.

    If there was nothing new, `run_id` is that of the last run, without other details of it.
    """
    if summary.nothing_new:
        return {"run_id": summary.run.run_id, "nothing_new": True, "timings": summary.timings}
    return {
        "run_id": summary.run.run_id,
        "attempt_id": summary.run.attempt_id,
        "already_committed": summary.already_committed,
        "nothing_new": False,
        "left": summary.left,
        "accounts": [{**plain(each), "balanced": each.balanced} for each in summary.accounts],
        "rows": summary.rows,
        "quarantined": summary.quarantined,
        "result_digest": summary.run.result_digest,
        "timings": summary.timings,
    }


def print_assign(output: Output, summary: AssignSummary) -> None:
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


def print_rows(output: Output, rows: Mapping[str, int]) -> None:
    """Print the rows of each table that has any."""
    output.line(f"rows written: {_counts({name: number for name, number in rows.items() if number}) or 'none'}")


def print_accounts(output: Output, accounts: Sequence[Account]) -> None:
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


def print_verdicts(output: Output, groups: Sequence[GroupVerdicts]) -> None:
    """Print one line per group: its generations, assignors, members, and agreement with the record."""
    columns = ["group", "type", "generations", "assignor", "members", "equal", "recomputed against recorded"]
    rows = []
    for group in groups:
        assignors, equal, counts = ", ".join(group.assignors), _equal(group.verdicts), _counts(group.verdicts)
        own = group.group_id, group.group_type, _span(group)
        rows.append((*own, assignors or None, group.members, equal, counts or None))
    output.table(columns, rows)


def _equal(verdicts: Mapping[str, int]) -> str | None:
    """Return `10/10` and a mark: equal results among the comparable ones; a different valid answer is no error."""
    from groupledger.answers.audit import SAME

    counts = Counter[str]()
    for name, number in verdicts.items():
        counts[_plain(name)] += number
    equal, invalid = sum(counts[name] for name in SAME), counts["invalid"]
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


def print_timings(output: Output, timings: Mapping[str, float]) -> None:
    """Print seconds by stage, in order, and their sum."""
    output.title("timings")
    output.table(["stage", "seconds"], [*timings.items(), ("together", sum(timings.values()))])


MOST_HOURS = 366 * 24


@click.command(short_help="Write members' calls, and KIP-429's metrics, to tables.")
@click.option(
    "--hours", type=click.IntRange(1, MOST_HOURS), default=24, show_default=True, help="Length of the metrics' windows."
)
@takes("run_id", "timings", "config")
def callbacks(job: Job, *, hours: int, run_id: str | None, timings: bool) -> None:
    """Derive from all recorded history which listener and assignor calls each member of a classic group got, and
    KIP-429's client metrics by window. Both belong to one run, whose rows replace those of the previous run.

    \b
    groupledger callbacks --hours 1
    """
    from groupledger.pipeline.call_tables import keep_calls

    spark = job.spark_for_ledger()
    with job.output.status("deriving calls"):
        summary = keep_calls(spark, job.config, job.invocation(run_id), hours)
    job.output.title(run_title(job.name, summary.run_id, already_committed=summary.already_committed))
    print_rows(job.output, summary.rows)
    if timings:
        print_timings(job.output, summary.timings)
    job.done(plain(summary))


NEXT = (
    "show",
    "show java-cooperative-sticky --cluster dev",
    "show java-cooperative-sticky --generation 4",
    "who orders-4 --at 2026-11-21T12:09Z --cluster dev",
    "timeline java-cooperative-sticky --cluster dev",
    "show --findings --cluster edge",
    "assign --assignor cooperative-sticky --snapshots every",
)
"""Commands to try on the demo's ledger."""


@click.command(short_help="Run the whole pipeline on four captured logs.")
@takes("timings", "sample")
def demo(job: Job, *, timings: bool) -> None:
    """Run init, ingest and assign on logs captured from a real broker, in one Spark session, and print a summary.

    A second run finds its work committed and shows the same.
    """
    from groupledger.pipeline.both_jobs import demo as run

    spark = job.spark()
    with job.output.status("starting") as telling:
        summary = run(spark, job.config, lambda: job.invocation(None, telling), telling)
    print_demo(job, summary)
    if timings:
        stages = (("ingest", summary.ingest.timings), ("assign", summary.assign.timings))
        named = {f"{name}: {stage}": seconds for name, of in stages for stage, seconds in of.items()}
        print_timings(job.output, named)
    job.done({"ingest": ingest_json(summary.ingest), "assign": summary.assign, "groups": summary.groups})


def print_demo(job: Job, summary: DemoSummary) -> None:
    """Print the account of the records, the groups, the verdicts, and what to try next."""
    from groupledger.pipeline.frames import total

    output = job.output
    ingested, computed = summary.ingest, summary.assign
    repeated = ingested.already_committed and computed.already_committed
    output.title("Every record accounted for" + (" (already committed: nothing was done again)" if repeated else ""))
    print_accounts(output, ingested.accounts)
    cluster = job.config.cluster_id
    output.title(f"Groups of cluster {cluster}: what was recorded, and whether we compute the same")
    print_verdicts(output, [group for group in summary.groups if group.cluster_id == cluster])
    output.title(f"All {computed.groups_in:,} recorded states of all {len(ingested.accounts)} clusters")
    explain_verdicts(output, total(summary.groups))
    output.title("Next")
    output.line(f"The ledger is at {job.place()}: Delta tables, each with comments on its columns. Try:")
    for command in NEXT:
        output.line(f"    groupledger {command} --ledger {job.config.ledger.location}")
