"""docs/guides/decide/write-an-assignor.md: its code runs, its list of codes is whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from groupledger.config import parse
from groupledger.core.custom import Group, Member, Protocol, TopicPartition
from groupledger.core.custom.contract import examine
from groupledger.core.custom.custom_group import CustomAssignor
from tests.pages import blocks

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides/decide/write-an-assignor.md").read_text(encoding="utf-8")
OWNED = tuple(TopicPartition("t", number) for number in range(3))
GROUP = Group((Member("A", ("t",), OWNED), Member("B", ("t", "u"))), {"t": 3, "u": 1})


def test_the_code_runs_and_keeps_the_contract():
    names: dict[str, Any] = {}
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/guides/decide/write-an-assignor.md", "exec", dont_inherit=True), names)  # noqa: S102 our own page
    for name, cooperative in (("assign", False), ("assign_in_steps", True)):
        protocols = frozenset(names[name].supported_protocols)
        assert (Protocol.COOPERATIVE in protocols) == cooperative
        found = examine(CustomAssignor(name, names[name], protocols, None), GROUP)
        assert found.complaints == ()
        assert found.target == {"A": (("t", 0), ("t", 2)), "B": (("t", 1), ("u", 0))}
        assert (found.assigned == found.target) != cooperative


def test_the_configuration_loads():
    (block,) = blocks(PAGE, "yaml")
    settings = yaml.safe_dump({"cluster_id": "c", "ledger": {"location": "l"}, **yaml.safe_load(block)})
    assert parse(settings, "page").assign.custom_assignors == ("my_package.assignors:assign",)


def test_every_code_is_listed_and_none_besides():
    folder = ROOT / "src" / "groupledger" / "core" / "custom"
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    assert set(re.findall(r"^\| `(ASSIGNOR_\w+)`", PAGE, re.MULTILINE)) == set(re.findall(r'"(ASSIGNOR_\w+)"', source))
