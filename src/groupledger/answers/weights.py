"""What each partition weighs (lag, bytes a second, ...), from a file that somebody names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from groupledger.core.faults import Fault

if TYPE_CHECKING:
    from groupledger.answers.queries import NamedPartition

KEYS = ("topic", "partition")


def read_weights(name: str) -> dict[NamedPartition, float]:
    """Read a CSV file with a header, a Parquet file or a Delta table: columns topic, partition and one number.

    Raises Fault("BAD_WEIGHTS") for another file, for a partition named twice, and for a value that is no weight.
    """
    try:
        table = _table(Path(name))
    except (OSError, pa.ArrowException, ImportError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _fault(name, f"cannot be read: {said}") from error
    others = [column for column in table.schema.names if column not in KEYS]
    if len(others) != 1 or not set(KEYS) <= set(table.schema.names):
        raise _fault(name, f"has the columns {', '.join(table.schema.names)}")
    found: dict[NamedPartition, float] = {}
    for topic, number, weight in zip(*(table[column].to_pylist() for column in (*KEYS, *others)), strict=True):
        place = f"{topic}-{number}"
        if not isinstance(topic, str) or not isinstance(number, int):
            raise _fault(name, f"names a partition {place}")
        if not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise _fault(name, f"gives {place} the {others[0]} {weight}")
        if (topic, number) in found:
            raise _fault(name, f"names {place} twice")
        found[topic, number] = float(weight)
    return found


def _table(path: Path) -> pa.Table:
    if path.is_dir():
        from deltalake import DeltaTable, QueryBuilder
        from deltalake.exceptions import DeltaError

        try:
            engine = QueryBuilder()
            engine.register("weights", DeltaTable(str(path)))
            return pa.RecordBatchReader.from_stream(engine.execute("SELECT * FROM weights")).read_all()
        except DeltaError as error:
            raise OSError(str(error)) from error
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile  # read_table would import pandas, and so would Delta's own reader

        with ParquetFile(path) as file:
            return file.read()
    from pyarrow import csv

    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"topic": pa.string()}))


def _fault(name: str, what: str) -> Fault:
    expected = "expected the columns topic, partition and one number that is not negative, a row a partition"
    return Fault(
        "BAD_WEIGHTS", f"{name} {what}; {expected} (CSV with a header, .parquet, or the folder of a Delta table)"
    )
