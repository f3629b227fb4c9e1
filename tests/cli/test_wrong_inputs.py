"""Wrong inputs of every kind, command by command: a line says what is wrong; never a trace, never exit code 1."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from groupledger.cli import main
from groupledger.cli.options import Job
from groupledger.cli.output import Output
from tests.answers.histories import History, rows_of
from tests.answers.ledgers import write
from tests.hostile_ids import RAW

ROOT = Path(__file__).parents[2]
TRACE = re.compile(r"Traceback|\w+\.\w+\.\w*(?:Exception|Error)\b|\bat (?:org|java|scala|io)\.|py4j|Caused by|<class '")
ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_CONF_DIR", "HADOOP_CONF_DIR")
SCENARIO = '{"id": "a", "assignor": "range", "topics": {"t": 3}, "members": [{"id": "m1", "topics": ["t"]}]}'
SCRIPT = '{"id": "g", "topics": {"t": 2}, "events": [{"event": "join", "member": "a", "topics": ["t"]}]}'


def judged(arguments, ran, *, code=2, said=""):
    """A wrong input was answered in a line or two that say what is wrong."""
    where = f"groupledger {' '.join(arguments)}\n{ran.stdout[-500:]}\n{ran.stderr}"
    assert ran.exception is None or isinstance(ran.exception, SystemExit), where
    assert ran.exit_code == code, where
    told = ran.stderr.splitlines()
    assert 1 <= len(told) <= 2, where
    assert max(map(len, told)) < 700, where
    assert TRACE.search(ran.stderr) is None, where
    assert TRACE.search(ran.stdout) is None, where
    assert RAW.search(ran.output) is None, where
    assert said in ran.stderr, where


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory with files that are none of what a command expects."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "broken.yaml").write_text("ledger: {location: x\nsources: [")
    (tmp_path / "list.yaml").write_text("- a\n- b\n")
    (tmp_path / "twice.yaml").write_text("cluster_id: a\nledger: 3\n")
    (tmp_path / "again.yaml").write_text("cluster_id: a\nledger: {location: a, location: b}\n")
    (tmp_path / "script.yaml").write_text("cluster_id: !!python/object/apply:os.system ['true']\n")
    (tmp_path / "good.yaml").write_text("cluster_id: edge\nledger:\n  location: ledger\nsources: []\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: pytest.fail("started Spark"))
    return tmp_path


CONFIGURED = ("init", "ingest", "assign", "show", "callbacks", "doctor", "maintain", "migrate", "rebuild", "demo")
NEED_A_LEDGER = (
    *([name] for name in ("assign", "callbacks", "maintain", "migrate", "rebuild", "show")),
    ["timeline", "g"],
    ["replay", "--assignor", "sticky"],
    ["verify", "a-run"],
    ["rehearse", "g", "--listener", "tests.listener.checkpointing:Checkpointing"],
    ["plan-migration", "--group", "g"],
)
FILES = (
    "nowhere.yaml",
    "folder",
    "binary",
    "broken.yaml",
    "list.yaml",
    "twice.yaml",
    "again.yaml",
    "script.yaml",
    "empty.yaml",
)
SETTINGS = (
    *(
        "sprak.master=x",
        "nonsense",
        "=",
        "cluster_id=''",
        "cluster_id=[1]",
        "sources=3",
        "sources.0=x",
        "sources.7.path=x",
    ),
    *(
        "sources.0.kind=kafka",
        "limits.max_quarantined=-1",
        "limits.max_quarantined=many",
        "limits.max_record_bytes=1e99",
    ),
    *("assign.assignor=rnage", "assign.snapshots=all", "spark.profile=huge", "spark.conf=3", "ledger.location=7"),
    *("ledger.catalog=a b", "ledger={}", "buckets=-3", "buckets=0.5", "assign.overrides.0.groups=3", "maintain=[]"),
    *("redaction.names=yes", "cluster_id=*x", "cluster_id={", "spark.driver_memory=lots", "ledger.location.x=3"),
)
QUESTIONS = (
    ["who", "orders", "--at", "0"],
    ["who", "-7", "--at", "0"],
    ["who", "orders--7", "--at", "noon"],
    ["who", "orders-99999999999", "--at", "0"],
    ["who", "orders-7", "--at", "2026-13-01"],
    ["who", "orders-7", "--at", "9223372036854775807"],
    ["who", "orders-7", "--at", ""],
    ["show", "--group", "g", "--generation", "x"],
    ["show", "--group", "g", "--generation", "1", "--last"],
    ["show", "--last"],
    ["show", "--scenario", "recorded"],
    ["show", "--limit", "0"],
    ["show", "--limit", "-5"],
    ["show", "--limit", "1e3"],
    ["show", "--nothing"],
    ["show", "extra"],
    ["ingest"],
    ["ingest", "--config", "good.yaml"],
    ["assign", "--snapshots", "some"],
    ["assign", "--assignor", "stikcy"],
    ["assign", "--max-quarantined", "-1"],
    ["assign", "--scenario", "recorded", "--assignor", "range"],
    ["callbacks", "--hours", "0"],
    ["callbacks", "--hours", "99999999"],
    ["maintain", "--only", "metrcis"],
    ["replay", "--group", "g"],
    ["rehearse", "g", "--listener", "nowhere"],
    ["rehearse", "g", "--listener", "no.such.module:Class"],
    ["rehearse", "g", "--listener", "json:Nothing"],
    ["rehearse", "--listener", "json:JSONDecoder"],
    ["rehearse", "g"],
    ["replay", "--assignor", "range", "--verify", "run"],
    ["replay", "--assignor", "stikcy"],
    ["replay", "--assignor", "range", "--scenario", "baseline"],
    ["replay", "--assignor", "range", "--since", "yesterday"],
    ["verify"],
    ["verify", "run", "--group", "g"],
    ["plan-migration"],
    ["plan-migration", "--listed", "rnage"],
    ["plan-migration", "--listed", ","],
    ["plan-migration", "--listed", "range", "--assignor", "best"],
    ["plan-migration", "--listed", "range", "--client", "java=-3"],
    ["plan-migration", "--listed", "range", "--client", "java=1001"],
    ["plan-migration", "--listed", "range", "--client", "cobol=3"],
    ["plan-migration", "--group", "g", "--config", "nowhere.yaml"],
    ["jars", "nonsense"],
    ["solve", "nowhere.jsonl"],
    ["solve", "folder"],
    ["solve", "--custom", "no.such.module:function"],
    ["solve", "--custom", "json"],
    ["solve", "--strict"],
    ["simulate", "nowhere.jsonl"],
    ["simulate", "folder"],
    ["simulate", "--assignor", "json:nothing"],
    ["sohw"],
    ["--nothing"],
)
LINES = (
    *(
        "",
        "half {",
        "[]",
        "null",
        "{}",
        "\x00",
        "\u2028",
        '{"id": 1}{"id": 2}',
        '{"a": 1e999}',
        '{"members": 3}',
        "[" * 9999,
    ),
    *('{"id": "a", "topics": {"t": NaN}}', '{"topics": {"t": true}, "events": [], "members": []}', "9" * 5000),
    '{"assignor": ["range"], "topics": {}, "members": []}',
    '{"assignor": "server-uniform", "topics": {"t": 3}, "members": []}',
    '{"id": "a", "topics": {"t": 2}, "events": [{"event": "jion", "member": "a"}], "members": {}}',
    '{"id": "a", "topics": {"t": 2}, "events": [{"event": "leave", "member": "a"}], "assignor": 7}',
    '{"id": "a", "topics": {"t": 2}, "events": [], "pace": {"round_ms": -1}, "assignor": {}}',
)


@pytest.mark.parametrize("command", CONFIGURED)
@pytest.mark.parametrize("file", FILES)
def test_a_configuration_that_is_none(place, command, file):
    arguments = [command, "--config", file]
    judged(arguments, CliRunner().invoke(main, arguments))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_that_cannot_be(place, setting):
    arguments = ["ingest", "--config", "good.yaml", "--set", setting]
    judged(arguments, CliRunner().invoke(main, arguments))


@pytest.mark.parametrize("arguments", QUESTIONS, ids=" ".join)
def test_a_question_that_makes_no_sense(place, arguments):
    asked = [*arguments, "--config", "good.yaml"] if arguments[0] in {*CONFIGURED, "replay"} else arguments
    judged(asked, CliRunner().invoke(main, asked, input=""))


@pytest.mark.parametrize("arguments", NEED_A_LEDGER, ids=" ".join)
def test_a_folder_without_a_ledger_is_told_without_spark(place, arguments):
    asked = [*arguments, "--config", "good.yaml"]
    judged(asked, CliRunner().invoke(main, asked), said="there is no ledger at ledger (no table runs)")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "--assignor", "range", "--group", "pya"], "no group 'pya' in this ledger; known: pay"),
        (["replay", "--assignor", "range", "--cluster", "prod"], "no cluster 'prod' in this ledger; known: dev"),
        (["replay", "--assignor", "range", "--since", "1h", "--until", "2h"], "expected since < until"),
        (["views"], "expected one in a catalog (ledger.catalog)"),
        (["verify", "nope"], "no committed run is called 'nope'; the latest: none"),
        (["assign", "--assignor", "nosuch:x"], "cannot import nosuch:x: "),
        (["replay", "--assignor", "nosuch:assign"], "cannot import nosuch:assign: "),
        (["explain", "pay", "--offset", "9999"], "(`groupledger show pay --wide`) [UNKNOWN_RECORD]"),
    ],
)
def test_a_question_about_what_is_not_there_is_answered_without_spark(place, words, said):
    write(place / "known", **rows_of(History("pay").state(1, "m a:0")))
    asked = [*words, "--ledger", "known"]
    judged(asked, CliRunner().invoke(main, asked), said=said)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{kind: offsets-jsonl, path: nosuch.jsonl}", "nosuch.jsonl: there is no such file or table; check sources"),
        ("{kind: topics-jsonl, path: 'file:/no/such'}", "file:/no/such: there is no such file or table"),
        ("{kind: offsets-delta, path: nosuch}", "[SOURCE_MISSING]"),
        ("{kind: snapshots, path: folder, topics: nosuch}", "nosuch: there is no such file or table"),
        ("{kind: segments, path: folder}", "folder: no folder of __consumer_offsets"),
        ("{kind: segments, path: 'nosuch*', glob: true}", "nosuch*: there is no such folder"),
    ],
)
def test_a_source_that_is_not_there_is_told_before_a_ledger_is_made(place, source, said):
    asked = ["ingest", "--config", "good.yaml", "--set", f"sources=[{source}]"]
    judged(asked, CliRunner().invoke(main, asked), said=said)
    assert not (place / "ledger").exists()


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({"spark": {"profile": "cluster"}}, {}),
        ({"spark": {"conf": {"spark.hadoop.fs.defaultFS": "hdfs://h"}}}, {}),
        *(({}, {name: "x"}) for name in ELSEWHERE),
    ],
)
def test_paths_that_may_be_elsewhere_are_left_to_spark(monkeypatch, settings, environment):
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    assert Job.configured("ingest", Output(as_json=False), None, ()).paths_are_here
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert not Job.configured("ingest", Output(as_json=False), None, (), settings).paths_are_here


@pytest.mark.parametrize("command", ["solve", "simulate"])
@pytest.mark.parametrize("line", LINES, ids=lambda line: ascii(line)[:40])
def test_a_line_that_is_none(command, line):
    good = SCENARIO if command == "solve" else SCRIPT
    ran = CliRunner().invoke(main, [command], input=f"{good}\n{line}\n{good}\n")
    judged([command], ran, code=3, said="1 line was no")
    answers = [json.loads(each) for each in ran.stdout.splitlines()]
    assert ["line" in each for each in answers] == [False, True, False]


@pytest.mark.parametrize("command", ["solve", "simulate"])
def test_nothing_to_read_is_nothing_to_answer(command):
    ran = CliRunner().invoke(main, [command], input="")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize(("command", "line"), [("solve", SCENARIO), ("simulate", SCRIPT)])
def test_a_reader_that_has_enough_is_no_error(command, line):
    program = f"{sys.executable} -m groupledger {command} | head -1"
    ran = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program}"],  # noqa: S607
        input=f"{line}\n" * 20_000,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (141, "")
    assert ran.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "redirection", "code"),
    [
        *(("solve", ">&-", 0), ("solve", ">/dev/full", 2), ("solve", "2>&-", 0)),
        *(("aliases", ">&-", 2), ("simulate --table", ">&-", 3), ("show --ledger nowhere", "2>&-", 2)),
    ],
)
def test_an_output_that_takes_nothing(command, redirection, code, tmp_path):
    program = f"cd {tmp_path}; {sys.executable} -m groupledger {command} {redirection}"
    ran = subprocess.run(["bash", "-c", program], input=SCENARIO, capture_output=True, text=True)  # noqa: S607
    assert ran.returncode == code
    assert ran.stderr.count("\n") == (code != 0 and "2>" not in redirection)
    assert TRACE.search(ran.stderr) is None


def test_bytes_that_are_no_text_end_as_bad_lines():
    ran = subprocess.run(
        [sys.executable, "-m", "groupledger", "solve"], input=bytes(range(256)) * 20, capture_output=True
    )
    assert ran.returncode == 3
    assert TRACE.search(ran.stderr.decode()) is None


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"JAVA_HOME": "/nowhere"}, "JAVA_MISSING"),
        ({"PATH": "/nowhere", "JAVA_HOME": ""}, "JAVA_MISSING"),
        ({"GROUPLEDGER_JARS": "/proc/nowhere"}, "NOT_POSSIBLE_HERE"),
        ({"GROUPLEDGER_JARS": "/dev/null"}, "NOT_POSSIBLE_HERE"),
    ],
)
def test_a_machine_that_lacks_something(tmp_path, monkeypatch, environment, code):
    (tmp_path / "good.yaml").write_text("cluster_id: edge\nledger:\n  location: ledger\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("groupledger.engine.jars._retrieve", lambda *_: pytest.fail("fetched jars"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    arguments = ["init", "--config", "good.yaml"]
    judged(arguments, CliRunner().invoke(main, arguments), said=code)
