"""Declare every setting of groupledger once: type, default, allowed values, and meaning.

`docs/reference/configuration.md` and `template.yaml` are held against this module by a test. Loading needs no engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass
from typing import Any

from groupledger.core.custom.assignor_names import SOLVED_ALONE, may_be_custom
from groupledger.core.custom.custom_group import MEMORY_MB, SECONDS, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.log.lines import FIELDS
from groupledger.core.rebalance.registry import BY_CLASS, BY_NAME, called

ASSIGNORS = ("recorded", *BY_NAME)
SNAPSHOTS = "snapshots"
KAFKA, ADMIN, SEGMENTS, TABLE, DELTA = "kafka", "admin", "segments", "offsets-table", "offsets-delta"
"""Kinds of sources: a running cluster, its log and its topics; its groups as they are described; segments of the
log from a broker's disk; a table of the log by its name in the session's catalog; and a Delta table by its folder."""
OFFSETS = ("offsets-jsonl", "offsets-parquet", DELTA, TABLE)
"""Kinds of sources that hold records of the log, a row or a line each."""
CLIENT_READER, SPARK_READER = "confluent-kafka", "spark"
"""Who fetches the records of a running cluster's log."""
JUDGED = ("recorded", "baseline")
"""Scenarios that record the past: the steps to the record, and the verdicts on it."""
CLUSTERS = (KAFKA, ADMIN)
"""Kinds of sources that are a running cluster."""
SOURCE_KINDS = (*OFFSETS, SEGMENTS, "topics-jsonl", SNAPSHOTS, *CLUSTERS)
MEMBERSHIPS = (
    *("cluster_id", "group_id", "observed_at", "member_id", "topics", "owned", "generation", "rack", "member_order"),
    *("group_instance_id", "client_id", "host", "user_data", "assignor", "topic", "partitions", "racks", "topic_id"),
)
"""Columns of a table of memberships, and of its topics (`tables.facts`)."""
KEYS_OF_KINDS = {
    "table": (TABLE, SNAPSHOTS),
    "topics": (SNAPSHOTS,),
    **dict.fromkeys(("bootstrap", "options", "timeout_seconds"), CLUSTERS),
    **dict.fromkeys(("reader", "max_records"), (KAFKA,)),
    "offset_commits": (*OFFSETS, KAFKA, SEGMENTS),
    "columns": (*OFFSETS, SNAPSHOTS),
}
"""Keys of a source that only some kinds have."""
SNAPSHOT_FORMATS = ("parquet", "delta", "json", "csv")
PROFILES = ("small", "local", "cluster")
RETAINED = (
    *("log_records", "quarantine", "assignments", "rebalances", "violations"),
    *("group_snapshots", "member_snapshots", "ownership_changes", "coverage", "callbacks", "metrics"),
)


class ConfigFault(Fault):
    """An unusable configuration: which key, where, what it is, what is allowed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on a value beyond its type: `allows(value)`, and the same in words."""

    words: str
    allows: Callable[[Any], bool]
    names: tuple[str, ...] = ()  # where only these are allowed: a complaint names the nearest
    read: Callable[[Any], Any] = lambda value: value  # another form of the same value
    code: str = "CONFIG_INVALID"


def one_of(*names: str) -> Rule:
    """Allow exactly one of these words."""
    return Rule("one of " + ", ".join(names), lambda value: value in names, names)


def names_of(*names: str) -> Rule:
    """Allow names and values, with no other names than these."""
    return Rule(f"names and values; names: {', '.join(names)}", lambda name: name in names, names)


def at_least(least: int) -> Rule:
    """Allow a whole number that is not smaller."""
    return Rule(f"a whole number >= {least:,}", lambda value: value >= least)


def matching(pattern: str, words: str) -> Rule:
    """Allow a text that has this form from end to end."""
    return Rule(words, lambda value: re.fullmatch(pattern, value) is not None)


