"""Compiled kernels are kept under the digest of their code alone: zips, other folders and fresh homes share them."""

import json
import os
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
CALLEE = """
from groupledger.core.arrays.kernels import kernel

@kernel
def twice(n: int) -> int:
    return n * {factor}
"""
CALLER = """
import numpy as np
from groupledger.core.arrays.kernels import kernel
from numbers_of.callee import twice

TABLE = np.arange({first}, {first} + 3)

@kernel
def total(values) -> int:
    result = 0
    for value in values:
        result += twice(value) + TABLE[0]
    return result
"""
ASK = """
import json, sys
import numpy as np
from groupledger.core.arrays import kernels
from numbers_of.caller import total

before = kernels._compiled_before(total)
answer = int(kernels.run(total, np.arange(3), cells=1))
print(json.dumps([before, kernels.compiled(total).stats.cache_misses != {}, answer]))
"""
COMPILED, LOADED = [False, True], [True, False]
"""Whether a kept kernel was expected, and whether one was compiled."""
pytestmark = pytest.mark.slow


def package(folder, *, factor=2, first=0):
    """A package of kernels in a folder."""
    where = folder / "numbers_of"
    where.mkdir(parents=True)
    (where / "__init__.py").write_text("")
    (where / "callee.py").write_text(CALLEE.format(factor=factor))
    (where / "caller.py").write_text(CALLER.format(first=first))
    return folder


def zipped(folder):
    """The same package in a zip."""
    target = folder.with_suffix(".zip")
    with zipfile.ZipFile(target, "w") as archive:
        for file in folder.rglob("*.py"):
            archive.write(file, file.relative_to(folder))
    return target


def started(path, **environment):
    variables = os.environ | {"GROUPLEDGER_KERNELS": "numba", "PYTHONPATH": os.pathsep.join([str(path), str(SOURCES)])}
    variables |= {name: str(value) for name, value in environment.items()}
    command = [sys.executable, "-c", ASK]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answered(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    *how, result = json.loads(out)
    return how, result


def asked(path, home, **environment):
    """How `total` was had in another process, and what it returned."""
    return answered(started(path, **{"XDG_CACHE_HOME": home, "TMPDIR": home} | environment))


def test_a_zip_a_folder_and_another_folder_share_one_compiled_kernel(tmp_path):
    there = package(tmp_path / "there")
    home = tmp_path / "home"
    home.mkdir()
    assert asked(zipped(there), home) == (COMPILED, 6)
    assert asked(zipped(package(tmp_path / "elsewhere")), home) == (LOADED, 6)
    assert asked(there, home) == (LOADED, 6)


def test_a_changed_callee_or_constant_is_compiled_again(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    assert asked(package(tmp_path / "one"), home) == (COMPILED, 6)
    assert asked(package(tmp_path / "two", factor=3), home) == (COMPILED, 9)
    assert asked(package(tmp_path / "three", first=1), home) == (COMPILED, 9)


@pytest.mark.long
def test_a_home_that_cannot_be_written_to_gives_way_to_a_temporary_folder_of_ours(tmp_path):
    there, home = package(tmp_path / "there"), Path("/proc/nowhere")
    assert asked(there, home, TMPDIR=tmp_path) == (COMPILED, 6)
    assert asked(there, home, TMPDIR=tmp_path) == (LOADED, 6)
    (ours,) = tmp_path.glob("groupledger-kernels-*")
    ours.chmod(0o777)
    how, result = asked(there, home, TMPDIR=tmp_path)
    assert (how, result) == (COMPILED, 6), "what others can write to is not unpickled"


@pytest.mark.long
def test_a_folder_that_is_named_is_read_even_if_it_cannot_be_written_to(tmp_path):
    there, given, home = package(tmp_path / "there"), tmp_path / "given", Path("/proc/nowhere")
    assert asked(there, home, GROUPLEDGER_KERNEL_CACHE=given) == (COMPILED, 6)
    assert asked(there, home, GROUPLEDGER_KERNEL_CACHE=given) == (LOADED, 6)


@pytest.mark.long
def test_what_was_compiled_for_any_processor_is_loaded_on_this_one(tmp_path):
    there, home = package(tmp_path / "there"), tmp_path / "home"
    home.mkdir()
    assert asked(there, home, NUMBA_CPU_NAME="generic") == (COMPILED, 6)
    assert asked(there, home) == (LOADED, 6)


def test_two_processes_that_compile_at_once_do_not_harm_one_another(tmp_path):
    there, home = package(tmp_path / "there"), tmp_path / "home"
    home.mkdir()
    both = [started(there, XDG_CACHE_HOME=home) for _ in range(2)]
    assert [answered(each)[1] for each in both] == [6, 6]
    assert asked(there, home) == (LOADED, 6)


@pytest.mark.long
def test_a_damaged_file_is_compiled_again_and_replaced(tmp_path):
    there, home = package(tmp_path / "there"), tmp_path / "home"
    home.mkdir()
    asked(there, home)
    for damaged in home.rglob("*.nb?"):
        damaged.write_bytes(b"")
    assert asked(there, home) == ([True, True], 6)
    assert asked(there, home) == (LOADED, 6)


def test_no_overload_takes_the_file_of_another(tmp_path):
    """numba's index of a function has them all: of two processes that add to it at once, one reads the other's code."""
    from groupledger.core.arrays.kernel_cache import KernelFiles

    one, other = (KernelFiles("total_0", [tmp_path]) for _ in range(2))
    magic = ("x86_64", "znver5", "")
    first, second = (("int64",), magic, "code"), (("int32",), magic, "code")
    one.save(first, b"of int64")
    other.save(second, b"of int32")
    names = sorted(path.name for path in tmp_path.rglob("*.nbc"))
    assert len(names) == 2
    assert [one.load(first), one.load(second)] == [b"of int64", b"of int32"]


def test_fields_that_change_places_are_another_type(tmp_path):
    import numba

    from groupledger.core.arrays.kernel_cache import KernelFiles

    files = KernelFiles("total_0", [tmp_path])
    for fields in ("first last", "last first"):
        inner = namedtuple("Range", fields)  # type: ignore[misc]
        kind = numba.typeof(namedtuple("Ranges", "one")(inner(1, 2)))  # type: ignore[call-arg]
        files.save(((kind,), ("x86_64", "znver5", ""), "code"), fields)
    assert len(list(tmp_path.rglob("*.nbc"))) == 2


def test_a_place_that_cannot_be_written_to_stops_nothing(tmp_path):
    from groupledger.core.arrays.kernel_cache import KernelFiles

    (tmp_path / "taken").write_text("a file where a folder is wanted")
    files = KernelFiles("total_0", [tmp_path / "taken"])
    key = (("int64",), ("x86_64", "znver5", ""), "code")
    files.save(key, b"code")
    assert files.load(key) is None
