"""Declare which Spark goes with which Delta, for jars, doctor, messages and docs/operate/run-on-spark.md."""

from __future__ import annotations

from dataclasses import dataclass

from groupledger.core.faults import Fault

EXTRA = "local"
"""The extra of groupledger that installs a Spark; without it none is installed or replaced."""
SCALA = "2.13"
LEAST, BELOW = "4.0", "4.3"
"""Versions of pyspark: the least supported, and the first that is not."""


@dataclass(frozen=True, slots=True)
class SparkRelease:
    """A minor version of Spark and the versions that belong to it."""

    minor: str
    pyspark: str  # the version that `make sparks` runs
    delta: str
    hadoop: str  # jars of stores used with Spark must have this version

    def jar_set(self, name: str) -> str:
        """Return the set of jars called `name` for this release: `delta` is `delta-4.0` for Spark 4.0."""
        return f"{name}-{self.minor}"


RELEASES = (
    SparkRelease("4.0", "4.0.5", "4.4.0", "3.4.1"),
    SparkRelease("4.1", "4.1.4", "4.4.0", "3.4.2"),
    SparkRelease("4.2", "4.2.0", "4.4.0", "3.5.0"),
)
NEWEST = RELEASES[-1]


def release_of(version: str) -> SparkRelease:
    """Return the release of this version of pyspark. Raises Fault: SPARK_UNSUPPORTED."""
    for release in RELEASES:
        if numbers(version)[:2] == numbers(release.minor):
            return release
    raise Fault(
        "SPARK_UNSUPPORTED",
        f"this is pyspark {version}; expected {LEAST} or newer, below {BELOW}: use a Python with one of these,"
        f" or {bring_spark()}",
    )


def spark_missing() -> Fault:
    """Return the fault for a missing pyspark."""
    return Fault(
        "SPARK_MISSING",
        f"pyspark is not installed here; expected {LEAST} or newer, below {BELOW}: on a cluster use its own Python,"
        f" elsewhere {bring_spark()}",
    )


def bring_spark() -> str:
    """Return the command that installs a Spark for groupledger."""
    return f"pip install 'groupledger[{EXTRA}]'"


def numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: `"4.2.0rc1"` -> (4, 2, 0)."""
    parts = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)
