"""May several processes write to a ledger at once? What its store promises, and what our lock adds to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from groupledger.sinks import changes
from groupledger.sinks.location import LedgerLocation, local_folder
from groupledger.sinks.location import scheme as scheme_of
from groupledger.tables import RUNS

_SHARED = re.compile(
    r"nfs\d*|cifs|smb\w*|9p|fuse\w*(\..*)?|virtiofs|ceph|lustre|gpfs|beegfs|afs|glusterfs|ocfs2|gfs2|vboxsf"
)
"""Kinds of mounts whose locks may not reach other machines."""
_OWN_MACHINE = ("fuseblk",)
_S3 = ("s3", "s3a", "s3n")
_ONE_DRIVER = "S3SingleDriverLogStore"
_BY_DELTA = ("hdfs", "viewfs", "abfs", "abfss", "adl", "wasb", "wasbs", "gs")
"""Stores on which Delta's own log stores create a version once only."""
_ESCAPE = re.compile(r"\\([0-7]{3})")

MULTI_CLUSTER = (
    "for several: put io.delta:delta-storage-s3-dynamodb, of the version of Delta's other jars, on Spark's class path "
    "(spark.jars.packages), and set spark.delta.logStore.{}.impl: io.delta.storage.S3DynamoDBLogStore and "
    "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName: the DynamoDB table (keys tablePath and fileName, of type "
    "string) that they share"
)
MOUNTS = Path("/proc/mounts")


@dataclass(frozen=True, slots=True)
class Writers:
    """Whether several may write at once: why, or what to do."""

    several: bool
    detail: str
    advice: str = ""


def writers(scheme: str, file_system: str | None, log_store: str | None) -> Writers:
    """Judge a store by the scheme of its URL; a local one by its mount's kind, S3 by the log store that is set.

    >>> writers("file", "ext4", None).several, writers("s3a", None, None).several
    (True, False)
    """
    if scheme == "file":
        return _local(file_system or "unknown")
    if log_store is not None and _ONE_DRIVER not in log_store:
        return Writers(True, f"{scheme}: as its log store {log_store} promises")
    if scheme in _S3:
        detail = f"{scheme} with Delta's log store for one driver: a second writer's commit can be lost"
        return Writers(False, detail, f"let one process write at a time; {MULTI_CLUSTER.format(scheme)}")
    if scheme in _BY_DELTA:
        return Writers(True, f"{scheme}: Delta creates each version of a table once only")
    what = f"{scheme or 'an unknown store'}: Delta does not say whether two writers can both win a commit"
    return Writers(
        False, what, "let one process write at a time, or set a log store that says so (docs/operate/stores.md)"
    )


def writers_of(spark: SparkSession, location: LedgerLocation) -> Writers | None:
    """Judge the store of a ledger, as this session is configured; None through Spark Connect, which does not tell."""
    url = changes.table_url(spark, location, RUNS)
    if url is None:
        return None
    kind_of_store, folder = scheme_of(url), local_folder(url)
    names = (f"spark.delta.logStore.{kind_of_store}.impl", "spark.delta.logStore.class")
    log_store = next((value for name in names if (value := spark.conf.get(name, None))), None)
    kind = mounted_as(folder, MOUNTS.read_text(encoding="utf-8")) if folder and MOUNTS.is_file() else None
    return writers(kind_of_store, kind, log_store)


def _local(file_system: str) -> Writers:
    if _SHARED.fullmatch(file_system) and file_system not in _OWN_MACHINE:
        detail = f"a folder on {file_system}: the lock that writers take may not reach other machines"
        return Writers(False, detail, "write from one machine only, or put the ledger on a store that Delta knows")
    return Writers(True, f"a local folder ({file_system}): writers take turns under a lock")


def mounted_as(folder: Path, mounts: str) -> str | None:
    """The kind of file system that a folder lies on, by the text of /proc/mounts; the innermost mount, the last one
    where several lie at one place. None where there is no such text."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = Path(_ESCAPE.sub(lambda code: chr(int(code[1], 8)), words[1]))
        depth = len(point.parts)
        if folder.is_relative_to(point) and (found is None or depth >= found[0]):
            found = depth, words[2]
    return found and found[1]
