"""Paths and files of sources, as far as they need no Spark."""

import pytest

from groupledger.sources.files import Files, unreadable
from groupledger.tables.sql_text import literal_path

READ = "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file"
CUT = "Caused by: java.io.EOFException: Unexpected end of input stream"
FILES = ["file:/data/a b.jsonl.gz", "file:/data/metrics/log.parquet", "s3a://bucket/x.jsonl"]
ERRORS = {
    f"{READ} file:///data/a%20b.jsonl.gz.  SQLSTATE\n{CUT}": "/data/a b.jsonl.gz: the file ends too early: it is cut",
    f"{READ} file:///data/metrics/log.parquet. SQLSTATE\n\tat java": "/data/metrics/log.parquet: Spark cannot read it",
    "java.lang.RuntimeException: file:/data/metrics/log.parquet is not a Parquet file. Expected magic number": (
        "/data/metrics/log.parquet: it is no Parquet file"
    ),
    "OSError: while reading file /data/a%20b.jsonl.gz : No such file or directory\n\tat org": (
        "/data/a b.jsonl.gz: it is not there, on a machine that reads it"
    ),
    f"{READ} s3a://bucket/x.jsonl. SQLSTATE\nnot a gzip file": "s3a://bucket/x.jsonl: it is no gzip file",
}


@pytest.mark.parametrize(("error", "words"), ERRORS.items())
def test_the_file_that_could_not_be_read_is_named(error, words):
    fault = unreadable(error, FILES)
    assert fault.code == "SOURCE_UNREADABLE"
    assert fault.message.startswith(words)
    assert "\n" not in fault.message


@pytest.mark.parametrize("error", ["", "Job aborted", f"{READ} file:///ledger/metrics/part-0.parquet. x"])
def test_files_of_others_are_none_of_ours(error):
    assert unreadable(error, FILES) is None


def test_a_path_is_no_pattern():
    assert literal_path("a[1]/{b,c}*?.x") == "a\\[1\\]/\\{b,c\\}\\*\\?.x"
    assert literal_path("plain-1.x") == "plain-1.x"


@pytest.mark.parametrize(
    ("root", "names", "partitioned"),
    [
        ("/data/log", ["file:/data/log/date=1/a.parquet"], True),
        ("/data/log", ["file:/data/log/2026/a.parquet"], False),
        ("/data/log", ["file:/data/log/a=1.parquet"], False),
        ("/data/x=1/log", ["file:/data/x=1/log/a.parquet"], False),
        ("log", ["file:/srv/x=1/log/a.parquet"], False),
        ("./log", ["file:/srv/log/p=3/a.parquet"], True),
        ("s3a://b/log/", ["s3a://b/log/p=3/a.parquet"], True),
    ],
)
def test_folders_that_hold_values_are_told_from_their_names(root, names, partitioned):
    assert Files(root, root, tuple((name, 1, 0) for name in names)).is_partitioned == partitioned
