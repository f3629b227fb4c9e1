"""A secret of the configuration reaches no message; what is no secret stays readable."""

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.config import ConfigFault, parse
from groupledger.core.faults import Fault
from groupledger.core.secrets import is_secret, without_secrets

SECRET = "".join(["hunter2", "-Zr9"])
LEAST = "cluster_id: dev\nledger: {location: here}\n"
JAAS = f'org.apache.kafka.PlainLoginModule required username="u" password="{SECRET}";'


@pytest.mark.parametrize(
    "text",
    [
        f"s3a://key:{SECRET}@bucket/ledger",
        f"abfss://{SECRET}@account/x",
        f"https://host/log.jsonl?user=me&token={SECRET}&x=1",
        f"wasbs://c@h/p?sig={SECRET}",
        f"spark.hadoop.fs.s3a.secret.key={SECRET}",
        f"spark.hadoop.fs.s3a.access.key: {SECRET}",
        f"{{'fs.azure.account.key.x': '{SECRET}'}}",
        f"kafka.sasl.jaas.config={JAAS}",
        f"ssl.keystore.password = '{SECRET} and more'",
        f"PASSWORD:{SECRET}",
    ],
)
def test_it_is_hidden_wherever_it_stands(text):
    assert SECRET not in without_secrets(text)
    assert "***" in without_secrets(text)
    assert SECRET not in str(Fault("ANY", f"cannot read {text}: no such thing"))


@pytest.mark.parametrize(
    "text",
    [
        "s3a://bucket/ledger is not there; expected one",
        "mail me@here, or see https://host/a=b",
        "column key is int, expected binary",
        "limits.max_id_bytes=4096; the group 'tokens' has 7 members",
        "",
    ],
)
def test_what_is_no_secret_stays(text):
    assert without_secrets(text) == text


def test_names_of_secrets():
    assert all(map(is_secret, ["spark.hadoop.fs.s3a.secret.key", "sasl.jaas.config", "SSL.KeyStore.Password"]))
    assert not any(map(is_secret, ["spark.master", "cluster_id", "sources.0.path", "assign.assignor"]))


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        (f"{LEAST}spark: {{conf: {{fs.s3a.secret.key: [{SECRET}]}}}}\n", ()),
        (f"{LEAST}spark: {{conf: {{fs.s3a.secret.key: {SECRET}}}, master: 7}}\n", ()),
        (f"{LEAST}password: {SECRET}\n", ()),
        (f'{LEAST}  secret: "{SECRET}\n', ()),
        (f"{LEAST}spark: {{conf: [password, {{password: {SECRET}}}]}}\n", ()),
        (LEAST, (f"spark.conf.fs.s3a.secret.key={SECRET}", "nonsense=1")),
        (LEAST, (f"password={SECRET}",)),
        (LEAST, (f"spark.conf.password=[{SECRET}",)),
        (f"{LEAST}sources: [{{kind: no, path: 's3a://k:{SECRET}@b/p'}}]\n", ()),
        (LEAST, (f"ledger.catalog=s3a://k:{SECRET}@b/p",)),
    ],
)
def test_no_complaint_about_a_configuration_quotes_one(text, overrides):
    with pytest.raises(ConfigFault) as caught:
        parse(text, "conf.yaml", overrides)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_answer_of_the_command_quotes_one(tmp_path, form):
    config = tmp_path / "conf.yaml"
    config.write_text(f"{LEAST}spark: {{conf: {{fs.s3a.secret.key: {SECRET}}}}}\nlimits: {{max_id_bytes: no}}\n")
    ran = CliRunner().invoke(main, ["show", "--config", str(config), "--set", f"spark.conf.a.token={SECRET}", *form])
    assert ran.exit_code == 2
    assert SECRET not in ran.output + ran.stderr
    assert not form or json.loads(ran.stdout)["code"] == "CONFIG_INVALID"
