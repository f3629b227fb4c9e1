"""What Spark and Delta say, as a fault that names whose file it is; everything else as it is."""

import re

import pyspark
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException, PySparkTypeError, PythonException

from groupledger.core.faults import Fault
from groupledger.core.spark_versions import release_of
from groupledger.engine.jars import spark_jars
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.sinks.location import engine_errors_as_faults, explained, is_bug, meaning

FILE = "file:/data/ledger/group_snapshots/part-00000-3b-c000.snappy.parquet"
READING = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file"
IN_JAVA = "Caused by: org.apache.spark.SparkException"
CASES = [
    (f"{READING} {FILE}. SQLSTATE: KD001", "LEDGER_DAMAGED", "table group_snapshots is damaged"),
    (f"{FILE} is not a Parquet file. Expected magic number", "LEDGER_DAMAGED", "`groupledger rebuild`"),
    (
        "[DELTA_TRUNCATED_TRANSACTION_LOG] file:///data/ledger/coverage/_delta_log/0002.json: cut",
        "LEDGER_DAMAGED",
        "table coverage",
    ),
    ("java.io.FileNotFoundException: /data/ledger/log_records/part-1.parquet", "LEDGER_DAMAGED", "into a new ledger"),
    (f"Task failed while writing rows to {FILE}: No space left on device", "LEDGER_UNWRITABLE", "No space left"),
    (f"AccessControlException: Permission denied: {FILE}", "LEDGER_UNWRITABLE", "the ledger cannot be written"),
    (f"{READING} {FILE} FileNotFoundException (Permission denied)", "LEDGER_UNWRITABLE", "Permission denied"),
    (
        "java.io.IOException: Mkdirs failed to create file:/data/ledger/runs/_delta_log",
        "LEDGER_UNWRITABLE",
        "Mkdirs failed",
    ),
    ("/scratch/blockmgr-1/0a: No space left on device", "LEDGER_UNWRITABLE", "a file cannot be written: No space left"),
    ("[DELTA_CONCURRENT_APPEND] Files were added", "WRITE_CONFLICT", "run it again"),
    ("io.delta.exceptions.ConcurrentAppendException", "WRITE_CONFLICT", "run it again"),
    (f"{READING} /elsewhere/orders/part-1.parquet", "SOURCE_UNREADABLE", "/elsewhere/orders/part-1.parquet cannot be"),
    (
        f"Task failed while writing rows to {FILE}\n{IN_JAVA}: {READING} file:///in/metrics/log.jsonl.gz."
        " SQLSTATE: KD001\njava.io.EOFException: Unexpected end of input stream",
        "SOURCE_UNREADABLE",
        "/in/metrics/log.jsonl.gz cannot be read: its compressed data ends too soon",
    ),
    (
        f"{READING} file:///my%20files/runs/log.gz. SQLSTATE: KD001\n"
        "java.util.zip.ZipException: incorrect header check",
        "SOURCE_UNREADABLE",
        "/my files/runs/log.gz cannot be read: its compressed data is damaged",
    ),
    (f"{READING} file:/data/ledger2/runs/a.json. SQLSTATE: KD001", "SOURCE_UNREADABLE", "/data/ledger2/runs/a.json"),
    ("file:/in/coverage/part-1.parquet is not a Parquet file", "SOURCE_UNREADABLE", "or not of this format"),
    (
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "gs"',
        "STORE_UNKNOWN",
        "gs:// needs a jar that Spark does not bring: name org.apache.hadoop:hadoop-gcp:3.5.0 in spark.conf",
    ),
    (
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        "STORE_UNKNOWN",
        "s3a:// needs a jar that Spark does not bring: name org.apache.hadoop:hadoop-aws:3.5.0 in spark.conf",
    ),
    (
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found",
        "STORE_UNKNOWN",
        "abfss:// needs a jar that Spark does not bring: name org.apache.hadoop:hadoop-azure",
    ),
    (
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.gs.GoogleHadoopFileSystem not found",
        "STORE_UNKNOWN",
        "gs:// needs a jar",
    ),
    (
        f"{READING} file:///in/log.jsonl.gz.  SQLSTATE: KD001\njava.io.IOException: not a gzip file",
        "SOURCE_UNREADABLE",
        "/in/log.jsonl.gz cannot be read: its compressed data is damaged",
    ),
    (
        "[FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER] Encountered error while reading file file:/in/a.parquet. Could not"
        " read footer. Please ensure that the file is in either ORC or Parquet format.",
        "SOURCE_UNREADABLE",
        "/in/a.parquet cannot be read: it is damaged, or not of this format",
    ),
    ('No FileSystem for scheme "qqq"', "STORE_UNKNOWN", "qqq:// is no file system that Spark knows"),
    ("java.net.UnknownHostException: namenode", "STORE_UNREACHABLE", "cannot be reached: namenode; check the address"),
    ("java.lang.OutOfMemoryError: Java heap space", "OUT_OF_MEMORY", "raise spark.driver_memory"),
    ("[UNRESOLVED_COLUMN] a column of group_snapshots/x.parquet", None, ""),
    ("division by zero", None, ""),
    (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint runs_status (status IN ('a')) violated by row with"
        " values:\n - status : b SQLSTATE: 23001",
        "CONSTRAINT_BROKEN",
        "table runs breaks the constraint runs_status: got status : b",
    ),
    ("CHECK constraint theirs (a > 1) violated by row with values:\n - a : 1", None, ""),
]


