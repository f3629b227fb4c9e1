"""`solve`: a filter between programs, line by line, that starts no engine."""

import gzip
import json
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from tests.pages import blocks

PARITY = Path(__file__).parent.parent / "data" / "parity"
PAGE = Path(__file__).parents[2] / "docs" / "guides/decide/solve-one-group.md"
SCENARIO = '{"id": "a", "assignor": "range", "topics": {"t": 3}, "members": [{"id": "m1", "topics": ["t"]}]}'
ANSWER = [["t", 0], ["t", 1], ["t", 2]]


def solved(text, *options):
    ran = CliRunner().invoke(main, ["solve", *options], input=text)
    return ran.exit_code, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr


def kafkas_own(name, count=50):
    with gzip.open(PARITY / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, count)]


def as_read(scenario):
    """Without what members said and this assignor does not read: range and roundrobin no claims, the others no id."""
    unread = ("instance_id",) if "sticky" in scenario["assignor"] else ("owned", "generation")
    members = [{key: value for key, value in each.items() if key not in unread} for each in scenario["members"]]
    return {**scenario, "members": members}


@pytest.mark.parametrize("name", ["homog.jsonl.gz", "static.jsonl.gz"])
def test_answers_are_kafkas_in_order(name):
    pairs = kafkas_own(name)
    code, results, _ = solved("".join(json.dumps(as_read(pair["scenario"])) + "\n" for pair in pairs))
    assert code == 0
    assert [result["id"] for result in results] == [pair["scenario"]["id"] for pair in pairs]
    assert [result.get("assignment") for result in results] == [pair["result"].get("assignment") for pair in pairs]
    assert [result.get("error") for result in results] == [pair["result"].get("error") for pair in pairs]


def test_scenarios_of_the_page_have_the_results_it_shows():
    shown = [json.loads(block) for block in blocks(PAGE.read_text(encoding="utf-8"), "json")]
    code, results, _ = solved("".join(f"{json.dumps(scenario)}\n" for scenario in shown[::2]))
    assert code == 0
    assert results == shown[1::2]


