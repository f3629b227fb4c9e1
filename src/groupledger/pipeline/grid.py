"""`what-if --grid`: assignors times changes over the last state of all groups, in one Spark job, for an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.config import Config
from groupledger.config.loading import GridSettings
from groupledger.config.settings import ASSIGNORS
from groupledger.core.custom.assignor_names import find_all
from groupledger.core.faults import Fault
from groupledger.core.rebalance.step import Form
from groupledger.engine import bucket_rows as r
from groupledger.engine import grid_cells as engine
from groupledger.engine.buckets import bucket_count, parallelism
from groupledger.engine.envelope import repartition_by_id
from groupledger.engine.group_arrays import Calculation
from groupledger.pipeline.assign import LATEST, RECORDED, Extent, Facts, assign_input, catalogue, glob
from groupledger.sinks import attempts
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation, check
from groupledger.sinks.location import engine_errors_as_faults
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

GROUPS_A_CALL = 1_000
"""A call computes its groups once for each cell, so fewer groups keep a worker's memory small."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """One assignor under one change, over all groups that have members then. Sums but for the two counts of groups.

    `refused`: groups that the assignor gives no answer for; they are in no sum. `spread`: the most less the fewest
    partitions of a member. `least_moves` is a lower bound where it is not known exactly.
    """

    assignor: str
    change: str
    groups: int
    refused: int
    moves: int
    least_moves: int
    revoked: int
    unassigned: int
    spread: int
    two_rounds: int


@dataclass(frozen=True, slots=True)
class GridAnswer:
    """All cells, by assignor and change as the grid names them. `rows`: one a group and cell."""

    groups: int
    rows: int
    cells: tuple[GridCell, ...]


def grid(
    spark: SparkSession,
    config: Config,
    settings: GridSettings,
    *,
    groups: str | None = None,
    cluster: str | None = None,
    output: str | None = None,
) -> GridAnswer:
    """Compute every cell over the groups asked for (`groups` may have * and ?), write the rows as Parquet to `output`.

    Raises Fault: as `sinks.ledger_tables.check`; GRID_EMPTY where no group has members and an assignor to ask;
    UNKNOWN_TOPIC, UNKNOWN_RACK for a name that changes nothing; OUTPUT_EXISTS where `output` is there already.
    """
    location = LedgerLocation.of(config.ledger)
    with engine_errors_as_faults(location):
        check(spark, location)
        rows = _rows(spark, location, config, settings, (groups, cluster), members_too=output is not None).persist()
        try:
            found = {row[engine.CELL]: row.asDict() for row in rows.groupBy(engine.CELL).agg(*_sums()).collect()}
            if not found:
                what = "no group of consumers that was asked for has members in its last state"
                raise Fault("GRID_EMPTY", f"{what}: `groupledger show` lists groups and their states")
            if output is not None:
                _write(rows, settings, output)
        finally:
            rows.unpersist()
    names = GridCell.__slots__[2:]
    # a cell that no row is of has no groups left: all their members are gone
    sums = ([int(found.get(number, {}).get(name) or 0) for name in names] for number in count())
    cells = tuple(GridCell(*cell, *numbers) for cell, numbers in zip(_cells(settings), sums, strict=False))
    sizes = [cell["rows"] for cell in found.values()]
    return GridAnswer(groups=max(sizes), rows=sum(sizes), cells=cells)


def _rows(
    spark: SparkSession,
    location: LedgerLocation,
    config: Config,
    settings: GridSettings,
    asked: tuple[str | None, str | None],
    *,
    members_too: bool,
) -> DataFrame:
    """Return a row for each group and cell (`engine.grid_cells.OUTPUT`); `members_too`: with who has what."""
    seen = attempts.read_commits(spark, location)
    seen.require_no_redaction()
    group, cluster = asked

    def of(frame: DataFrame) -> DataFrame:
        frame = frame if cluster is None else frame.where(F.col(c.CLUSTER_ID) == cluster)
        return frame if group is None else frame.where(F.col(c.GROUP_ID).like(glob(group)))

    groups, members = (of(current(spark, location, each, seen.commits)) for each in (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS))
    # of a member whose own topics are not recorded, those of its group are taken, as `what-if` of one group does
    facts = Facts(groups.withColumn(c.SHARED_TOPICS, F.coalesce(c.SHARED_TOPICS, c.SUBSCRIBED_TOPICS)), members)
    assign = replace(config.assign, assignor=RECORDED, scenario="grid", snapshots=LATEST)
    number = facts.groups.select(c.CLUSTER_ID, c.GROUP_ID).distinct().count()
    tasks = parallelism(spark)
    buckets = max(bucket_count(number, tasks), -(-number // GROUPS_A_CALL))
    rows = assign_input(facts, assign, config.limits, Extent(buckets, None))
    custom = [each for each in settings.assignors if each not in ASSIGNORS]
    calculation = Calculation(
        "grid",
        Form(config.assign.mode),
        config.limits.max_partitions_per_group,
        tuple(find_all(custom, config.limits.custom).values()),
        topics=catalogue(current(spark, location, TOPIC_SNAPSHOTS, seen.commits), config.limits),
        attributes=False,
    )
    rows = repartition_by_id(rows, buckets, r.BUCKET)
    if any(each.lost_rack or each.topic or each.subscribe or each.unsubscribe for each in settings.changes):
        known = rows.mapInArrow(engine.names, engine.NAMES).toArrow()
        engine.require_known(settings.changes, known, calculation.catalogue)
    call = engine.Grid(settings.assignors, settings.changes, calculation, members=members_too).call()
    return rows.mapInArrow(call, engine.OUTPUT)


def _sums() -> list[Column]:
    refused = F.col(c.OUTCOME).isin("REJECTED", "NOT_RECOMPUTED")
    counted = ~refused & (F.col(c.OUTCOME) != "EMPTY")

    def total(value: Column) -> Column:
        return F.coalesce(F.sum(F.when(counted, value)), F.lit(0))

    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(counted).alias("groups"),
        F.count_if(refused).alias("refused"),
        *(total(F.col(name)).alias(name) for name in (c.MOVES, c.LEAST_MOVES, c.REVOKED, c.UNASSIGNED)),
        total(F.col(c.LOAD_MAX) - F.col(c.LOAD_MIN)).alias("spread"),
        F.count_if(counted & F.col(c.FOLLOW_UP)).alias("two_rounds"),
    ]


def _cells(settings: GridSettings) -> list[tuple[str, str]]:
    """Return assignor and change of each cell, by its number."""
    return [(assignor, change.words) for assignor in settings.assignors for change in settings.changes]


def _write(rows: DataFrame, settings: GridSettings, output: str) -> None:
    """Write the rows, with the words of their cell."""
    from pyspark.errors import AnalysisException

    assignors, changes = (F.array(*map(F.lit, words)) for words in zip(*_cells(settings), strict=True))
    place = F.col(engine.CELL) + 1
    named = F.element_at(assignors, place).alias("asked_assignor"), F.element_at(changes, place).alias("change")
    try:
        rows.select(*named, "*").write.mode("errorifexists").parquet(output)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        what = f"{output} is there already: name another folder, or remove it"
        raise Fault("OUTPUT_EXISTS", what) from error
