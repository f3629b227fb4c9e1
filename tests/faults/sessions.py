"""Sessions whose file system and whose workers can be made to fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from groupledger.config import SparkSettings
from groupledger.engine import jars
from groupledger.engine.java import java
from groupledger.engine.session import session
from tests.faults import delta_rs
from tests.faults.daemon import AMBUSH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = "groupledger.faults"


def compile_java(classes: Path) -> Path:
    """The faulty file systems' classes; needs a JDK."""
    classes.mkdir(parents=True)
    spark = Path(pyspark.__file__).parent / "jars"
    sources = sorted(map(str, (HERE / "java").glob("*.java")))
    command = [str(java().with_name("javac")), "-cp", f"{spark}/*", "-d", str(classes), *sources]
    subprocess.run(command, check=True)
    return classes


def faulty_session(
    classes: Path, ambush: Path, master: str = "local[2]", profile: str = "local", seed: str = "0"
) -> SparkSession:
    """A session that writes through the faulty file systems, and whose workers look for an ambush.

    `seed` is the workers' hash seed; 0 is Spark's own choice.
    """
    os.environ[AMBUSH] = str(ambush)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    os.environ["GROUPLEDGER_KERNELS"] = "python"
    conf = {
        "spark.driver.extraClassPath": str(classes),
        "spark.executor.extraClassPath": os.pathsep.join([str(classes), jars.class_path("delta", None)]),
        "spark.hadoop.fs.file.impl": f"{PACKAGE}.FaultyFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": f"{PACKAGE}.FaultyLocalFs",
        "spark.executorEnv.PYTHONHASHSEED": seed,
        "spark.python.daemon.module": "tests.faults.daemon",
        "spark.sql.shuffle.partitions": "2",
    }
    settings = SparkSettings(profile=profile, master=master, driver_memory="1500m", conf=conf)
    made = session(settings, "groupledger faults")
    delta_rs.lay(made._jvm)
    return made


def unpack_codecs(spark: SparkSession) -> None:
    """Load what unpacks its library into a file the first time: later no file may be as large as that."""
    jvm: Any = spark._jvm
    jvm.org.xerial.snappy.Snappy.getNativeLibraryVersion()


class FileFaults:
    """The faults of this session's file system; see Faults.java."""

    def __init__(self, spark: SparkSession) -> None:
        self.jvm: Any = spark._jvm

    def watch(self, folder: Path) -> None:
        """Nothing is wrong below this folder; remember what is done there."""
        self._faults().watch(str(folder))

    def arm(self, place: str, action: str, victim: int = 0) -> None:
        """One thing is wrong, once."""
        self._faults().arm(place, action, victim)

    def trace(self) -> list[str]:
        """The places passed since `watch`."""
        return str(self._faults().trace()).split("\n")

    def struck(self) -> bool:
        """Whether what was armed has happened."""
        return bool(self._faults().struck())

    def process(self) -> int:
        """The JVM's process."""
        return int(self.jvm.java.lang.ProcessHandle.current().pid())

    def forget(self) -> None:
        """Let Delta look at the files again: the next ledger may lie where another lay."""
        self.jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _faults(self) -> Any:
        return self.jvm.groupledger.faults.Faults
