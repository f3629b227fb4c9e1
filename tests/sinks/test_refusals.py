"""What Spark and Delta say, as a fault with a name; everything else as it is."""

import pytest
from pyspark.errors import PySparkException

from groupledger.core.faults import Fault
from groupledger.sinks.refusals import explained, named

FILE = "file:/data/ledger/group_snapshots/part-00000-3b-c000.snappy.parquet"
CASES = [
    (
        f"[FAILED_READ_FILE.NO_HINT] reading {FILE}. SQLSTATE: KD001",
        "LEDGER_DAMAGED",
        "table group_snapshots is damaged",
    ),
    (f"{FILE} is not a Parquet file. Expected magic number", "LEDGER_DAMAGED", "`groupledger rebuild`"),
    (
        "[DELTA_TRUNCATED_TRANSACTION_LOG] s3://b/l/coverage/_delta_log/0002.json: cut",
        "LEDGER_DAMAGED",
        "table coverage",
    ),
    ("java.io.FileNotFoundException: /l/log_records/part-1.parquet", "LEDGER_DAMAGED", "ingest the sources into a new"),
    (f"Task failed while writing rows to {FILE}: No space left on device", "LEDGER_UNWRITABLE", "No space left"),
    (f"AccessControlException: Permission denied: {FILE}", "LEDGER_UNWRITABLE", "nothing of this run counts"),
    ("[DELTA_CONCURRENT_APPEND] Files were added", "WRITE_CONFLICT", "run it again"),
    ("io.delta.exceptions.ConcurrentAppendException", "WRITE_CONFLICT", "run it again"),
    ("[FAILED_READ_FILE] reading /elsewhere/orders/part-1.parquet", None, ""),
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
def test_an_error_of_the_engine_becomes_a_fault_where_the_ledger_is_what_is_wrong(text, code, words):
    error = PySparkException(message=text)
    fault = explained(error)
    assert (fault.code if fault else None) == code
    assert words in (fault.message if fault else "")
    with pytest.raises(Fault if code else PySparkException) as caught, named():
        raise error
    assert (caught.value.__cause__ if code else caught.value) is error
