"""The frame of the command: what it costs to ask for help, what a fault looks like, what JSON promises."""

import json
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.commands import SECTIONS
from groupledger.cli.commands import main as group
from groupledger.cli.exits import Commands, Exit
from groupledger.cli.options import takes
from groupledger.core.faults import Fault


def frame_with(fault):
    @click.group(cls=Commands)
    def commands():
        pass

    @commands.command()
    @takes("json")
    def work(output):
        output.line("working")
        raise fault

    return commands


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("CONFIG_INVALID", 2), ("ANY_OTHER", 2), ("QUARANTINE_OVER_LIMIT", 3), ("WRITE_CONFLICT", 5)],
)
def test_a_fault_is_one_line_and_an_exit_code(code, exit_code):
    ran = CliRunner().invoke(frame_with(Fault(code, "no such\n  thing")), ["work"])
    assert (ran.exit_code, ran.stderr) == (exit_code, f"groupledger: no such thing [{code}]\n")
    assert ran.stdout == "working\n"


def test_a_fault_under_json_is_one_json_line():
    ran = CliRunner().invoke(frame_with(Fault("WRITE_CONFLICT", "another run committed")), ["work", "--json"])
    assert json.loads(ran.stdout) == {
        "status": "failed", "code": "WRITE_CONFLICT", "message": "another run committed",
    }  # fmt: skip
    assert ran.stdout.count("\n") == 1


def test_a_bug_keeps_its_traceback():
    ran = CliRunner().invoke(frame_with(KeyError("ours")), ["work"])
    assert isinstance(ran.exception, KeyError)
    assert ran.exit_code == 1


def test_the_exit_codes_are_those_of_the_help():
    told = CliRunner().invoke(main, ["--help"]).stdout.partition("Exit codes:")[2].partition("Options:")[0]
    assert [int(number) for number in re.findall(r"(\d+) \w", told)] == sorted([*map(int, Exit), 1])


def test_every_command_has_a_line_in_the_help():
    lines = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["--help"]).stdout.splitlines()
    told = [" ".join(line.split()) for line in lines[lines.index("Set up:") :] if line]
    assert all(command.short_help for command in group.commands.values())
    expected = [[f"{heading}:", *(f"{name} {group.commands[name].short_help}" for name in names)]
                for heading, names in SECTIONS.items()]  # fmt: skip
    assert told == [line for section in expected for line in section]


def test_help_imports_click_alone():
    """Processor time of `--help` is that of what it imports."""
    program = (
        "import sys; before = set(sys.modules); from groupledger.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(loaded - sys.stdlib_module_names))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "['click', 'groupledger']"


def test_a_command_imports_no_other():
    program = (
        "import sys; from groupledger.cli import main\n"
        "try: main(['show', '--help'])\n"
        "except SystemExit: pass\n"
        "from groupledger.cli.commands import SECTIONS\n"
        "names = {module for of in SECTIONS.values() for module in of.values()}\n"
        "print(sorted(name for name in names if f'groupledger.cli.{name}' in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "['show']"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "--partition", "orders-7"], "--partition; that is an option of timeline"),
        (["show", "--at", "0"], "one rebalance of a GROUP"),
        (["show", "--at", "0", "--findings"], "one rebalance of a GROUP"),
        (["show", "--last"], "one rebalance of a GROUP"),
        (["show", "g", "--generation", "3", "--at", "0"], "not both. See `"),
        (["show", "g", "--group", "h"], "two groups: 'g' and --group 'h'"),
        (["explain"], "Missing argument 'GROUP'. See `"),
        (["show", "--generation", "3", "--last", "--group", "g"], "not both. See `"),
        (["show", "--findings", "--coverage"], "one of --findings, --coverage and --quarantine"),
        (["show", "--quarantine", "--coverage", "--group", "g"], "one of --findings, --coverage and --quarantine"),
        (["timeline"], "expected a group (timeline payments), a --partition, or both. See `"),
        (["who"], "expected a partition (who orders-7) or --unowned-since, one of them. See `"),
        (["who", "orders", "--at", "0"], "a partition is TOPIC-NUMBER"),
        (["who", "orders-7", "--at", "noon"], "a time is ISO 8601"),
        (["explain", "g", "--generation", "12:09"], "no generation; expected a number, or latest (a time is --at)"),
        (["show", "--set", "sprak.master=x"], "did you mean spark?"),
        (["show", "--set", "nonsense"], "expected key=value"),
        (["show", "--config", "nowhere.yaml"], "nowhere.yaml: cannot read the configuration"),
        (["sohw"], "No such command 'sohw'"),
    ],
)
def test_a_wrong_question_is_answered_before_spark_starts(arguments, said, monkeypatch):
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: pytest.fail("started Spark"))
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 2
    assert said in ran.stderr
