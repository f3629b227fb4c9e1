"""An archive of all compiled kernels, for executors that start without a cache: containers, homes that are read-only.

They are compiled for every processor of this machine's kind, since the driver's need not be the executors'.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from groupledger import __version__
from groupledger.core.arrays.kernels import VARIABLE, kind, roots
from groupledger.core.digest import code_digest
from groupledger.core.faults import Fault
from groupledger.engine.jars import spark_version

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
