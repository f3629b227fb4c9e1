"""Hundreds of forms a secret can have, through every output that needs no Spark: none gets out, the rest stays."""

from __future__ import annotations

import base64
import json
import pickle
import sys
from itertools import product
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.cli.exits import print_traceback
from groupledger.cli.output import Output
from groupledger.config import ConfigFault, parse
from groupledger.core import secrets
from groupledger.core.faults import Fault
from groupledger.core.secrets import HIDDEN, remember, secrets_in, without_secrets, without_values
from groupledger.sinks.ledger_tables import LedgerLocation

VALUES = [
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCY1=",
    "pa,ss,w0rd!x",
    'esc"aped"q9x',
    "it's-quoted7x",
    "sp ace d9 word",
    "per%cent%2F1xyz",
    "back\\slash9xyz",
    "uni-ß\u00e9cret-8x",
    "semi;colon&amp9x",
    "par)en]brace9}x",
    "eyJhbGciOi.J9_x-y.z",
    "at@sign/9:colon",
    "<tag>&'\"mix9",
    "7391846205",
]

NAMED = {
    "json": lambda v: f'{{"user": "me", "password": {json.dumps(v)}, "x": 1}}',
    "json in json": lambda v: json.dumps(json.dumps({"passphrase": v})),
    "python": lambda v: f"got {{'api_key': {v!r}, 'x': 1}}",
    "pairs": lambda v: f"[('db.pwd', {v!r}), ('x', '1')]",
    "list": lambda v: f"client.secrets: [{v!r}, {v!r}] are wrong",
    "list of json": lambda v: f'"tokens": {json.dumps([v, v])}',
    "sql": lambda v: "OPTIONS (apikey '1', apikey = '" + v.replace("'", "''").replace("\\", "\\\\") + "')",
    "jaas": lambda v: f'x.PlainLoginModule required username="u" password={json.dumps(v, ensure_ascii=False)};',
    "setting": lambda v: f"spark.hadoop.fs.s3a.secret.key={quote(v, safe='/+,')} is refused",
    "colon": lambda v: f"fs.azure.account.key.x: {quote(v, safe='/+,')}",
    "encoded": lambda v: f"?q=access_key%3D{quote(v, safe='')}&x=1",
    "url": lambda v: f"s3a://KEY:{quote(v, safe='/')}@bucket/path is not there",
    "url of url": lambda v: quote(f"s3a://KEY:{quote(v, safe='')}@bucket/path", safe=""),
    "query": lambda v: f"https://host/log.jsonl?user=me&sig={quote(v, safe='')}&x=1",
    "header": lambda v: f"Authorization: Bearer {quote(v, safe='')}",
    "bearer": lambda v: f"GET / with bearer {quote(v, safe='')} failed",
    "basic": lambda v: f"authorization=Basic {base64.b64encode(v.encode()).decode()}",
    "xml": lambda v: f"<password>{escape(v)}</password>",
    "hadoop": lambda v: f"<name>fs.s3a.access.key</name>\n <value>{escape(v)}</value>",
    "option": lambda v: f"java -jar x --truststore-passphrase {quote(v, safe='')} -v",
}
"""Where a name or a place tells that it is one; the value is nowhere remembered."""

ENCODED = {
    "as it is": str,
    "in a URL": lambda v: quote(v, safe=""),
    "in a path": quote,
    "in lower case": lambda v: "".join(each.lower() if each[:1] == "%" else each for each in _percent(v)),
    "in a form": quote_plus,
    "in JSON": lambda v: json.dumps(v)[1:-1],
    "in JSON with its letters": lambda v: json.dumps(v, ensure_ascii=False)[1:-1],
    "in JSON in JSON": lambda v: json.dumps(json.dumps(v)[1:-1])[1:-1],
    "in Python": lambda v: repr(v)[1:-1],
    "in SQL": lambda v: v.replace("'", "''"),
    "in Spark's SQL": lambda v: v.replace("\\", "\\\\").replace("'", "\\'"),
    "in XML": escape,
    "in base64": lambda v: base64.b64encode(v.encode()).decode(),
    "in a URL's base64": lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
}
"""How it may turn up where nothing tells that it is one; the value is remembered."""


def _percent(value):
    text = quote(value, safe="")
    at = 0
    while at < len(text):
        size = 3 if text[at] == "%" else 1
        yield text[at : at + size]
        at += size


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(secrets, "_remembered", secrets._Remembered())


def leaks(value, text):
    """The forms of the value that a text still holds."""
    return {name: form(value) for name, form in ENCODED.items() if form(value) in text}


def test_there_are_enough_of_them():
    assert len(VALUES) * (len(NAMED) + len(ENCODED)) >= 300


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("form", NAMED)
def test_what_name_or_place_tell_is_hidden(form, value):
    text = NAMED[form](value)
    fault = Fault("ANY", f"cannot use {text}")
    for said in (without_secrets(text), str(fault), repr(fault), str(pickle.loads(pickle.dumps(fault)))):  # noqa: S301
        assert leaks(value, said) == {}, said
        assert HIDDEN in said
    assert str(fault).startswith("cannot use ")


def outputs(capsys, text):
    """What each way out says of a text."""
    for output in (Output(as_json=False), Output(as_json=True)):
        output.line(text)
        output.title(text)
        output.table(["a", text], [(1, text)])
        output.result({"text": text, "deep": [{text: (text, 7)}], "number": 7})
    try:
        raise KeyError(text)
    except KeyError:
        print_traceback(*sys.exc_info())
    said = capsys.readouterr()
    yield from (said.out, said.err, str(Fault("ANY", text)), str(LedgerLocation(path=text)))


