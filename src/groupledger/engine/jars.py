"""The jars beside Spark's own: fetched once by the Ivy that pyspark ships, from the pins in ivy.xml.

    python -m groupledger.engine.jars delta         # fetch if need be; prints a list for spark-submit --jars
    python -m groupledger.engine.jars --pin         # write jars.sha256 again from ivy.xml (part of `make lock`)

`jars.sha256` says which files each configuration consists of. They lie in `<root>/<digest>/<configuration>`, where
`<root>` is GROUPLEDGER_JARS or a folder of the user's cache, and the digest is that of both files: a change of pins
is another folder. Sets for Spark's class path exist once for each Spark (`delta-4.2`); without a version a name means
the one for the Spark here. A folder appears by a rename once all its files are there and have their digests.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from groupledger.core.faults import Fault
from groupledger.core.spark_versions import release_of, spark_missing
from groupledger.engine.java import java

ROOT_VARIABLE = "GROUPLEDGER_JARS"
SETTINGS_VARIABLE = "GROUPLEDGER_IVY_SETTINGS"
"""Path of an Ivy settings file, for a company's mirror; without it Ivy asks Maven Central."""

_HERE = Path(__file__).parent
_PINS = _HERE / "ivy.xml"
_DIGESTS = _HERE / "jars.sha256"

_MINOR = re.compile(r"-\d+\.\d+$")

TYPES = ("jar", "bundle")
"""Artifact types of a jar in Maven's poms: some that a broker loads are OSGi bundles."""


class JarsFault(Fault):
    """The jars cannot be had; the message says what failed and where to put them by hand."""


def configurations() -> list[str]:
    """Return the sets of jars there are: `delta` and `kafka-source` of the Spark here, and those that tests need."""
    return sorted({_MINOR.sub("", conf) for conf in _listed()})


def jar_set(conf: str) -> str:
    """Return the set's own name: `delta` is `delta-4.2` where pyspark is 4.2; any other set is as it is called."""
    known = _listed()
    if conf in known or conf not in configurations():
        return conf
    return release_of(spark_version()).jar_set(conf)


def ensure(confs: Iterable[str], directory: Path | None = None) -> list[Path]:
    """Every jar of these configurations, fetched where missing; sorted inside each configuration.

    `directory` replaces the root. Raises JavaFault, SPARK_MISSING, SPARK_UNSUPPORTED, or JarsFault with the code
    JARS_UNKNOWN, JARS_UNAVAILABLE, JARS_DIFFER or JARS_INCOMPLETE.
    """
    wanted = [jar_set(conf) for conf in confs]
    known = _listed()
    for conf in wanted:
        if conf not in known:
            there = ", ".join(sorted({*known, *configurations()}))
            raise JarsFault("JARS_UNKNOWN", f"no set of jars is called {conf!r}; there are: {there}")
    folder = home(directory)
    missing = [conf for conf in wanted if not (folder / conf).is_dir()]
    if missing:
        _fetch(missing, folder)
    jars = [folder / conf / name for conf in wanted for name in sorted(known[conf])]
    for jar in jars:
        if not jar.is_file():
            raise JarsFault("JARS_INCOMPLETE", f"{jar} is missing: put it there, or remove {jar.parent} and try again")
    return jars


def class_path(conf: str, directory: Path | None = None) -> str:
    """Return the jars of one configuration as a Java class path."""
    return os.pathsep.join(str(jar) for jar in ensure([conf], directory))


def home(directory: Path | None = None) -> Path:
    """Return the folder of this version's jars, one folder a configuration below it."""
    root = directory or _root_from_environment()
    pins = hashlib.sha256(_PINS.read_bytes() + _DIGESTS.read_bytes()).hexdigest()
    return root.absolute() / pins[:12]


def _root_from_environment() -> Path:
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "groupledger", "jars")


@cache
def _listed() -> dict[str, dict[str, str]]:
    """Return configuration -> file name -> SHA-256, from jars.sha256 (the format of `sha256sum`)."""
    listed: dict[str, dict[str, str]] = {}
    for line in _DIGESTS.read_text(encoding="ascii").splitlines():
        digest, path = line.split(maxsplit=1)
        conf, name = path.split("/")
        listed.setdefault(conf, {})[name] = digest
    return listed


