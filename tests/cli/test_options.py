"""Every option is declared once: it has one name, wording, form and default in whatever command takes it."""

from collections import defaultdict

import click
import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.commands import ALIASES, SECTIONS


def commands(group, *words):
    """Each command with the words that name it, those below `report` included."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)
        yield (*words, name), command


COMMANDS = dict(commands(main))


def test_an_option_says_the_same_in_every_command():
    said = defaultdict(lambda: defaultdict(list))
    for words, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                told = option.help, option.metavar, str(option.type.to_info_dict()), option.default, option.multiple
                for name in (*option.opts, *option.secondary_opts):
                    said[name][told, option.name, option.envvar].append(" ".join(words))
    assert {name: dict(forms) for name, forms in said.items() if len(forms) > 1} == {}


def test_what_scripts_of_earlier_versions_say_is_still_understood():
    hidden = {
        name
        for command in COMMANDS.values()
        for each in command.params
        if getattr(each, "hidden", False)
        for name in each.opts
    }
    assert hidden == {"--last", "--from", "--to"}
    done = [
        CliRunner().invoke(main, ["plan-migration", *words, "--client", "kafkajs=2", "--json"]).stdout
        for words in (["--from", "range", "--to", "sticky"], ["--listed", "range", "--assignor", "sticky"])
    ]
    assert done[0] == done[1] != ""


def test_a_group_is_an_argument_and_an_option_wherever_one_is_taken():
    for words, command in COMMANDS.items():
        kinds = {type(each) for each in command.params if each.name in {"group", "named"}}
        assert kinds in (set(), {click.Argument, click.Option}), words
    taken = {words[0] for words, command in COMMANDS.items() if any(each.name == "group" for each in command.params)}
    assert taken >= {
        "show",
        "who",
        "explain",
        "audit",
        "report",
        "rehearse",
        "plan-migration",
        "openmetrics",
        "what-if",
    }


@pytest.mark.parametrize("words", [(), *COMMANDS])
def test_help_fits_80_columns(words):
    lines = (
        CliRunner(env={"COLUMNS": "80"}).invoke(main, [*words, "--help"], prog_name="groupledger").stdout.splitlines()
    )
    assert max(map(len, lines)) <= 80


def test_a_command_is_told_in_one_line_of_80_columns():
    width = 80 - len("  plan-migration  ")
    assert [name for name in main.commands if len(main.commands[name].short_help or "") > width] == []


def test_a_command_is_found_by_another_name():
    assert set(ALIASES.values()) <= {name for names in SECTIONS.values() for name in names}
    for words in (["metrics", "--help"], ["help", "openmetrics"]):
        assert CliRunner().invoke(main, words).stdout.startswith("Usage: main openmetrics ")
    assert CliRunner().invoke(main, ["version"]).stdout.startswith("groupledger, version ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["timeline", "--from", "1h"], "No such option: --from. Did you mean --since?"),
        (["plan-migration", "--asignor", "sticky"], "Did you mean --assignor?"),
        (["explain", "g", "--until", "1h"], "that is an option of timeline, "),
        (["show", "--limt", "3"], "Did you mean --limit?"),
        (["replay", "--verify", "run"], "No such option: --verify; that is a command: verify"),
        (["report", "storms", "--start", "1h"], "Did you mean --since?"),
        (["explain", "g", "4"], "unexpected extra argument (4). Did you mean --generation 4?"),
        (["diff", "g", "1", "99"], "Did you mean --from 1 --to 99?"),
        (["diff", "g", "1", "2", "3"], "unexpected extra arguments (1 2 3). See"),
        (["plan-migration", "g", "4"], "unexpected extra argument (4). See"),
        (["explain", "g", "last"], "unexpected extra argument (last). See"),
        (["ingest", "a b.jsonl"], "ingest takes no files; got a b.jsonl; expected them under sources"),
        (["diff", "g"], "expected --from 5 [--to 6], or --scenarios a,b"),
        (["diff", "g", "--from", "1", "--at", "now"], "expected --from 5 [--to 6], or --scenarios a,b"),
        (["diff", "g", "--scenarios", "a,b", "--to", "1"], "expected --from 5 [--to 6], or --scenarios a,b"),
        (["what-if", "g", "--members=+x"], "'+x' is no number of members; expected +3 or -2"),
        (["readiness", "--to", "kip-848", "--ledger", "nowhere"], "[LEDGER_MISSING]"),
        (["explain", "--at", "1h"], "GROUP'; of all groups: groupledger timeline '*' --since TIME --until TIME. See"),
        (["explain"], "Missing argument 'GROUP'. See"),
    ],
)
def test_what_a_command_does_not_take_leads_to_what_it_takes(words, said):
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert said in done.stderr
