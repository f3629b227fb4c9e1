"""What `--json` prints, held against the schemas that the documentation gives."""

import inspect
import json
import pkgutil
import shlex
from importlib import import_module

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, FormatChecker

from groupledger import answers
from groupledger.cli import main
from groupledger.cli.json_schemas import FORMS, as_text, schema_of
from groupledger.core.wire.offsets_log import LogKey, RecordKind, encode_key, encode_value
from groupledger.core.wire.records import OffsetCommit
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at
from tests.demo.conftest import ROOT

SCHEMAS = ROOT / "docs" / "schemas"
ASKED = [
    "who a-2",
    "who a-2 --at 2026-11-21T14:01Z",
    "who --unowned-since",
    "show",
    "show --group pay",
    "show --group pay --last",
    "show --findings",
    "show --coverage",
    "show --quarantine",
    "show pay --at 2026-11-21T14:01Z",
    "explain pay --generation 2",
    "timeline pay",
    "timeline --partition a-2",
    "diff pay --from 1",
    "diff pay --scenarios baseline,other --generation 2",
    "audit",
    "hand-overs pay",
    "report storms",
    "report skew",
    "report static",
    "report stickiness",
    "report rack",
    "report joins",
    "report migration",
    "report html {folder}",
    "readiness",
    "sql",
    "sql 'SELECT group_id, observed_at FROM current_group_snapshots'",
    "openmetrics",
    "what-if pay --members +1 --partitions a=+3",
    "simulate --compare range,consumer",
]
SCRIPT = '{"id": "g", "topics": {"t": 2}, "events": [{"event": "join", "member": "a", "topics": ["t"]}]}\nnonsense\n'
REFUSED = [
    "simulate --compare rnage",
    "who b-1",
    "show --group pya",
    "explain pya",
    "diff pay --from 9",
    "audit --group x",
    "hand-overs pya",
    "sql 'DROP TABLE a'",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    pay = (
        History("pay", topics=("a",)).state(1, "m/i a:0,1,2").state(2, "m/i a:0,1 | n a:2").state(3, "o/i a:0 | n a:2")
    )
    for row in pay.rows["group_snapshots"]:
        row["complete"] = True
    for row in pay.rows["member_snapshots"]:
        row["rack_id"] = "r"
    key = {"cluster_id": "dev", "group_id": "pay", "snapshot_id": "log/dev/pay/2"}
    told = {"round": 1, "moves": 2, "least_moves": 1, "verdict": "exact", "assignor": "range", "protocol": "EAGER"}
    results = [key | told | {"scenario": name, "least_moves_certainty": "exact"} for name in ("baseline", "other")]
    commit = LogKey(RecordKind.OFFSET_COMMIT, 1, "pay", {"topic": "a", "partition": 2})
    record = {"cluster_id": "dev", "group_id": "pay", "log_partition": 0, "offset": 1, "timestamp": at(1)}
    value = encode_value(RecordKind.OFFSET_COMMIT, 3, OffsetCommit(7, None, "", 0, None, None))
    finding = key | {"offset": 2, "code": "DOUBLE_ASSIGNED", "severity": "error", "evidence": "x"}
    return write(
        tmp_path_factory.mktemp("ledger"),
        **rows_of(
            pay,
            topic_snapshots=[listed("a", 3)],
            rebalances=results,
            violations=[finding],
            log_records=[record | {"key": encode_key(commit), "value": value}],
        ),
    )


def printed(words, place):
    words = words.format(folder=f"{place}-report")
    of_scripts = words.startswith("simulate")
    where = [] if of_scripts else ["--ledger", place]
    ran = CliRunner().invoke(main, [*shlex.split(words), "--json", *where], input=SCRIPT if of_scripts else None)
    return json.loads(ran.stdout)


def complaints(command, told):
    validator = Draft202012Validator(schema_of(command), format_checker=FormatChecker())
    return [error.message for error in validator.iter_errors(told)]


@pytest.mark.parametrize("words", ASKED)
def test_an_answer_is_as_its_schema_says(place, words):
    told = printed(words, place)
    assert told["status"] == "done"
    assert complaints(words.split()[0], told) == []


@pytest.mark.parametrize("words", REFUSED)
def test_a_refusal_is_as_its_schema_says(place, words):
    told = printed(words, place)
    assert told["status"] == "failed"
    assert complaints(words.split()[0], told) == []


def test_every_report_has_a_form():
    names = {form["report"]["const"] for form in FORMS["report"]}
    report = main.get_command(click.Context(main), "report")
    assert isinstance(report, click.Group)
    assert names == {*report.commands}


@pytest.mark.parametrize("command", FORMS)
def test_the_documented_schema_is_that_of_the_code(command):
    """`groupledger schema COMMAND > docs/schemas/COMMAND.json` writes it."""
    text = (SCHEMAS / f"{command}.json").read_text(encoding="utf-8")
    assert text == as_text(command) + "\n" == CliRunner().invoke(main, ["schema", command]).stdout
    Draft202012Validator.check_schema(json.loads(text))


def test_no_schema_is_left_of_a_command_that_is_gone():
    assert {path.stem for path in SCHEMAS.iterdir()} == set(FORMS) <= set(main.commands)


@pytest.mark.parametrize(
    ("words", "break_it"),
    [
        ("who a-2", lambda told: told["ownership"].pop("at")),
        ("who a-2", lambda told: told["ownership"].update(at="noon")),
        ("who a-2", lambda told: told["ownership"]["holdings"][0].update(more=1)),
        ("audit", lambda told: told["audit"]["found"][0].update(severity="grave")),
        ("audit", lambda told: told.update(command="who")),
        ("show --group pay --last", lambda told: told["rebalance"]["members"][0].update(held=[["a"]])),
        ("show --group pay", lambda told: told.update({"history": told["history of pay"]})),
        ("timeline pay", lambda told: told["timeline"]["entries"][0].update(findings={"A": "1"})),
        ("timeline pay", lambda told: told.update(partition_timeline=told["timeline"])),
    ],
)
def test_what_is_not_so_is_seen(place, words, break_it):
    told = printed(words, place)
    break_it(told)
    assert complaints(words.split()[0], told)


def test_a_name_means_one_answer():
    """Annotations are resolved by name: two classes of one name would be taken for one another."""
    modules = [import_module(f"{answers.__name__}.{each.name}") for each in pkgutil.iter_modules(answers.__path__)]
    classes = {
        (name, kind)
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if not name.startswith("_") and kind.__module__.startswith(answers.__name__)
    }
    assert len({name for name, _ in classes}) == len(classes)
