"""`solve --custom`: custom assignors by option alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from groupledger.cli import main

FAULTY = "tests.core.custom.faulty"


def line(assignor, **of_a):
    members = [
        {"id": "A", "topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 2, **of_a},
        {"id": "B", "topics": ["t"]},
    ]
    return json.dumps({"id": "g", "assignor": assignor, "topics": {"t": 2}, "members": members}) + "\n"


def solved(text, *names):
    options = [part for name in names for part in ("--custom", name)]
    ran = CliRunner().invoke(main, ["solve", *options], input=text)
    return ran.exit_code, [json.loads(each) for each in ran.stdout.splitlines()], ran.stderr


def test_a_line_may_name_what_an_option_named():
    names = [f"{FAULTY}:{name}" for name in ("in_turns", "in_turns_in_steps", "raises")]
    plain = line("range", owned=None, generation=None)
    code, results, _ = solved("".join([*map(line, names), plain]), *names)
    assert code == 0
    assert [result.get("assignment") for result in results] == [
        {"A": [["t", 0]], "B": [["t", 1]]},
        {"A": [["t", 0]], "B": []},
        None,
        {"A": [["t", 0]], "B": [["t", 1]]},
    ]
    assert results[2]["error"].startswith(f"ASSIGNOR_RAISED: {FAULTY}:raises raised KeyError")
    assert [code for code, _ in results[2]["violations"]] == ["ASSIGNOR_RAISED"]


def test_user_data_is_base64():
    code, (result,), _ = solved(
        line("examples.lag_weighted:assign", user_data="eyJ0IjogeyIwIjogOX19"), "examples.lag_weighted:assign"
    )
    assert code == 0
    assert result["assignment"] == {"A": [["t", 0]], "B": []}


@pytest.mark.parametrize(("generation", "kept"), [(1, "B"), (3, "A"), (None, "B"), (-1, "B")])
def test_the_higher_generation_owns(generation, kept):
    """The example gives a partition that two claim to the one of the higher generation; unsaid is the lowest."""
    members = [
        {"id": "A", "topics": ["t"], "owned": [["t", 0]], "generation": generation},
        {"id": "B", "topics": ["t"], "owned": [["t", 0]], "generation": 2},
    ]
    name = "examples.lag_weighted:assign"
    scenario = {"id": "g", "assignor": name, "topics": {"t": 2}, "members": members}
    _, (result,), _ = solved(json.dumps(scenario), name)
    assert ["t", 0] in result["assignment"][kept]


@pytest.mark.parametrize("named", [(), (f"{FAULTY}:in_turns",)])
def test_a_line_imports_nothing(named):
    code, (result,), _ = solved(line("antigravity:geohash"), *named)
    assert code == 3
    assert result["error"].startswith("UNKNOWN_ASSIGNOR: assignor is 'antigravity:geohash'")
    assert "antigravity" not in sys.modules


def test_an_option_that_names_nothing_ends_the_command():
    code, results, said = solved(line("range"), "no_such_module:assign")
    assert (code, results) == (2, [])
    assert "cannot import no_such_module:assign" in said


HARM = {
    "reading_it_leaves": "ASSIGNOR_ANSWER_MALFORMED",
    "reading_it_fails": "ASSIGNOR_ANSWER_MALFORMED",
    "exits": "ASSIGNOR_DIED",
    "prints": "ASSIGNOR_DIED",
    "patches": "ASSIGNOR_DIED",
    "never_ends": "ASSIGNOR_TIMED_OUT",
    "wants_everything": "ASSIGNOR_OUT_OF_MEMORY",
}


@pytest.mark.parametrize("command", ["solve", pytest.param("simulate", marks=pytest.mark.long)])
def test_code_that_means_harm_costs_its_own_lines_alone(command):
    """The command runs as a person runs it: what reaches its stdout is answers and nothing else."""
    names = [f"tests.core.custom.hostile:{name}" for name in HARM]
    options = [part for name in names for part in ("--custom", name)]
    limits = ["--custom-seconds", "5", "--custom-memory-mb", "512"]
    lines = [SAID[command](name, member) for name in names for member in ("good", "evil", "good")]
    ran = subprocess.run(  # what a person types
        [sys.executable, "-m", "groupledger", command, *options, *limits],
        input="".join(lines).encode(),
        capture_output=True,
        check=False,
        timeout=300,
    )
    results = [json.loads(each) for each in ran.stdout.splitlines()]
    assert (len(results), ran.stderr) == (len(lines), b"")
    for at, code in enumerate(HARM.values()):
        first, evil, last = results[3 * at : 3 * at + 3]
        assert first == last
        assert "error" not in first
        assert code in json.dumps(evil)
        assert "evil" not in json.dumps(first)


def one_scenario(assignor, member):
    scenario = {"id": "g", "assignor": assignor, "topics": {"t": 1}, "members": [{"id": member, "topics": ["t"]}]}
    return json.dumps(scenario) + "\n"


def one_script(assignor, member):
    join = {"event": "join", "member": member, "topics": ["t"], "assignors": [assignor]}
    return json.dumps({"id": "g", "topics": {"t": 1}, "events": [join]}) + "\n"


SAID = {"solve": one_scenario, "simulate": one_script}
