"""`groupledger simulate --compare`, `--summary`, and files of scripts in YAML and JSON."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from tests.cli.test_simulate import old_leader

SCRIPT = """\
id: restart
topics: {orders: 8}
times: {round_trip_ms: 4, processing_ms: 50, records_per_second: 100}
events:
  - {event: join, member: a, topics: [orders]}
  - {event: join, member: b, topics: [orders]}
  - {event: leave, member: a, at_ms: 60000}
  - {event: restart, member: a, at_ms: 65000}
"""
ROUNDS = {"id": "rounds", "topics": {"t": 2}, "events": [{"event": "join", "member": "a", "topics": ["t"]}]}
ALL = "range,cooperative-sticky,cooperative-sticky+static,consumer"


@pytest.fixture
def simulated(tmp_path, monkeypatch):
    """Run `simulate` where these files are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "restart.yaml").write_text(SCRIPT)
    (tmp_path / "rounds.json").write_text(json.dumps(ROUNDS, indent=2))
    (tmp_path / "rounds.jsonl").write_text(f"{json.dumps(ROUNDS)}\n{json.dumps(ROUNDS | {'id': 2})}\n")
    (tmp_path / "two.yml").write_text(f"{SCRIPT}---\n- {json.dumps(ROUNDS)}\n- {json.dumps(ROUNDS)}\n")
    (tmp_path / "listed.json").write_text(json.dumps([ROUNDS, ROUNDS]))

    def run(*words, given=None):
        return CliRunner(env={"COLUMNS": "80"}).invoke(main, ["simulate", *words], input=given)

    return run


def test_a_line_for_each_variant_in_80_columns(simulated):
    done = simulated("restart.yaml", "--compare", ALL)
    assert done.exit_code == 0
    title, head, *rows = done.stdout.strip().splitlines()
    assert title == "restart, sums over all events"
    assert head.split() == ["variant", "rounds", "moves", "revoked", "partition-ms", "each", "twice"]
    assert [row.split()[0] for row in rows] == ALL.split(",")
    assert rows[-1].split()[1] == "-"  # a consumer group has no rounds
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_members_without_a_partition_are_told(simulated):
    joins = [{"event": "join", "member": f"c{n}", "topics": ["a", "b"], "together": n < 3} for n in range(4)]
    script = json.dumps({"id": "idle", "topics": {"a": 2, "b": 2}, "events": joins})
    done = simulated("--compare", "range,roundrobin", given=script)
    head, *rows = [line.split() for line in done.stdout.strip().splitlines()[1:]]
    assert [dict(zip(head, row, strict=True)) for row in rows] == [
        {
            "variant": name,
            "rounds": "1",
            "moves": "0",
            "revoked": "0",
            "partition-rounds": "4",
            "each": each,
            "idle": idle,
        }
        for name, each, idle in (("range", "0-2", "2"), ("roundrobin", "1", "-"))
    ]


def test_what_is_compared_as_json_is_what_the_table_says(simulated):
    table = simulated("restart.yaml", "--compare", ALL, "--from-ms", "60000").stdout
    done = simulated("restart.yaml", "--compare", ALL, "--from-ms", "60000", "--json")
    told = json.loads(done.stdout)["comparison"]
    assert told["from_ms"] == 60_000
    for variant in told["scripts"][0]["variants"]:
        cost = variant["cost"]
        counts = [cost[name] for name in ("rounds", "moves", "revoked", "unavailable_ms", "read_twice")]
        assert (variant["least"], variant["most"], variant["idle"]) == (4, 4, 0)
        cells = ["-" if each is None else f"{each:,}" for each in (*counts[:-1], variant["most"], counts[-1])]
        assert [variant["variant"], *cells] in [row.split() for row in table.splitlines()]
        assert [row["number"] for row in variant["events"]] == [3, 4]


def test_a_line_for_each_script(simulated):
    done = simulated("restart.yaml", "rounds.json", "rounds.jsonl", "two.yml", "listed.json", "--summary")
    assert done.exit_code == 0
    title, _, *rows = done.stdout.strip().splitlines()
    assert title == "9 scripts, sums over all events"
    names = ["restart", "rounds", "rounds", "2", "restart", "rounds", "rounds", "rounds", "rounds"]
    assert [row.split()[0] for row in rows] == names
    assert rows[0] == rows[4]


@pytest.mark.parametrize("name", ["rounds.json", "rounds.jsonl", "two.yml", "listed.json"])
def test_a_script_gives_the_same_in_whatever_file_it_stands(simulated, name):
    (line,) = simulated(given=json.dumps(ROUNDS)).stdout.splitlines()
    assert line in simulated(name).stdout.splitlines()


def test_a_script_without_an_id_is_called_by_its_place(simulated, tmp_path):
    (tmp_path / "nameless.jsonl").write_text(2 * f"{json.dumps(ROUNDS | {'id': None})}\n")
    done = simulated("nameless.jsonl", "--summary")
    assert [row.split()[0] for row in done.stdout.strip().splitlines()[2:]] == ["nameless.jsonl:1", "nameless.jsonl:2"]


