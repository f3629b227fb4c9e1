"""Custom assignors by name: entry points and module:function, and what is said where nothing is found."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint

import pytest

from groupledger.core.custom import Protocol, assignor_names
from groupledger.core.custom.assignor_names import find, find_all, may_be_custom, source_digests
from groupledger.core.custom.custom_group import CustomLimits
from groupledger.core.faults import Fault

FAULTY = "tests.core.custom.faulty"


@pytest.fixture
def entry_points(monkeypatch):
    points: list[EntryPoint] = []
    monkeypatch.setattr(assignor_names, "_entry_points", lambda name: [each for each in points if each.name == name])
    return lambda name, value: points.append(EntryPoint(name, value, assignor_names.ENTRY_POINTS))


def test_a_function_says_its_protocols_and_its_name():
    found = find(f"{FAULTY}:in_turns_in_steps")
    assert found.supported_protocols == {Protocol.EAGER, Protocol.COOPERATIVE}
    assert (found.cooperative, found.protocol_name) == (True, "in-turns-in-steps")
    plain = find(f"{FAULTY}:raises")
    assert plain.supported_protocols == {Protocol.EAGER}
    assert (plain.cooperative, plain.protocol_name) == (False, None)


def test_an_entry_point_is_found_by_its_name(entry_points):
    entry_points("turns", f"{FAULTY}:in_turns")
    assert may_be_custom("turns")
    found = find("turns")
    assert (found.name, found.source, found.function) == ("turns", f"{FAULTY}:in_turns", None)
    entry_points("turns", f"{FAULTY}:raises")
    with pytest.raises(Fault, match=r"entry point of groupledger.assignors twice"):
        find("turns")


def test_what_an_installed_package_declares_is_found(tmp_path, monkeypatch):
    package = tmp_path / "turns-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: turns\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[groupledger.assignors]\ninstalled-turns = {FAULTY}:in_turns\n")
    assert not may_be_custom("installed-turns")
    monkeypatch.syspath_prepend(tmp_path)
    assert may_be_custom("installed-turns")
    assert find("installed-turns").protocol_name == "in-turns"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module:assign", "cannot import no_such_module:assign: ModuleNotFoundError"),
        (f"{FAULTY}:no_such_function", "AttributeError"),
        (f"{FAULTY}:NOT_CALLABLE", "is a int; expected a function of a Group"),
        (f"{FAULTY}:off_protocol", "supported_protocols of .* is .*LAZY.*; expected EAGER, COOPERATIVE"),
        ("nowhere", "expected module:function or an entry point"),
    ],
)
def test_what_cannot_be_imported_is_said(name, says):
    with pytest.raises(Fault, match=says) as raised:
        find(name)
    assert raised.value.code == "ASSIGNOR_NOT_FOUND"


def test_a_module_that_breaks_while_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "breaks_on_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Fault, match="ZeroDivisionError: division by zero"):
        find("breaks_on_import:assign")


@pytest.mark.parametrize("name", ["range:", ":f", "a b:c", "a:b:c", "a.:b", "os", "../a:b", "a:b.c", ""])
def test_a_name_of_another_form_is_none(name):
    assert not may_be_custom(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise SystemExit(0)", "cannot import harmful:assign: SystemExit: 0; expected a module on the Python path"),
        ("import os\nprint('no!', flush=True)\nos._exit(4)", "its process ended with status 4"),
        ("import os, sys\nsys.stderr.write('oh'), sys.stderr.flush(), os._exit(4)", "at the end of its stderr: oh"),
        ("import os\nos.closerange(3, 4096)", "its process"),
        ("import os\nfor at in range(3, 4096):\n  try: os.write(at, b'{}\\n')\n  except OSError: pass", "not asked"),
        ("x = bytearray(20 << 30)", "MemoryError"),
        ("while True: pass", "its process did not answer within 6 s"),
        ("def assign(group): return {}\nassign.assignor_name = 3", "the name of harmful:assign is 3; expected a text"),
        ("class Lazy:\n  def __getattr__(self, name): raise SystemExit(0)\nassign = Lazy()", "is a Lazy; expected"),
    ],
)
def test_a_module_that_does_harm_while_it_is_imported(tmp_path, monkeypatch, capfd, text, says):
    (tmp_path / "harmful.py").write_text(text + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Fault, match=re.escape(says)) as raised:
        find("harmful:assign", CustomLimits(1, 512))
    assert raised.value.code == "ASSIGNOR_NOT_FOUND"
    assert "harmful" not in sys.modules
    assert capfd.readouterr() == ("", "")


def test_asking_whether_a_name_may_be_custom_imports_nothing():
    assert may_be_custom("antigravity:geohash")
    assert "antigravity" not in sys.modules


def test_another_source_is_another_digest(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in (("one_way", "def assign(group): return {}\n"), ("other_way", "def assign(group): return 3\n")):
        (tmp_path / f"{name}.py").write_text(text)
    digests = source_digests(find_all(["other_way:assign", "one_way:assign"]))
    assert list(digests) == ["one_way:assign", "other_way:assign"]
    assert len(set(digests.values())) == 2
