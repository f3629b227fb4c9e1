"""Names that would steer a terminal: spelled out in whatever a person reads, exact in what a program reads."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.output import Output
from tests.hostile_ids import HOSTILE_ID, RAW

CLI = Path(__file__).parents[2] / "src" / "groupledger" / "cli"
ARGUMENT = HOSTILE_ID.replace("\ud800", "\udcff")  # a byte that is no UTF-8, as Python hands it over
OF_PRINTING = {"print", "echo", "secho", "write", "writelines"}


def quiet(ran):
    """Nothing that was printed steers a terminal."""
    assert RAW.search(ran.output) is None, repr(ran.output)
    return ran


def scenario(name):
    member = {"id": name, "topics": [name], "instance_id": name}
    return {"id": name, "assignor": "range", "topics": {name: 2}, "members": [member]}


def script(name):
    return {"id": name, "topics": {name: 2}, "events": [{"event": "join", "member": name, "topics": [name]}]}


def test_every_way_out_of_a_command_spells_names_out(capsys):
    output = Output(as_json=False)
    output.title(HOSTILE_ID)
    output.line(HOSTILE_ID)
    output.table([HOSTILE_ID, "n"], [(HOSTILE_ID, 1), ([HOSTILE_ID], 2)])
    with output.status(HOSTILE_ID) as telling:
        telling(HOSTILE_ID)
    Output(as_json=True).result({HOSTILE_ID: [HOSTILE_ID]})
    out = capsys.readouterr().out
    assert RAW.search(out) is None
    assert out.count(r"\x1b") >= 4
    assert json.loads(out.splitlines()[-1]) == {HOSTILE_ID: [HOSTILE_ID]}


def test_solve_gives_the_very_names_back():
    ran = quiet(CliRunner().invoke(main, ["solve"], input=f"{json.dumps(scenario(HOSTILE_ID))}\n"))
    assert json.loads(ran.stdout)["assignment"] == {HOSTILE_ID: [[HOSTILE_ID, 0], [HOSTILE_ID, 1]]}


def test_simulate_gives_the_very_names_back_or_spells_them_out():
    line = f"{json.dumps(script(HOSTILE_ID))}\n"
    ran = quiet(CliRunner().invoke(main, ["simulate"], input=line))
    assert json.loads(ran.stdout)["events"][0]["rounds"][0]["members"][0]["member"] == HOSTILE_ID
    assert r"\u202e" in quiet(CliRunner().invoke(main, ["simulate", "--table"], input=line)).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "--config", ARGUMENT],
        ["show", "--set", ARGUMENT],
        ["show", "--set", f"{ARGUMENT}=3"],
        ["show", "--set", f"cluster_id={ARGUMENT}"],
        ["show", "--partition", ARGUMENT, "--at", "0"],
        ["show", "--partition", "t-0", "--at", ARGUMENT],
        ["show", "--limit", ARGUMENT],
        ["show", f"--{ARGUMENT}"],
        [ARGUMENT],
        [f"--{ARGUMENT}"],
        ["solve", ARGUMENT],
        ["solve", "--assignor", ARGUMENT],
        ["assign", "--assignor", ARGUMENT],
        ["maintain", "--table", ARGUMENT],
        ["jars", ARGUMENT],
        ["rehearse", "g", "--listener", ARGUMENT],
        ["plan-migration", "--from", ARGUMENT],
        ["plan-migration", "--from", "range", "--client", ARGUMENT],
    ],
    ids=lambda arguments: ascii(arguments)[:60],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_complaint_spells_names_out(arguments, as_json):
    ran = quiet(CliRunner().invoke(main, [*arguments, *(["--json"] if as_json else [])], input=""))
    assert ran.exit_code == 2
    assert len(ran.stderr.splitlines()) == 1
    if as_json:
        assert json.loads(ran.stdout)["status"] == "failed"


def test_nothing_but_the_one_module_prints():
    """So that a new command cannot forget it."""
    found = []
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
                if name in OF_PRINTING and path.name != "output.py":
                    found.append(f"{path.name}:{node.lineno} {name}")
    assert found == []
