"""The one place where a Spark session is made.

In the profiles `small` and `local` the driver's JVM is ours: the jars are on its class path (nothing is resolved at a
start), and it maps the classes a job needs from an archive where `engine.archive` made one. Under spark-submit, and in
the profile `cluster`, the JVM is the submitter's, and so are its jars.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from groupledger.config.settings import SparkSettings
from groupledger.core.faults import Fault
from groupledger.core.secrets import SENSITIVE
from groupledger.core.spark_versions import release_of
from groupledger.engine import jars
from groupledger.engine.java import java, version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_LOCAL = {
    **DELTA,
    # Batches are cut by rows alone: to cut them by bytes, Spark measures every column again after each row (a fifth of
    # a job's time). A record of the log is bounded, and so are a thousand rows made of such.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # a byte that changed on disk is refused, not read
    # Not Spark's INT96: that has no statistics, and others read it as nanoseconds, which end in the year 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    # One job has hundreds of generated classes; Spark keeps 100, and compiles the others again in a session's next job.
    "spark.sql.codegen.cache.maxEntries": "3000",
    "spark.redaction.regex": f"(?i){SENSITIVE}",  # what Spark's pages, event logs and `SET` show of its settings
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "50",  # what a page would show that nobody opens, and a long session's heap is full of
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",  # no lookup of this machine's name
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",  # no Hive, no Derby files where the command was started
    "spark.sql.warehouse.dir": f"{tempfile.gettempdir()}/groupledger-warehouse",  # nor an empty `spark-warehouse`
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # files are looked up here, not in a job
    "spark.databricks.delta.snapshotPartitions": "1",  # the state of a small log in one task, not in fifty
    # Each commit to a table of at most 50 files would list them all in its checksum, and work out its whole state.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # or each part of a Column asks the JVM who wrote it
    "spark.sql.adaptive.coalescePartitions.enabled": "false",  # or small shuffles end on one core
}
CLASS_PATH = "spark.driver.extraClassPath"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_NO_DELTA = (
    "this Spark has no Delta on its class path: give spark-submit"
    ' --jars "$(python -m groupledger.engine.jars delta)", or use a cluster that has Delta 4'
)
_LOGGING = Path(__file__).with_name("log4j2.properties")
_SILENT = ("-Xlog:disable", "-Xlog:all=error:stderr")  # an archive that no longer fits is passed over without a word


class SessionFault(Fault):
    """No session can be had as the caller asked."""


def session(
    settings: SparkSettings, app_name: str, jvm_output: IO[bytes] | None = None, jar_sets: Sequence[str] = ()
) -> SparkSession:
    """Return the Spark session these settings describe; one that is active already is returned as it is.

    `jar_sets` are put on the class path of a JVM started here, beside those of Delta. `jvm_output` is an open file for
    all that such a JVM prints on its own: warnings, progress, stack traces; without it, the JVM shares this process's
    stdout and stderr. Raises JavaFault and JarsFault before a JVM is started, SPARK_MISSING and SPARK_UNSUPPORTED
    likewise; SessionFault: JVM_FAILED where it does not start, DELTA_MISSING where a submitted job was given no Delta.
    """
    release_of(jars.spark_version())
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    options = session_options(settings, submitted=submitted, jar_sets=jar_sets)
    from pyspark.sql import SparkSession  # 0.1 s, and not needed to explain a missing Java

    if jvm_output is not None and not submitted and "SPARK_REMOTE" not in os.environ:  # which needs no JVM here
        _start(options, app_name, jvm_output)
    builder = SparkSession.builder.appName(app_name)
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if submitted or settings.profile == "cluster":
        expect_delta(spark)
    return spark


def _start(options: Mapping[str, str], app_name: str, output: IO[bytes]) -> None:
    """Start the JVM and its Spark context, unless this process has one."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False).setAll(list(options.items())).setAppName(app_name)
    try:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise SessionFault("JVM_FAILED", f"the JVM for Spark does not start: {_first_error(output)}") from error
    SparkContext(conf=conf, gateway=gateway)


def _first_error(output: IO[bytes]) -> str:
    """Return the line in which Java says what it could not do."""
    output.seek(0)
    lines = [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if re.search("error|invalid|could not|unrecognized", line, re.IGNORECASE)]
    return (telling or lines[-1:] or ["it said nothing"])[0]


def session_options(settings: SparkSettings, *, submitted: bool, jar_sets: Sequence[str] = ()) -> dict[str, str]:
    """Every Spark setting of such a session, `jar_sets` as in `session`.

    What the user set under `spark.conf` wins; class paths and JVM options are joined to ours.
    """
    if settings.profile == "cluster":
        return dict(settings.conf)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers import this very package
    options = _LOCAL | {"spark.sql.shuffle.partitions": str(cores(settings.master))}
    if submitted:
        return options | dict(settings.conf)
    options |= {"spark.master": settings.master, "spark.driver.memory": settings.driver_memory}
    return _joined(options | _jvm_options(settings, jar_sets), settings.conf)


def cores(master: str) -> int:
    """How many tasks a local master runs at once; for another master the cores of this machine."""
    count = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if count is None or count[1] == "*":
        return os.cpu_count() or 1
    return int(count[1] or 1)


def class_archive(directory: Path | None = None) -> Path:
    """Where the archive of loaded classes for this Java, Spark and set of jars belongs (made by `engine.archive`)."""
    command = java().resolve()
    made_of = f"{command} {version(command)} {jars.spark_jars()} {jars.class_path('delta', directory)}"
    return jars.home(directory) / f"spark-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsa"


def _jvm_options(settings: SparkSettings, jar_sets: Sequence[str]) -> dict[str, str]:
    """Jars and flags of a driver that is still to be started."""
    java()
    directory = Path(settings.jars) if settings.jars else None
    flags = [f'-Dlog4j2.configurationFile="{_LOGGING}"', *_SILENT]
    archive = class_archive(directory)
    if archive.is_file():
        flags.append(f'-XX:SharedArchiveFile="{archive}"')
    if settings.profile == "small":
        # A short job ends before the second compiler pays. Without it Java makes room for 48 MB of compiled code only,
        # and a session that fills them stays uncompiled.
        flags += ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
    # Further jars behind Delta's: an archive of classes fits every class path that begins with its own.
    found = (jars.class_path(conf, directory) for conf in ("delta", *jar_sets))
    return {CLASS_PATH: os.pathsep.join(found), JAVA_OPTIONS: " ".join(flags)}


def _joined(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    joined = {**ours, **theirs}
    for name, separator in ((CLASS_PATH, os.pathsep), (JAVA_OPTIONS, " ")):
        joined[name] = separator.join(text for text in (ours.get(name), theirs.get(name)) if text)
    return joined


def expect_delta(spark: SparkSession) -> None:
    """Raise SessionFault("DELTA_MISSING") with the remedy, not a stack trace at the first table.

    A Spark with Delta looks for the table and says there is none; one without says in Java what class it lacks.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException

    try:
        _ = spark.read.format("delta").load("groupledger/no/such/table").schema
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_NOT_FOUND":
            return
        raise SessionFault("DELTA_MISSING", _NO_DELTA) from error
    except Py4JJavaError as error:
        raise SessionFault("DELTA_MISSING", _NO_DELTA) from error