BAD_LINES = [
    "", "half {", "[]", "3", "null", '"text"', "{}", '{"id": "x", "assignor": "rnage", "topics": {}, "members": []}',
    '{"id": 3, "assignor": "range", "topics": [], "members": []}', '{"assignor": "range", "members": {}}',
    '{"assignor": "range", "topics": {"t": -1}, "members": []}',
    '{"assignor": "range", "topics": {"t": "3"}, "members": []}',
    '{"assignor": "range", "topics": {"t": 3}, "members": [{"id": "m", "topics": []}, {"id": "m", "topics": []}]}',
    '{"assignor": "range", "topics": {"t": 3}, "members": [{"id": "m", "topics": "t"}]}',
    '{"assignor": "range", "topics": {"t": 3}, "members": [{"id": 7, "topics": ["t"]}]}',
    '{"assignor": "range", "topics": {"t": 3}, "members": [{"topics": ["t"]}]}',
    '{"assignor": "range", "topics": {"t": 3}, "members": [3]}',
    '{"assignor": "sticky", "topics": {"t": 3}, "members": [{"id": "m", "topics": ["t"], "owned": [["t"]]}]}',
    '{"assignor": "sticky", "topics": {"t": 3}, "members": [{"id": "m", "topics": ["t"], "owned": [["t", "x"]]}]}',
    '{"assignor": "sticky", "topics": {"t": 3}, "members": [{"id": "m", "topics": ["t"], "user_data": "*"}]}',
    '{"assignor": "range", "topics": {"t": 1e400}, "members": []}',
    '{"assignor": "range", "topics": {"t": 99999999999999}, "members": [{"id": "m", "topics": ["t"]}]}',
    "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:60])
def test_a_bad_line_is_an_error_with_its_number_and_harms_no_other(line):
    code, results, stderr = solved(f"{SCENARIO}\n{line}\n{SCENARIO}\n")
    assert (code, stderr, len(results)) == (3, "groupledger: 1 line was no scenario [BAD_LINE]\n", 3)
    assert [result["assignment"] for result in (results[0], results[2])] == [{"m1": ANSWER}] * 2
    assert results[1]["line"] == 2
    assert isinstance(results[1]["error"], str)


def test_bad_lines_exit_with_3_after_all_lines():
    code, results, stderr = solved(f"nonsense\n{SCENARIO}\n[]\n")
    assert (code, len(results)) == (3, 3)
    assert stderr == "groupledger: 2 lines were no scenario [BAD_LINE]\n"
    assert solved(f"{SCENARIO}\n")[0] == 0


def test_an_exception_of_the_assignor_is_an_answer_as_kafka_gives_it():
    unknown = SCENARIO.replace('{"t": 3}', "{}").replace("range", "cooperative-sticky").replace('"a"', '"\\"line\\": "')
    assert solved(f"{unknown}\n")[0] == 0


SERVER = {
    "id": "s",
    "assignor": "server-uniform",
    "topics": {"t": {"id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": 2}},
    "members": [{"id": "m", "topics": ["t"]}],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"assignor": "server-best"}, "assignor is 'server-best'; expected one of server-"),
        ({"topics": {"t": 3}}, "topics.t is 3; expected an object"),
        ({"topics": ["t"]}, "topics is ['t']; expected an object"),
        ({"topics": None}, "topics is nothing; expected an object"),
        ({"topics": {"t": {"partitions": 2}}}, "topics.t.id is nothing; expected a topic id"),
        ({"topics": {"t": {"id": "AAAAAAAAAAAAAAAAAAAAAQ"}}}, "topics.t is nothing; expected a whole number"),
        ({"topics": {"t": {"id": "*", "partitions": 2}}}, "topics.t.id is '*'; expected a topic id"),
        ({"topics": {"t": {"id": 7, "partitions": 2}}}, "topics.t.id is 7; expected a topic id"),
        ({"members": {"m": []}}, "members is {'m': []}; expected a list"),
        ({"members": ["m"]}, "members.0 is 'm'; expected an object"),
        ({"members": [{"id": "m", "topics": ["t"], "assigned": "t"}]}, "members.0.assigned is 't'; expected a list"),
        ({"members": [{"id": "m", "topics": ["t"], "assigned": [["u", 0]]}]}, "members.0.assigned is 'u'; expected"),
        ({"deleted": ["x"]}, "deleted is ['x']; expected an object"),
        ({"deleted": {"x": 3}}, "deleted.x is 3; expected a topic id"),
        ({"history": 3}, "history is 3; expected a list"),
        ({"history": [["m"]]}, "history.0 is ['m']; expected [member, change]"),
        ({"history": [["m", "x"]]}, "history.0 is 'x'; expected a whole number"),
        ({"subscription_type": "both"}, "subscription_type is 'both'; expected one of homogeneous, heterogeneous"),
        ({"subscription_type": ["x"]}, "subscription_type is ['x']; expected one of homogeneous, heterogeneous"),
        ({"joining": 3}, "joining is 3; expected"),
    ],
    ids=str,
)
def test_a_server_scenario_in_the_wrong_form_says_where(change, said):
    code, [result], _ = solved(json.dumps(SERVER | change) + "\n")
    if said is None:
        assert (code, result["assignment"]) == (0, {"m": [["t", 0], ["t", 1]]})
    else:
        assert code == 3
        assert said in result["error"]
        assert not re.search("[A-Z][a-z]+Error", result["error"])


@pytest.mark.parametrize("name", ["\\ud800", "gr\u00fc\u00df", "\U0001f600", "a\\u0000b"])
def test_any_name_comes_back(name):
    _, results, _ = solved(SCENARIO.replace("m1", name) + "\n")
    assert results[0]["assignment"] == {json.loads(f'"{name}"'): ANSWER}


def test_bytes_that_are_no_utf8_are_answered():
    ran = subprocess.run(
        [sys.executable, "-m", "groupledger", "solve"],
        input=SCENARIO.encode().replace(b"m1", b"\xff") + b"\n" + SCENARIO.encode() + b"\n",
        capture_output=True,
        check=True,
    )
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == ["a", "a"]


def test_a_file_is_read_as_well_as_stdin(tmp_path):
    (tmp_path / "scenarios.jsonl").write_text(SCENARIO)
    ran = CliRunner().invoke(main, ["solve", str(tmp_path / "scenarios.jsonl")])
    assert json.loads(ran.stdout)["assignment"] == {"m1": ANSWER}
    assert CliRunner().invoke(main, ["solve", str(tmp_path / "nowhere.jsonl")]).exit_code == 2


def test_each_answer_comes_before_the_next_question():
    with subprocess.Popen(
        [sys.executable, "-m", "groupledger", "solve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        for _ in range(3):
            process.stdin.write(SCENARIO + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == "a"
        process.stdin.close()
    assert process.returncode == 0


def test_no_engine_is_imported():
    program = (
        "import sys; from groupledger.cli import main\n"
        "try: main(['solve'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('pyspark', 'pandas', 'pyarrow', 'delta', 'rich', 'numba') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], input=SCENARIO, capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.splitlines()[-1] == "[]"
