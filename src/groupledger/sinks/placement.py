"""Refuse a place at which a ledger would be in pieces, or gone, before anything is made there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.sinks.location import LedgerFault, LedgerLocation, local_folder, with_scheme

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_CATALOG = "spark_catalog"


def require_reachable(spark: SparkSession, location: LedgerLocation) -> None:
    """Raise LedgerFault("LOCAL_LEDGER") for a folder of this machine where the executors may be others.

    Each executor would write to a disk of its own, and the log of the table would be on the driver's alone. Through
    Spark Connect the server's machines are not known here.
    """
    if location.path is None or location.shared or getattr(spark, "_jvm", None) is None:
        return
    master = str(spark.sparkContext.master)
    folder = local_folder(with_scheme(spark, location.path))
    if folder is None or master.startswith("local"):
        return
    told = f"the ledger is at {folder}, a folder of this machine, and Spark's executors run on others (master {master})"
    place = "a store that all of them reach (s3a://, abfss://, gs://, hdfs://) or a catalog"
    shared = "if this folder is a mount that all of them share, such as NFS, set ledger.shared: true"
    raise LedgerFault("LOCAL_LEDGER", f"{told}: each would write to a disk of its own; put it on {place}; {shared}")


def require_lasting_catalog(spark: SparkSession, location: LedgerLocation) -> None:
    """Raise LedgerFault("CATALOG_IN_MEMORY") for a catalog that ends with the session."""
    if location.catalog is None:
        return
    name, dot, _ = location.catalog.partition(".")
    kind = spark.conf.get("spark.sql.catalogImplementation", "in-memory")
    if (dot and name != _SESSION_CATALOG) or kind != "in-memory":
        return
    told = f"ledger.catalog is {location.catalog}, and this Spark's catalog is in memory: it ends with the session"
    expected = "expected one that lasts: profile cluster on a Spark with a metastore or Unity Catalog"
    ways = "or spark.conf spark.sql.catalogImplementation: hive, or a folder (ledger.location)"
    raise LedgerFault("CATALOG_IN_MEMORY", f"{told}; {expected}, {ways}")
