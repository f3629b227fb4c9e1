"""What delta-rs is given for a ledger on an object store, from the settings that Spark has for it."""

import pytest

from groupledger.answers.reader import is_object_store, store_settings
from groupledger.core.faults import Fault
from groupledger.core.ledger_version import first_words

KEYS = {"fs.s3a.access.key": "AKIA", "fs.s3a.secret.key": "shh"}
KEYED = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "shh"}
CLIENT = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
ACCOUNT = "lake.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("url", "conf", "options"),
    [
        ("s3a://lake/x", {}, {}),
        ("s3a://lake/x", KEYS, KEYED),
        ("S3A://lake/x", {f"spark.hadoop.{name}": value for name, value in KEYS.items()}, KEYED),
        ("s3a://lake/x", KEYS | {"fs.s3a.bucket.lake.access.key": "OWN"}, KEYED | {"aws_access_key_id": "OWN"}),
        ("s3a://other/x", KEYS | {"fs.s3a.bucket.lake.access.key": "OWN"}, KEYED),
        ("s3a://lake/x", {"fs.s3a.session.token": "t"}, {"aws_session_token": "t"}),
        ("s3a://lake/x", {"fs.s3a.endpoint.region": "eu-west-1"}, {"aws_region": "eu-west-1"}),
        ("s3a://lake/x", {"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"}, {"aws_region": "eu-west-1"}),
        ("s3a://lake/x", {"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        (
            "s3a://lake/x",
            {"fs.s3a.endpoint": "minio:9000", "fs.s3a.path.style.access": "true"},
            {
                "aws_endpoint": "https://minio:9000",
                "aws_allow_http": "false",
                "aws_virtual_hosted_style_request": "false",
            },
        ),
        (
            "s3a://lake/x",
            {"fs.s3a.endpoint": "store.example:80", "fs.s3a.connection.ssl.enabled": "false"},
            {
                "aws_endpoint": "http://lake.store.example:80",
                "aws_allow_http": "true",
                "aws_virtual_hosted_style_request": "true",
            },
        ),
        (
            "s3a://lake/x",
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"aws_skip_signature": "true"},
        ),
        ("s3a://lake/x", {"fs.s3a.access.key": "${env:A_KEY}", "fs.s3a.secret.key": "${env.A_KEY}"}, None),
        (f"abfss://c@{ACCOUNT}/x", {}, {"azure_storage_account_name": "lake"}),
        (
            f"abfss://c@{ACCOUNT}/x",
            {f"fs.azure.account.key.{ACCOUNT}": "k"},
            {"azure_storage_account_name": "lake", "azure_storage_account_key": "k"},
        ),
        (
            f"abfss://c@{ACCOUNT}/x",
            {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": "sig"},
            {"azure_storage_account_name": "lake", "azure_storage_sas_token": "sig"},
        ),
        (
            f"abfss://c@{ACCOUNT}/x",
            {
                f"fs.azure.account.auth.type.{ACCOUNT}": "OAuth",
                "fs.azure.account.oauth.provider.type": CLIENT,
                "fs.azure.account.oauth2.client.id": "i",
                "fs.azure.account.oauth2.client.secret": "s",
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
            },
            {
                "azure_storage_account_name": "lake",
                "azure_client_id": "i",
                "azure_client_secret": "s",
                "azure_tenant_id": "tenant",
            },
        ),
        ("gs://lake/x", {"fs.gs.auth.service.account.json.keyfile": "/k.json"}, {"google_service_account": "/k.json"}),
        ("gs://lake/x", {"fs.gs.auth.type": "APPLICATION_DEFAULT"}, {}),
    ],
)
def test_settings_of_spark_become_those_of_delta_rs(url, conf, options, monkeypatch):
    monkeypatch.setenv("A_KEY", "from-the-environment")
    expected = dict.fromkeys(KEYED, "from-the-environment") if options is None else options
    assert store_settings(url, conf, {}) == (expected, None)


@pytest.mark.parametrize(
    ("url", "conf", "lacks"),
    [
        ("s3a://b/x", {"fs.s3a.aws.credentials.provider": "com.corp.Vault"}, "the credentials provider com.corp.Vault"),
        (
            "s3a://b/x",
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"},
            "the credentials provider org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider",
        ),
        (
            "s3a://b/x",
            {"hadoop.security.credential.provider.path": "jceks://x"},
            "the credential file of hadoop.security.credential.provider.path",
        ),
        ("s3a://b/x", {"fs.s3a.encryption.algorithm": "SSE-C"}, "the encryption SSE-C"),
        (f"abfss://c@{ACCOUNT}/x", {"fs.azure.account.auth.type": "Custom"}, "the login custom of fs.azure.account"),
        ("gs://b/x", {"fs.gs.auth.type": "USER_CREDENTIALS"}, "the login USER_CREDENTIALS of fs.gs.auth.type"),
    ],
)
def test_what_delta_rs_has_no_equal_of_is_named(url, conf, lacks):
    assert store_settings(url, conf, {}).lacks == lacks
    assert store_settings(url, conf, {"aws_access_key_id": "own"}) == ({"aws_access_key_id": "own"}, None)


def test_other_file_systems_are_none_of_its_stores():
    assert [each for each in ("s3://b", "gs://b", "abfs://c@a/x", "hdfs://n/x", "/x", "file:///x", "dbfs:/x")
            if is_object_store(each)] == ["s3://b", "gs://b", "abfs://c@a/x"]  # fmt: skip
    with pytest.raises(Fault, match="expected s3, s3a, abfs, abfss, gs"):
        store_settings("hdfs://name/x", {}, {})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Generic S3 error\n  \x1b[31m\u21b3\x1b[0m tcp connect error\n    \u21b3 Connection refused",
         "Generic S3 error: Connection refused"),
        ("Generic S3 error\n \u21b3 404\n  \u21b3 <?xml?>\n<Error><Code>NoSuchBucket</Code><Message>No such</Message>",
         "Generic S3 error: NoSuchBucket: No such"),
        ("DeltaError: no such thing\nmore", "no such thing"),
    ],
)  # fmt: skip
def test_an_error_of_a_store_ends_with_its_cause(said, words):
    assert first_words(OSError(said)) == words
