"""A Python for each Spark: the packages of this one, with another pyspark before its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from groupledger.core.spark_versions import SparkRelease
from groupledger.engine.jars import spark_version

ROOT = Path(__file__).parents[2]


def lock(release: SparkRelease) -> Path:
    """The file that pins a pyspark with its digest; `make lock` writes it."""
    return Path(__file__).with_name(f"{release.minor}.lock")


def python(release: SparkRelease) -> Path:
    """The interpreter that imports this Spark: ours where it does, else that of `.venv-spark-<minor>`, made once."""
    if release.pyspark == spark_version():
        return Path(sys.executable)
    folder = ROOT / f".venv-spark-{release.minor}"
    stamp = folder / ".installed"
    pinned = lock(release).read_text(encoding="ascii")
    if not stamp.is_file() or stamp.read_text(encoding="ascii") != pinned:
        _make(folder, lock(release))
        stamp.write_text(pinned, encoding="ascii")
    return folder / "bin" / "python"


def _make(folder: Path, pins: Path) -> None:
    """Only pyspark is installed; all else is seen behind it, our own editable install too."""
    print(f"installing pyspark into {folder.name} (once; some minutes)", file=sys.stderr)
    if folder.is_dir():
        shutil.rmtree(folder)
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run((*pip, "--require-hashes", "--requirement", pins, "--target", packages), check=True)
    ours = sysconfig.get_paths()["purelib"]
    (packages / "behind.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")
