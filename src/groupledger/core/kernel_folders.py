"""Name the folders of compiled kernels: by numba, Python and processor, never by where the code lies.

They are asked for a kernel before numba is loaded, which takes longer than a small piece of work.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

VARIABLE = "GROUPLEDGER_KERNEL_CACHE"
"""A folder to look in first, such as the unpacked archive of `groupledger kernels`."""


def is_kept(name: str) -> bool:
    """Return whether a kernel of this name was compiled before, in a form that can run here."""
    kinds = [kind(generic=generic) for generic in (False, True)]
    return any(any((root / each).glob(f"{name}-*.nbi")) for root in roots() for each in kinds)


def roots() -> list[Path]:
    """Return the folders that kernels are read from; the first that can be written to gets new ones.

    The last is for homes that cannot be written to. What is in it is run, so it is left out if others can write to it.
    """
    named, cache = os.environ.get(VARIABLE), os.environ.get("XDG_CACHE_HOME")
    found = [Path(named).absolute()] if named else []
    with suppress(RuntimeError):  # a user without a home
        found.append(Path(cache or Path.home() / ".cache", "groupledger", "kernels"))
    last = Path(tempfile.gettempdir(), f"groupledger-kernels-{os.getuid()}")
    there = last.lstat() if os.path.lexists(last) else None
    ours = there is None or (there.st_uid == os.getuid() and not there.st_mode & 0o022)
    return [*found, last] if ours else found


@functools.cache
def kind(*, generic: bool) -> str:
    """Return the folder of kernels compiled for this processor, or for every processor of its kind."""
    try:
        numba = importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        numba = "unknown"
    cpu = "generic" if generic else _features()
    return f"numba-{numba}-{sys.implementation.cache_tag}-{sys.platform}-{platform.machine()}-{cpu}"


def _features() -> str:
    """Return a digest of what the processor can do: a home may be shared by machines of several kinds."""
    try:
        with Path("/proc/cpuinfo").open("rb") as listed:
            found = re.search(rb"^(?:flags|Features)\s*:(.*)$", listed.read(1 << 13), re.MULTILINE)
    except OSError:
        found = None
    return hashlib.sha256(found[1]).hexdigest()[:8] if found else "own"
