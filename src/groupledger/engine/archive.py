"""An archive of the classes a small job loads (Java's class data sharing): a session then starts in half the time.

    python -m groupledger.engine.archive            # once; part of `make setup`

The archive belongs to one Java, one Spark and one set of jars; Java checks that itself and passes over one that does
not fit. Measured in docs/contributing/benchmarks.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupledger import __version__
from groupledger.config.settings import SparkSettings
from groupledger.core.arrays.kernels import VARIABLE, kind, roots
from groupledger.core.digest import code_digest
from groupledger.core.faults import Fault
from groupledger.engine.jars import spark_version
from groupledger.engine.session import JAVA_OPTIONS, class_archive, session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def make(directory: Path | None = None) -> Path | None:
    """Return the archive, made if it is not there; None if this Java cannot make one."""
    archive = class_archive(directory)
    if archive.is_file():
        return archive
    print("making an archive of Spark's classes: sessions then start in half the time", file=sys.stderr)  # noqa: T201
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=archive.parent) as scratch:
        made = Path(scratch, archive.name)
        settings = SparkSettings(
            profile="small",
            master="local[2]",
            driver_memory="1g",
            jars=str(directory) if directory else None,
            conf={JAVA_OPTIONS: f'-XX:ArchiveClassesAtExit="{made}"'},
        )
        spark = session(settings, "groupledger archive")
        _rehearse(spark, scratch)
        _stop_and_wait(spark)
        return made.rename(archive) if made.is_file() else None


def _rehearse(spark: SparkSession, scratch: str) -> None:
    """Do once what jobs do: JSON lines in, a grouped Arrow function, Delta appends, a query."""
    lines = Path(scratch, "lines.jsonl")
    lines.write_text("".join(f'{{"id": {number}, "name": "{number % 3}"}}\n' for number in range(10)), encoding="ascii")
    rows = spark.read.schema("id int, name string").json(str(lines))
    grouped = rows.repartition(2, "name").groupBy("name").applyInArrow(_same, "id int, name string")
    table = f"{scratch}/table"
    for mode in ("error", "append"):
        grouped.write.format("delta").mode(mode).save(table)
    spark.read.format("delta").load(table).createOrReplaceTempView("rehearsal")
    spark.sql("select name, count(*) as rows, max(id) from rehearsal group by name order by name").toPandas()


def _same(table: pa.Table) -> pa.Table:
    return table


def _stop_and_wait(spark: SparkSession) -> None:
    """Java writes the archive while it exits, and it exits when its standard input ends."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=300)


# The compiled kernels, for executors that start without a cache: containers, homes that are read-only.
#
# They are compiled for every processor of this machine's kind, since the driver's need not be the executors'.

WARM_UP = "groupledger.engine.kernel_warmup"


def kernel_archive() -> Path:
    """Return the zip for this code, numba and Python; compile in processes of their own if it is missing.

    Raises SPARK_MISSING, since what is compiled are the calls of Spark's workers, and CANNOT_WRITE.
    """
    spark_version()
    home = roots()[0]
    code = code_digest(files("groupledger"), __version__).replace("+", "-")  # Spark takes a path for a URI
    made = home / f"kernels-{code}-{kind(generic=True)}.zip"
    if made.is_file():
        return made
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        expected = f"expected a folder that can be written to; name one: {VARIABLE}"
        raise Fault("CANNOT_WRITE", f"{home}: {error.strerror}; {expected}") from error
    with tempfile.TemporaryDirectory(prefix=".kernels-", dir=home) as scratch:
        compiled = f"{scratch}/kernels"
        variables = {"XDG_CACHE_HOME": scratch, "TMPDIR": scratch, VARIABLE: compiled, "NUMBA_CPU_NAME": "generic"}
        command = [sys.executable, "-m", WARM_UP]
        subprocess.run(command, env=os.environ | variables, stdout=sys.stderr, check=True)  # noqa: S603 our own
        packed = shutil.make_archive(f"{scratch}/packed", "zip", compiled)
        return Path(packed).rename(made)


def main() -> int:
    """Make the archive and say where it is."""
    try:
        archive = make()
    except Fault as fault:
        print(fault.message, file=sys.stderr)  # noqa: T201 a command's answer
        return 2
    print(archive or "this Java cannot make a class archive; sessions start without")  # noqa: T201 a command's answer
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