@pytest.mark.parametrize(("text", "code", "words"), CASES)
def test_an_error_of_the_engine_becomes_a_fault_that_names_what_is_wrong(text, code, words):
    error = PySparkException(message=text)
    place = LedgerLocation(path="/data/ledger")
    fault = explained(error, place)
    assert (fault.code if fault else None) == code
    assert words in (fault.message if fault else "")
    assert code != "SOURCE_UNREADABLE" or fault.message.startswith("/")
    assert not re.search(r"\w+\.\w+\.\w+Exception", fault.message if fault else "")
    with pytest.raises(Fault if code else PySparkException) as caught, engine_errors_as_faults(place):
        raise error
    assert (caught.value.__cause__ if code else caught.value) is error


@pytest.mark.parametrize(
    ("location", "file", "code"),
    [
        ("/data/my ledger", "file:///data/my%20ledger/runs/_delta_log/00.json", "LEDGER_DAMAGED"),
        ("file:/data/ledger/", "file:/data/ledger/runs/part.parquet", "LEDGER_DAMAGED"),
        ("s3a://bucket/ledger", "s3a://bucket/ledger/runs/part.parquet", "LEDGER_DAMAGED"),
        ("s3a://bucket/ledger", "s3a://other/ledger/runs/part.parquet", "SOURCE_UNREADABLE"),
        ("/data", "/data/mine/runs/part.parquet", "SOURCE_UNREADABLE"),
        ("/data", "/data/runs/part.parquet", "LEDGER_DAMAGED"),
        ("/data", "/elsewhere/data/runs/part.parquet", "SOURCE_UNREADABLE"),
        (None, "/data/runs/part.parquet", "SOURCE_UNREADABLE"),
    ],
)
def test_whose_file_it_is_is_decided_by_where_it_lies(location, file, code):
    error = PySparkException(message=f"{READING} {file}. SQLSTATE: KD001")
    assert explained(error, LedgerLocation(path=location) if location else None).code == code


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "An error occurred while calling o1.load.\n: org.apache.hadoop.fs.PathIOException: `/x': Input/output error"
            "\n\tat org.apache.hadoop.fs.LocalFileSystem.open(Local.java:1)\n\tat py4j.Gateway.invoke(G.java:2)",
            "`/x': Input/output error",
        ),
        ("java.lang.IllegalStateException: io.delta.storage.Thing is closed", "Thing is closed"),
        ("java.lang.NullPointerException\n\tat org.apache.spark.Some.call(Some.scala:1)", "NullPointerException"),
        ("x" * 1000, "x" * 300 + "..."),
    ],
)
def test_the_meaning_of_an_error_has_no_class_of_javas(text, words):
    assert meaning(PySparkException(message=text)) == words


def test_a_jvm_that_has_ended_is_said_to_have():
    assert explained(Py4JNetworkError("Error while receiving"), None).code == "JVM_GONE"
    assert explained(ConnectionRefusedError(111, "Connection refused"), None).code == "JVM_GONE"


def test_what_our_own_python_raised_is_a_bug():
    assert is_bug(PythonException("in a worker"))
    assert is_bug(PySparkTypeError(message="not a column"))
    assert not is_bug(PySparkException(message="the engine's"))


def test_jars_of_stores_are_named_in_the_version_of_sparks_hadoop():
    assert (spark_jars() / f"hadoop-client-api-{release_of(pyspark.__version__).hadoop}.jar").is_file()