CLUSTER = matching(r"[A-Za-z0-9._-]{1,200}", "1 to 200 of A-Z a-z 0-9 . _ -")
TRUTH = Rule("true or false", lambda value: isinstance(value, bool))
NOT_EMPTY = Rule("a text that is not empty", lambda value: value.strip() != "")
ASSIGNOR = Rule(
    f"one of {', '.join(ASSIGNORS)}; or module:function, or an entry point of groupledger.assignors; {SOLVED_ALONE}",
    lambda value: value in ASSIGNORS or may_be_custom(value),
    (*ASSIGNORS, *BY_CLASS),
    called,
    "UNKNOWN_ASSIGNOR",
)
"""One of ours, or a custom one; the command that runs it checks whether it can be imported."""


def key(doc: str, rule: Rule | None = None, default: Any = MISSING) -> Any:
    """Declare one key of a section: its meaning, the rule for its value, and its default; required without one."""
    metadata = {"doc": doc, "rule": rule}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    if isinstance(default, type) and is_dataclass(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """Where the Delta tables are: exactly one of the two."""

    location: str | None = key(
        "Folder of the tables, one folder per table; a path or a URL that Spark can write.", NOT_EMPTY, None
    )
    catalog: str | None = key(
        "Catalog and schema of the tables instead of a folder, such as main.kafka_ledger.",
        matching(r"[\w-]+(\.[\w-]+)?", "schema or catalog.schema, each of letters, digits, _ and -"),
        None,
    )
    storage_options: Mapping[str, str] = key(
        "How delta-rs logs in to the object store of `location`, such as aws_access_key_id; use ${env:NAME} and "
        "${file:PATH} for secrets. Empty: from spark.conf's fs.s3a, fs.azure and fs.gs, then from the environment.",
        None,
        {},
    )
    shared: bool = key(
        "The location is a mount that all machines of the Spark cluster share, such as NFS; false: a local path is "
        "refused where Spark's executors run on other machines.",
        TRUTH,
        False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One input of `ingest`."""

    kind: str = key(
        "What is read: the raw offsets log, segments of it from a broker's disk, a topic listing, snapshot tables, or "
        "a running cluster (kafka; or admin, which describes its groups if the log may not be read).",
        one_of(*SOURCE_KINDS),
    )
    path: str | None = key(
        "File or folder; for snapshots one table of memberships, or the folder that holds group_snapshots and the "
        "others; for segments a broker's "
        "log.dirs, or one __consumer_offsets-N of it; not for kafka, admin and offsets-table.",
        NOT_EMPTY,
        None,
    )
    table: str | None = key(
        "Table or view by its name in the Spark session's catalog, such as bronze.consumer_offsets; only for "
        "offsets-table, and for snapshots a table of memberships.",
        NOT_EMPTY,
        None,
    )
    topics: str | None = key(
        "Table of partition counts beside memberships: a path beside path, a name beside table; only for snapshots.",
        NOT_EMPTY,
        None,
    )
    format: str = key("Format of the tables; only for the kind snapshots.", one_of(*SNAPSHOT_FORMATS), "parquet")
    cluster_id: str | None = key(
        "Id of the cluster that this input comes from; null: the cluster_id of the whole file.", CLUSTER, None
    )
    offsets_partitions: int | None = key(
        "Partition count of the cluster's __consumer_offsets, used to detect stray records; null: inferred from its "
        "groups.",
        at_least(1),
        None,
    )
    columns: Mapping[str, str] = key(
        "Columns of a table, or keys of the lines, under other names, such as {offset: kafka_offset}; a.b is field b "
        "of struct a; only for kinds that begin with offsets, and for memberships (snapshots).",
        names_of(*FIELDS, *MEMBERSHIPS),
        {},
    )
    glob: bool = key("Expand * ? [ ] { } in the path; false: take them literally.", TRUTH, False)
    bootstrap: str | None = key(
        "Brokers of a cluster, host:port separated by commas; only for kafka and admin.", NOT_EMPTY, None
    )
    options: Mapping[str, str] = key(
        "Options of the Kafka client; use ${env:NAME} and ${file:PATH} for secrets; only for kafka and admin.", None, {}
    )
    timeout_seconds: int = key(
        "How long to wait for one response of the cluster, and for a read to progress; only for kafka and admin.",
        at_least(1),
        30,
    )
    reader: str = key(
        "What fetches the records: confluent-kafka in Spark's Python workers, or Spark's own Kafka source, which "
        "needs its jars; only for kafka.",
        one_of(CLIENT_READER, SPARK_READER),
        CLIENT_READER,
    )
    max_records: int | None = key(
        "Most offsets that one run reads, divided among the log's partitions; null: all; only for kafka.",
        at_least(1),
        None,
    )
    offset_commits: bool | None = key(
        "Keep records of offset commits, the bulk of the log; false: count them and leave them out; null: true for "
        "files and tables, false for clusters and segments; only for sources of the log.",
        TRUTH,
        None,
    )

    @property
    def jar_sets(self) -> tuple[str, ...]:
        """Return the sets of jars that it needs in addition to those of every session (`engine.jars`)."""
        return ("kafka-source",) if self.reader == SPARK_READER else ()

    @property
    def keeps_offset_commits(self) -> bool:
        """Return whether records of offset commits are kept."""
        return self.kind in OFFSETS if self.offset_commits is None else self.offset_commits

    @property
    def place(self) -> str:
        """Return where it is: a path, a table's name, or the brokers of a cluster."""
        return self.path or self.table or self.bootstrap or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideSettings:
    """Another assignor for some groups."""

    groups: str = key("Group ids, * for any text and ? for one character, such as payments-*.", NOT_EMPTY)
    assignor: str = key("The assignor of these groups.", ASSIGNOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignSettings:
    """What `assign` computes."""

    assignor: str = key("The assignor to run; recorded: the one that each group used.", ASSIGNOR, "recorded")
    overrides: tuple[OverrideSettings, ...] = key("Other assignors by group; the first match applies.", None, ())
    scenario: str = key(
        "Name of the results; recorded is reserved: no assignor runs, and the step goes from held to recorded.",
        matching(r"[a-z0-9][a-z0-9._-]{0,63}", "up to 64 of a-z 0-9 . _ - starting with a letter or digit"),
        "baseline",
    )
    snapshots: str = key(
        "Which snapshots of each group; latest: the last one, of groups with facts that the run before did not know.",
        one_of("latest", "every"),
        "latest",
    )
    coordinator: str = key(
        "The server-side assignor used to judge KIP-848 targets if members request none: the first in the broker's "
        "list.",
        one_of("uniform", "range"),
        "uniform",
    )
    carried: bool = key(
        "Replay the whole history under the assignor: members own what it gave them at the previous snapshot (true), "
        "or what was recorded there (false); true needs snapshots: every.",
        TRUTH,
        False,
    )
    attribute: bool = key(
        "In the scenario baseline, find the client library whose assignor gave a record that differs from the answer "
        "of Kafka's; false: do not, which saves most of the time where clients are not Java's.",
        TRUTH,
        True,
    )
    mode: str = key(
        "Form of the step. kip: all sets of KIP-429, and what-ifs settle in two rounds; as-kafka: as Kafka's client.",
        one_of("as-kafka", "kip"),
        "as-kafka",
    )

    @property
    def custom_assignors(self) -> tuple[str, ...]:
        """Return the names of assignors that are not ours, each once: only these are ever imported."""
        named = {self.assignor, *(override.assignor for override in self.overrides)}
        return tuple(sorted(named - set(ASSIGNORS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits on hostile or broken input; what exceeds one is quarantined, and the rest is processed."""

    max_quarantined: int = key(
        "Rejected records and groups a run may have before it ends with exit code 3.", at_least(0), 0
    )
    max_record_bytes: int = key("Bytes of one record's value.", at_least(1), 16_777_216)
    max_id_bytes: int = key("Bytes of a group, member, client, topic or instance id in UTF-8.", at_least(1), 4_096)
    max_members_per_group: int = key("Members of one group.", at_least(1), 100_000)
    max_partitions_per_group: int = key(
        "Partitions of all topics that one group subscribes to; also those that its members claim.",
        at_least(1),
        4_000_000,
    )
    custom_seconds: int = key(
        "Seconds a custom assignor may take for one group, and the import of its module.", at_least(1), SECONDS
    )
    custom_memory_mb: int = key("Memory of the process a custom assignor runs in, in MiB.", at_least(64), MEMORY_MB)

    @property
    def custom(self) -> CustomLimits:
        """Return the limits of custom assignors."""
        return CustomLimits(self.custom_seconds, self.custom_memory_mb)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long rows of one table are kept."""

    table: str = key(
        "Table whose old rows are deleted: all of log_records and quarantine; of other tables, those that no reader "
        "sees any more.",
        one_of(*RETAINED),
    )
    days: int = key("Days since the run that wrote them committed.", at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainSettings:
    """What `maintain` may do, and how long it waits first."""

    attempt_hours: int = key(
        "An attempt that began this long ago and has not committed is given up: its rows are deleted, it can no "
        "longer commit.",
        at_least(1),
        24,
    )
    lease_minutes: int = key(
        "How long a maintain blocks others without renewing its lease; then it counts as dead, and another may start.",
        at_least(1),
        60,
    )
    vacuum_hours: int = key(
        "How long files that no longer belong to a table are kept, for readers that have started and for time travel.",
        at_least(168),
        168,
    )
    file_mb: int = key("Size of the files that a table's rows are compacted into, in MiB.", at_least(1), 8)
    retention: tuple[RetentionSettings, ...] = key("Tables whose old rows are deleted.", None, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionSettings:
    """What `maintain --redact` replaces; the raw log and texts that may quote a name are removed in any case."""

    member_ids: bool = key("Member ids and group instance ids.", TRUTH, True)
    client_ids: bool = key("Client ids.", TRUTH, True)
    hosts: bool = key("Hosts of clients.", TRUTH, True)
    user_data: bool = key("User data of subscriptions, except the generation that claims depend on.", TRUTH, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """The Spark session. In the profile cluster only `conf` is used, on top of what spark-submit was given."""

    profile: str = key(
        "small: fast start, for up to about 100,000 records; local: one machine, long jobs; cluster: as submitted.",
        one_of(*PROFILES),
        "local",
    )
    master: str = key(
        "Master of the profiles small and local.",
        matching(
            r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[.+\]|spark://.+", "local[N], local[*] or spark://host:port"
        ),
        "local[*]",
    )
    driver_memory: str = key(
        "Heap of the driver in the profiles small and local.", matching(r"\d+[mg]", "as in 2g or 1500m"), "2g"
    )
    jars: str | None = key(
        "Folder for fetched jars; null: $GROUPLEDGER_JARS, else a folder in the user's cache.", NOT_EMPTY, None
    )
    conf: Mapping[str, str] = key("Any other Spark setting by its own name; overrides the profile's.", None, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration of a command or job."""

    cluster_id: str | None = key(
        "Id of the Kafka cluster, part of every identity in the ledger. Null: a kafka source asks its cluster.",
        CLUSTER,
        None,
    )
    ledger: LedgerSettings = key("Where the tables are.", None, LedgerSettings)
    sources: tuple[SourceSettings, ...] = key("What ingest reads, in this order.", None, ())
    assign: AssignSettings = key("What assign computes.", None, AssignSettings)
    limits: LimitSettings = key("Bounds on hostile or broken input.", None, LimitSettings)
    maintain: MaintainSettings = key("What maintain may do.", None, MaintainSettings)
    redaction: RedactionSettings = key("What maintain --redact replaces.", None, RedactionSettings)
    spark: SparkSettings = key("The Spark session.", None, SparkSettings)
    buckets: int | None = key(
        "Number of hash buckets of groups in a run, one UDF call each; null: derived from the number of groups.",
        at_least(1),
        None,
    )