def _fetch(confs: Sequence[str], home: Path) -> None:
    """Retrieve into a folder of our own, check every file, then rename: a half download never counts."""
    java()  # before a word is said about fetching
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=home) as scratch:
        print(f"fetching jars: {', '.join(confs)} -> {home}", file=sys.stderr)  # noqa: T201 minutes may pass
        _retrieve(confs, Path(scratch), home)
        for conf in confs:
            _check(Path(scratch, conf), _listed()[conf])
            _adopt(Path(scratch, conf), home / conf)


def _retrieve(confs: Sequence[str], into: Path, home: Path) -> None:
    """Let Ivy resolve and copy the jars to `<into>/<configuration>/<artifact>-<revision>.jar`; unchecked."""
    settings = os.environ.get(SETTINGS_VARIABLE)
    [ivy] = spark_jars().glob("ivy-*.jar")
    command = [
        *(str(java()), "-cp", str(ivy), "org.apache.ivy.Main"),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(_PINS), "-cache", str(into / "ivy"), "-types", *TYPES, "-confs", *confs),
        *("-retrieve", f"{into}/[conf]/[artifact]-[revision].[ext]"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 no shell, own words
    if ran.returncode != 0:
        raise JarsFault(
            "JARS_UNAVAILABLE",
            f"cannot fetch the jars of {', '.join(confs)}: {_reason(ran.stdout + ran.stderr)}. Either allow access to"
            f" Maven Central (or name a mirror: {SETTINGS_VARIABLE}=<ivysettings.xml>), or copy the files listed in"
            f" {_DIGESTS} into {home}/<set>/",
        )


def spark_jars() -> Path:
    """Return the folder of jars that pyspark brings with it; found without importing pyspark."""
    spark = find_spec("pyspark")
    for folder in (spark.submodule_search_locations if spark else None) or ():
        return Path(folder, "jars")
    raise spark_missing()


def spark_version() -> str:
    """Return the version of the pyspark that is imported here, installed by pip or not."""
    try:
        from pyspark.version import __version__
    except ImportError as error:
        raise spark_missing() from error
    return __version__


def _reason(log: str) -> str:
    """Return the first line in which Ivy says what it could not do."""
    lines = [line.strip(" :\t") for line in log.splitlines()]
    telling = [line for line in lines if "not found" in line or "exception" in line.lower()]
    return (telling or lines[-1:] or ["Ivy said nothing"])[0]


def _check(folder: Path, listed: dict[str, str]) -> None:
    got = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.glob("*.jar")}
    differing = sorted(name for name in got.keys() | listed.keys() if got.get(name) != listed.get(name))
    if differing:
        raise JarsFault(
            "JARS_DIFFER",
            f"{folder.name}: not the files listed in {_DIGESTS.name}: {', '.join(differing)};"
            " the mirror serves other files, or ivy.xml changed and `make lock` was not run",
        )


def pin() -> None:
    """Resolve ivy.xml afresh and write down what came."""
    from xml.etree import ElementTree  # starting a session does not need it

    confs = [conf.attrib["name"] for conf in ElementTree.parse(_PINS).iter("conf")]  # noqa: S314 our own file
    with tempfile.TemporaryDirectory() as scratch:
        _retrieve(confs, Path(scratch), home())
        got = sorted(jar for conf in confs for jar in Path(scratch, conf).glob("*.jar"))
        lines = [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.parent.name}/{jar.name}\n" for jar in got]
    _DIGESTS.write_text("".join(lines), encoding="ascii")


def _adopt(made: Path, final: Path) -> None:
    """Another process may have been faster: then its folder, checked likewise, stays."""
    try:
        made.rename(final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(made)


def main(arguments: Sequence[str]) -> int:
    """Fetch the named configurations (all without names) and print the jars, separated by commas."""
    try:
        if list(arguments) == ["--pin"]:
            pin()
            return 0
        jars = ensure(arguments or configurations())
    except Fault as fault:
        print(fault.message, file=sys.stderr)  # noqa: T201 a command's answer
        return 2
    print(",".join(str(jar) for jar in jars))  # noqa: T201 a command's answer
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
