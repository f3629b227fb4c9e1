"""The table of Sparks is held against all that must agree with it: project, lock, pins, digests, page, matrix."""

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from groupledger.core.faults import Fault
from groupledger.core.spark_versions import BELOW, EXTRA, LEAST, NEWEST, RELEASES, SCALA, numbers, release_of

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "groupledger" / "engine"


def delta_jar(release):
    """The name of the Delta jar for this Spark in Maven."""
    return f"delta-spark_{release.minor}_{SCALA}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4.2.0", (4, 2, 0)), ("4.2.0rc1", (4, 2, 0)), ("3", (3,)), ("2.3.dev4", (2, 3)), ("", ()), ("x", ())],
)
def test_versions_are_compared_by_their_numbers(text, expected):
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("version", "minor"), [("4.0.0", "4.0"), ("4.0.2-amzn-0", "4.0"), ("4.1.2", "4.1"), ("4.2.1.dev0", "4.2")]
)
def test_a_platform_s_own_version_is_its_minor(version, minor):
    assert release_of(version).minor == minor


@pytest.mark.parametrize("version", ["3.5.3", "4.3.0", "5.0.0", "4", "", "40.0"])
def test_any_other_is_one_line_that_names_the_extra(version):
    with pytest.raises(Fault, match=rf"this is pyspark {version};.*groupledger\[local\]") as raised:
        release_of(version)
    assert raised.value.code == "SPARK_UNSUPPORTED"


def test_the_range_is_that_of_the_table():
    assert RELEASES[0].minor == LEAST
    assert [numbers(release.minor) for release in RELEASES] == [(4, minor) for minor in range(len(RELEASES))]
    assert numbers(NEWEST.minor)[1] + 1 == numbers(BELOW)[1]
    assert all(release_of(release.pyspark) == release for release in RELEASES)


def test_only_the_extra_brings_a_spark():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [text for text in project["dependencies"] if re.match("pyspark|delta-", text)]
    extras = project["optional-dependencies"]
    assert extras[EXTRA] == [f"pyspark>={LEAST},<{BELOW}", f"delta-spark=={NEWEST.delta}"]
    assert f"groupledger[{EXTRA}]" in extras["dev"]


def test_the_lock_has_the_newest_and_the_matrix_the_others():
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert (locked["pyspark"], locked["delta-spark"]) == (NEWEST.pyspark, NEWEST.delta)
    for release in RELEASES[:-1]:
        folder = ROOT / "tests" / "sparks"
        assert (folder / f"{release.minor}.in").read_text() == f"pyspark=={release.pyspark}\n"
        assert (folder / f"{release.minor}.lock").read_text().startswith(f"pyspark=={release.pyspark} \\\n    --hash=")


def test_each_spark_has_its_jars_pinned():
    tree = ElementTree.parse(ENGINE / "ivy.xml")  # noqa: S314 our own file
    pinned = {
        conf: {(each.attrib["name"], each.attrib["rev"]) for each in tree.iter("dependency") if conf in confs(each)}
        for conf in (each.attrib["name"] for each in tree.iter("conf"))
    }
    kinds = ("delta", "kafka-source")
    of_sparks = [release.jar_set(kind) for kind in kinds for release in RELEASES]
    assert sorted(of_sparks) == sorted(conf for conf in pinned if conf.startswith(kinds))
    digests = (ENGINE / "jars.sha256").read_text()
    for release in RELEASES:
        delta, artifact = release.jar_set("delta"), delta_jar(release)
        assert (artifact, release.delta) in pinned[delta]
        assert f"  {delta}/{artifact}-{release.delta}.jar\n" in digests
        assert len([name for name, _ in pinned[delta] if name.startswith("delta-spark")]) == 1
        (source,) = [rev for name, rev in pinned[release.jar_set("kafka-source")] if "spark-sql-kafka" in name]
        assert numbers(source)[:2] == numbers(release.minor)


def confs(dependency):
    return dependency.attrib["conf"].removesuffix("->default").split(",")


def test_the_page_has_the_table():
    page = (ROOT / "docs" / "operate/run-on-spark.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| \d.*", page, re.MULTILINE)
    ]
    assert rows == [
        [
            *(release.minor, f"pyspark {release.pyspark}", release.delta, f"io.delta:{delta_jar(release)}"),
            f"`{release.jar_set('delta')}`, `{release.jar_set('kafka-source')}`",
        ]
        for release in RELEASES
    ]