@pytest.mark.parametrize("value", VALUES)
def test_a_remembered_value_gets_out_of_no_output_in_no_form(capsys, value):
    remember([value])
    for name, form in ENCODED.items():
        for said in outputs(capsys, f"cannot read /{form(value)}/x of 12 files"):
            assert leaks(value, said) == {}, name
            assert HIDDEN in said
            assert "cannot read" in said


@pytest.mark.parametrize(("value", "where"), [*product(VALUES, ["--config", "--set"])])
def test_the_command_remembers_those_of_its_configuration(tmp_path, value, where):
    """A wrong key beside it ends the command; the complaint quotes what it got."""
    config = tmp_path / "conf.yaml"
    tree = {"cluster_id": "dev", "ledger": {"location": "here"}, "limits": {"max_id_bytes": f"got {value}"}}
    tree["spark"] = {"conf": {"fs.s3a.secret.key": value}} if where == "--config" else {}
    config.write_text(json.dumps(tree), encoding="utf-8")
    given = ["--set", f"spark.conf.my.api_key={json.dumps(value)}"] if where == "--set" else []
    ran = CliRunner().invoke(main, ["show", "--config", str(config), "--json", *given])
    assert ran.exit_code == 2
    assert leaks(value, ran.output + ran.stderr) == {}
    assert "max_id_bytes" in ran.stderr


@pytest.mark.parametrize("value", VALUES)
def test_lists_nested_values_and_paths_are_remembered_too(value):
    tree = {
        "cluster_id": "dev",
        "ledger": {"location": "here"},
        "spark": {"conf": {"secrets": [[value]]}},
        "sources": [{"kind": "offsets-jsonl", "path": "x"}],
    }
    for changed in (tree, tree | {"spark": {"conf": {"kafka.sasl.jaas.config": _jaas(value)}}}, _in_path(tree, value)):
        secrets._remembered = secrets._Remembered()
        assert leaks(value, complaint(changed)) == {}
        assert leaks(value, without_values(f"the words {value} of an exception")) == {}


def complaint(tree):
    try:
        parse(json.dumps(tree), "conf.yaml")
    except ConfigFault as fault:
        return str(fault)
    return ""


def _jaas(value):
    return f'org.apache.kafka.PlainLoginModule required username="u" password={json.dumps(value, ensure_ascii=False)};'


def _in_path(tree, value):
    path = f"s3a://KEY:{quote(value, safe='/')}@bucket/p"
    return tree | {"spark": {}, "sources": [{"kind": "offsets-jsonl", "path": path}]}


def test_variables_of_the_environment_that_a_secret_setting_names(monkeypatch):
    monkeypatch.setenv("LEDGER_WORD", VALUES[0])
    conf = "{fs.s3a.secret.key: '${env:LEDGER_WORD}'}"
    parse(f"cluster_id: dev\nledger: {{location: here}}\nspark: {{conf: {conf}}}\n", "conf.yaml")
    assert without_values(f"a {VALUES[0]} b") == "a *** b"


@pytest.mark.parametrize("value", ["", "1", "ab", "abc", "true", "True", "none", "12345", "   ", "***"])
def test_short_and_plain_values_do_not_blank_what_is_said(value):
    """They are hidden where their name stands, and only there."""
    remember([value])
    text = f"1 of 12345 files: abc is true, {value} ab none ***"
    assert without_values(text) == text
    assert without_secrets(f"password={value}x, 1 of 12345").endswith("1 of 12345")


def test_a_value_of_few_characters_is_a_word_of_its_own():
    remember(["prod", "orders", "orders-and-more"])
    text = "products of prod: reorders, orders-7, 'orders'"
    assert without_values(text) == "products of ***: reorders, ***-7, '***'"
    assert without_values("xorders-and-morey") == "x***y"


@pytest.mark.parametrize(
    "text",
    [
        "hdfs://namenode:8020/data/x.jsonl is not there",
        "s3a://bucket/x@2026/part-0.parquet",
        "topic token-events has 3 partitions; group pwd-reset, member bearer-1",
        "the group 'secrets' has 7 members, the token bucket none",
        "limits.max_id_bytes=4096; assignor=range",
        "author=me, authored: yes",
    ],
)
def test_what_is_no_secret_stays(text):
    assert without_secrets(text) == text


def test_long_texts_take_no_time_by_their_square():
    """A megabyte without an end to any quote, bracket or name."""
    for piece in (
        "password",
        "password=",
        "password='",
        'token=["',
        "secret=\\",
        "://a:",
        "bearer ",
        "--pwd",
        "'api_key', ",
    ):
        text = piece * (50_000 // len(piece))
        assert len(without_secrets(text)) <= 2 * len(text)


def test_remembered_values_are_sought_in_time_too():
    remember(["\\'abcdefg", "a\\\\b'\"c/d", "x/" * 20, VALUES[0]])
    for piece in ("\\", "\\'", "x/", "%25", VALUES[0][:-1]):
        text = piece * (100_000 // len(piece))
        assert len(without_values(text)) <= len(text)


def test_the_access_key_id_of_a_url_is_no_word_to_hide_everywhere():
    assert "admin" not in set(secrets_in("path", "s3a://admin:hunter2-Zr9@bucket/x"))
