"""Python environments for executors, made as a user makes them: what groupledger needs, and groupledger or not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("numpy", "pandas", "pyarrow", "numba", "highspy", "google-crc32c")
"""What a worker's half of groupledger imports; Spark brings its own Python files."""


def environment(folder: Path) -> Path:
    """An environment without groupledger; its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    wanted = [f"{name}=={version(name)}" for name in NEEDED]
    _pip("install", "--target", str(site_packages(folder)), *wanted)
    return folder / "bin" / "python"


def archive(folder: Path, target: Path) -> Path:
    """The environment as an archive that unpacks anywhere on a machine with the same Python."""
    with tarfile.open(target, "w:gz", compresslevel=1) as packed:
        packed.add(folder, arcname=".")
    return target


def wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def installed(folder: Path, package: Path) -> None:
    """Install a wheel into a folder."""
    _pip("install", "--no-deps", "--target", str(folder), str(package))


def zipped(folder: Path, package: Path) -> Path:
    """The wheel as a zip for `--py-files`, which takes no wheel."""
    return Path(shutil.copy(package, folder / "groupledger.zip"))


def site_packages(folder: Path) -> Path:
    """The packages of an environment."""
    (found,) = folder.glob("lib/python*/site-packages")
    return found


def _pip(*arguments: str) -> None:
    command = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)
    subprocess.run(command, check=True)