def test_the_difference_of_two_by_event(simulated):
    done = simulated("restart.yaml", "--compare", "range,cooperative-sticky", "--difference", "--from-ms", "60000")
    shown = done.stdout.partition("restart: cooperative-sticky less range\n")[2].splitlines()
    assert shown[0].split() == ["event", "what", "rounds", "revoked", "partition-ms", "twice"]
    assert [line.split()[:3] for line in shown[1:]] == [["3", "leave", "a"], ["4", "restart", "a"], ["-", "all", "1"]]
    costs = [each["cost"]["unavailable_ms"] for each in variants(simulated, "range,cooperative-sticky")]
    assert f"{costs[1] - costs[0]:,}" in shown[-1].split()


def variants(simulated, asked):
    done = simulated("restart.yaml", "--compare", asked, "--from-ms", "60000", "--json")
    return json.loads(done.stdout)["comparison"]["scripts"][0]["variants"]


def test_what_does_not_settle_or_cannot_be_played_is_told_below(simulated):
    joins = [{"event": "join", "member": name, "topics": ["t"], "assignors": [of]} for name, of in ("ab", "br")]
    joins[0]["assignors"], joins[1]["assignors"] = ["sticky"], ["range"]
    script = json.dumps({"id": "g", "topics": {"t": 1}, "events": joins})
    done = simulated("--compare", "as-written,range,consumer+processing_ms=x", given=f"{script}\nnonsense\n")
    assert done.exit_code == 3
    assert "g, as-written does not settle: event 2, join b: refused: b lists range" in done.stdout
    assert "g, consumer+processing_ms=x cannot be played: BAD_SCRIPT: times.processing_ms" in done.stdout
    assert "<stdin>, script 2: BAD_JSON" in done.stdout
    assert done.stderr == "groupledger: 2 scripts could not be played [BAD_LINE]\n"


def test_two_owners_under_a_variant_exit_with_4(simulated):
    done = simulated("--compare", "as-written,range", given=f"{old_leader()}\n")
    assert done.exit_code == 4
    assert re.search(r"^as-written .* 1$", done.stdout, re.MULTILINE)
    assert simulated("--compare", "range", given=f"{old_leader()}\n").exit_code == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--difference"], "--difference is that of two variants"),
        (["--compare", "range,sticky,consumer", "--difference"], "--difference is that of two variants"),
        (["--compare", "range", "--summary"], "--summary tells scripts as they are written"),
        (["--compare", "range", "--metrics"], "--metrics goes without --compare"),
        (["--summary", "--table"], "--table goes without --compare"),
        (["--grid", "grid.yaml"], "--grid; that is an option of what-if"),
        (["--from-ms", "9"], "--from-ms goes with --compare and --summary"),
        (["--json"], "--json goes with --compare and --summary"),
        (["--compare", "rnage"], "'rnage' of 'rnage' is no change"),
    ],
)
def test_options_that_do_not_go_together(simulated, words, complaint):
    done = simulated("restart.yaml", *words)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_what_is_no_yaml_says_where(simulated, tmp_path):
    (tmp_path / "bad.yaml").write_text("id: a\nevents: [")
    done = simulated("bad.yaml")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("groupledger: bad.yaml: not YAML at line 2")


def test_a_yaml_value_that_is_no_text_is_an_error_of_its_script(simulated, tmp_path):
    (tmp_path / "dated.yaml").write_text(SCRIPT.replace("member: b", "member: 2026-11-24"))
    (tmp_path / "listed.yaml").write_text("- just words\n")
    assert simulated("dated.yaml").exit_code == 0  # a date is a name like any other
    done = simulated("listed.yaml")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["error"].startswith("BAD_SCRIPT: the script is 'just words'")


@pytest.mark.parametrize(
    "text",
    [
        "&a\nid: x\ntopics: {t: 1}\nevents: *a\n",
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"{one}: &{one} [{', '.join(['*' + before] * 10)}]\n" for before, one in pairwise("abcdefghi"))
        + "topics: {t: 1}\nevents: *i\n",
    ],
    ids=["itself", "a bomb"],
)
def test_aliases_without_end_are_refused(simulated, tmp_path, text):
    file = tmp_path / "bomb.yaml"
    file.write_text(text)
    done = simulated(str(file), "--summary")
    assert done.exit_code == 2
    assert "with its aliases more than 2,000,000 values, or nested over 50 deep" in done.stderr
    assert done.stderr.endswith("[BAD_YAML]\n")


def test_a_key_that_is_no_text_is_one(simulated, tmp_path):
    file = tmp_path / "numbers.yaml"
    file.write_text(
        "topics: {3: 2, 2024-01-01: 1, yes: 1}\nevents: [{event: join, member: a, topics: ['3', '2024-01-01']}]\n"
    )
    told = json.loads(simulated(str(file), "--summary", "--json").stdout)
    assert told["comparison"]["scripts"][0]["variants"][0]["unowned"] == 0
