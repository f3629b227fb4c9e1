"""`groupledger openmetrics`: print numbers by group for Prometheus and other readers of its formats."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from groupledger.cli.options import Job, takes
from groupledger.cli.output import print_exact
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_values

if TYPE_CHECKING:
    from groupledger.answers.gauges import Gauges, GroupGauges
    from groupledger.answers.scope import RequestedScope
    from groupledger.core.moments import Bound


PERIOD = timedelta(hours=24)
PREFIX = "groupledger"


@click.command(short_help="Print numbers by group for Prometheus.")
@takes("scope")
@click.option("--output", "file", metavar="FILE", help="Write to this file atomically; default: print.")
@takes("config")
def openmetrics(job: Job, *, asked: RequestedScope, file: str | None) -> None:
    """Print rebalances, moves, unowned partitions and findings by group, in OpenMetrics format.

    Counts cover a period, by default the 24 hours up to which the ledger is known;
    docs/guides/use/alerts-prometheus-cron.md explains each. They are not the table `metrics`, which holds the metrics
    of KIP-429's clients, derived by `callbacks`.

    \b
    groupledger openmetrics
    groupledger openmetrics --since 1h --output groupledger.prom
    """
    from groupledger.answers.gauges import gauges

    if asked.since is None:
        asked = replace(asked, since=_before(asked.until))
    with job.output.status("reading the ledger"):
        answer = gauges(job.reader(), asked)
    families = list(exported(answer))
    if file is not None:
        write_whole(Path(file), exposition(families))
        job.output.line(f"{sum(len(each.values) for each in families):,} samples in {file}")
    elif not job.output.as_json:
        print_exact(exposition(families).removesuffix("\n"))
    job.done({"file": file, "gauges": answer})


def _before(end: Bound | None) -> Bound:
    """Return the beginning of a period that ends there."""
    if end is None:
        return PERIOD
    return end + PERIOD if isinstance(end, timedelta) else end - PERIOD


def exported(answer: Gauges) -> Iterator[Gauge]:
    """Yield the numbers as families. Unknown values have no sample."""

    def of_groups(
        name: str,
        about: str,
        value: Callable[[GroupGauges], float | None],
        unit: str | None = None,
        both: Callable[[float, float], float] = operator.add,
    ) -> Gauge:
        values: dict[Labels, float] = {}
        for each in answer.groups:
            number = value(each)
            if number is not None:
                labels = _labels(cluster=each.cluster_id, group=each.group_id)
                # two names may be equal after a secret is hidden
                values[labels] = both(values[labels], number) if labels in values else number
        return Gauge(f"{PREFIX}_{name}", about, values, unit)

    yield of_groups("rebalances", "Rebalances in the period.", lambda of: of.rebalances)
    yield of_groups("partitions_given", "Times a partition was given to a member in the period.", lambda of: of.given)
    yield of_groups(
        "moves", "Partitions that went from member to member in the rebalances of the period.", lambda of: of.moves
    )
    yield of_groups("least_moves", "The fewest moves that these rebalances needed.", lambda of: of.least_moves)
    yield of_groups("members", "Members in the last state.", lambda of: of.members)
    yield of_groups("unowned_partitions", "Partitions of subscribed topics that nobody has now.", lambda of: of.unowned)
    yield of_groups(
        "oldest_unowned_seconds",
        "For how long nobody has had the oldest of them, as far as the group is known.",
        lambda of: of.oldest_unowned_seconds,
        "seconds",
        max,
    )
    yield of_groups(
        "unowned_since_timestamp_seconds",
        "Since when nobody has had the oldest of them, since 1970.",
        lambda of: None if of.unowned_since is None else of.unowned_since.timestamp(),
        "seconds",
        min,
    )
    findings: dict[Labels, float] = {}
    for each in answer.findings:
        labels = _labels(cluster=each.cluster_id, group=each.group_id, code=each.code, severity=each.severity.value)
        findings[labels] = findings.get(labels, 0) + each.records
    yield Gauge(f"{PREFIX}_findings", "Records of the period that break an invariant, by its code.", findings)
    yield from _of_clusters(answer)
    scope = answer.scope
    if scope.known_up_to is not None and scope.since is not None:
        length = max(0.0, (scope.end - scope.since).total_seconds())
        yield Gauge(f"{PREFIX}_period_seconds", "How long the period is.", {(): length}, "seconds")


def _of_clusters(answer: Gauges) -> Iterator[Gauge]:
    """Yield how current the ledger is, by cluster."""
    known = {_labels(cluster=each.cluster_id): each.known_up_to.timestamp() for each in answer.clusters}
    about = "Up to when the cluster is known: its log was read to the end, or up to the newest record read; since 1970."
    yield Gauge(f"{PREFIX}_known_up_to_timestamp_seconds", about, known, "seconds")
    newest = {_labels(cluster=each.cluster_id): each.last.timestamp() for each in answer.clusters}
    about = "When the newest record of any kind that was read was written, since 1970."
    yield Gauge(f"{PREFIX}_newest_record_timestamp_seconds", about, newest, "seconds")


def _labels(**labels: str) -> Labels:
    return tuple((name, without_values(text)) for name, text in labels.items())


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: to a temporary file next to it, then rename; a link to it is kept.

    The temporary name ends so that a collector of `*.prom` ignores it. Raises Fault("NOT_A_FILE").
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise Fault(
            "NOT_A_FILE", f"{path} is no regular file: expected one, or none yet; without --output it is printed"
        )
    if not path.parent.is_dir():
        raise Fault("NOT_A_FILE", f"there is no folder {path.parent} for {path.name}: make it first")
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(text.encode())
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


# The text format of OpenMetrics 1.0 for gauges, which Prometheus's older text format reads the same.
#
# Help has no quotation marks, since the two formats escape them differently; labels are escaped alike in both.

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of samples: a value for each set of labels. The name ends in the `unit`, if there is one."""

    name: str
    help: str
    values: Mapping[Labels, int | float]
    unit: str | None = None

    def __post_init__(self) -> None:
        """Check names and units, which are ours: a wrong one is a bug."""
        labels = {label for labels in self.values for label, _ in labels}
        assert all(_NAME.match(name) for name in (self.name, *labels))
        assert self.unit is None or self.name.endswith(f"_{self.unit}")
        assert not set('"\\\n') & set(self.help)


def exposition(gauges: Iterable[Gauge]) -> str:
    """Return all gauges as text, samples sorted by labels; it ends in `# EOF` and a line feed."""
    return "".join(f"{line}\n" for line in _lines(gauges))


def _lines(gauges: Iterable[Gauge]) -> Iterator[str]:
    for gauge in gauges:
        yield f"# TYPE {gauge.name} gauge"
        if gauge.unit is not None:
            yield f"# UNIT {gauge.name} {gauge.unit}"
        yield f"# HELP {gauge.name} {gauge.help}"
        for labels, value in sorted(gauge.values.items()):
            inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            yield f"{gauge.name}{{{inside}}} {value}" if inside else f"{gauge.name} {value}"
    yield "# EOF"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
