"""Translate Hadoop's settings of an object store into delta-rs's, so that a ledger there is read without Spark.

The settings are those of `spark.conf` (`spark.hadoop.fs.s3a.endpoint`, also without `spark.hadoop.`). What they do not
say, delta-rs takes from the environment (`AWS_...`, `AZURE_...`, `GOOGLE_...`) or from the machine's own role.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from groupledger.core.faults import Fault

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^/@]*)@)?(?P<host>[^/]*)")
_HADOOP = "spark.hadoop."
_VARIABLE = re.compile(r"\$\{env[:.](\w+)\}")
"""A variable of the environment, as Spark and Hadoop expand it in their settings."""
_AMAZON = re.compile(r"(?:https?://)?s3(?:[.-](?P<region>[a-z0-9-]+))?\.amazonaws\.com(?:\.cn)?/?")
S3, AZURE, GOOGLE = ("s3", "s3a"), ("abfs", "abfss"), ("gs",)

_KEYS_OF_S3 = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint.region": "aws_region",
}
_PROVIDERS = re.compile(
    r"(?:Simple|Temporary|Anonymous)AWSCredentialsProvider|EnvironmentVariableCredentialsProvider"
    r"|IAMInstanceCredentialsProvider|InstanceProfileCredentialsProvider|ContainerCredentialsProvider"
    r"|WebIdentityTokenFileCredentialsProvider|WebIdentityTokenCredentialsProvider"
    r"|Default(?:AWS)?CredentialsProvider(?:Chain)?"
)
"""Hadoop's and the AWS SDK's providers of credentials that delta-rs has too."""
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_KEYS_OF_OAUTH = {
    "client.id": "azure_client_id",
    "client.secret": "azure_client_secret",
}


class StoreSettings(NamedTuple):
    """What delta-rs needs to read a location; `lacks` says which setting it has no equal of, so that Spark has to."""

    options: Mapping[str, str]
    lacks: str | None = None


def is_object_store(location: str) -> bool:
    """Return whether a location is a URL of a store that delta-rs reads: S3, Azure or Google.

    >>> is_object_store("s3a://lake/ledger"), is_object_store("hdfs://name/ledger"), is_object_store("/data/ledger")
    (True, False, False)
    """
    found = _URL.match(location)
    return found is not None and found["scheme"].lower() in S3 + AZURE + GOOGLE


def store_settings(location: str, conf: Mapping[str, str], given: Mapping[str, str]) -> StoreSettings:
    """Return what delta-rs is given for a location: `given` as it is, over what follows from Hadoop's settings `conf`.

    Raises Fault("STORE_UNKNOWN") for a location on no object store.
    """
    found = _URL.match(location)
    scheme = found["scheme"].lower() if found is not None else ""
    settings = {name.removeprefix(_HADOOP): _expanded(value) for name, value in conf.items()}
    if found is None or scheme not in S3 + AZURE + GOOGLE:
        raise Fault("STORE_UNKNOWN", f"{location} is on no object store; expected {', '.join(S3 + AZURE + GOOGLE)}")
    if given:
        return StoreSettings(dict(given))
    if scheme in S3:
        return _of_s3(found["host"], settings)
    return _of_azure(found, settings) if scheme in AZURE else _of_google(settings)


def _expanded(value: str) -> str:
    return _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value)


def _of_s3(bucket: str, settings: Mapping[str, str]) -> StoreSettings:
    def said(name: str) -> str | None:
        """Return a setting of `fs.s3a`; one of the bucket's own comes first, as Hadoop has it."""
        return settings.get(f"fs.s3a.bucket.{bucket}.{name}", settings.get(f"fs.s3a.{name}"))

    options = {ours: value for name, ours in _KEYS_OF_S3.items() if (value := said(name))}
    providers = [each.strip() for each in (said("aws.credentials.provider") or "").split(",") if each.strip()]
    unknown = [each for each in providers if not _PROVIDERS.fullmatch(each.rpartition(".")[2])]
    if unknown:
        return StoreSettings(options, f"the credentials provider {unknown[0]}")
    for name in ("fs.s3a.security.credential.provider.path", "hadoop.security.credential.provider.path"):
        if settings.get(name):
            return StoreSettings(options, f"the credential file of {name}")
    encryption = (said("encryption.algorithm") or said("server-side-encryption-algorithm") or "").upper()
    if encryption in ("SSE-C", "CSE-KMS", "CSE-CUSTOM"):
        return StoreSettings(options, f"the encryption {encryption}")
    if providers and all(each.endswith(_ANONYMOUS) for each in providers):
        options["aws_skip_signature"] = "true"
    endpoint = said("endpoint")
    amazon = _AMAZON.fullmatch(endpoint or "")
    if amazon is not None and amazon["region"]:
        options.setdefault("aws_region", amazon["region"])
    if endpoint and amazon is None:
        plain = (said("connection.ssl.enabled") or "true").strip().lower() == "false"
        path_style = (said("path.style.access") or "false").strip().lower() == "true"
        url = endpoint if "://" in endpoint else f"{'http' if plain else 'https'}://{endpoint}"
        options["aws_allow_http"] = str(url.startswith("http://")).lower()
        options["aws_virtual_hosted_style_request"] = str(not path_style).lower()
        # For requests of the virtual-hosted style, delta-rs expects the bucket in the endpoint's host.
        options["aws_endpoint"] = url if path_style else url.replace("://", f"://{bucket}.", 1)
    return StoreSettings(options)


def _of_azure(url: re.Match[str], settings: Mapping[str, str]) -> StoreSettings:
    host = url["host"]
    options = {"azure_storage_account_name": host.partition(".")[0]}

    def said(name: str) -> str | None:
        """Return a setting of `fs.azure`; one of the account comes first, as Hadoop has it."""
        return settings.get(f"fs.azure.{name}.{host}", settings.get(f"fs.azure.{name}"))

    kind = (said("account.auth.type") or "SharedKey").strip().lower()
    if kind == "sharedkey":
        key = said("account.key")
        return StoreSettings(options | ({"azure_storage_account_key": key} if key else {}))
    if kind == "sas":
        token = said("sas.fixed.token")
        if token:
            return StoreSettings(options | {"azure_storage_sas_token": token})
        return StoreSettings(options, "a provider of SAS tokens")
    provider = (said("account.oauth.provider.type") or "").rpartition(".")[2]
    if kind != "oauth" or provider not in ("ClientCredsTokenProvider", "MsiTokenProvider"):
        return StoreSettings(options, f"the login {provider or kind} of fs.azure.account")
    options |= {ours: value for name, ours in _KEYS_OF_OAUTH.items() if (value := said(f"account.oauth2.{name}"))}
    tenant = re.search(r"//[^/]+/([^/]+)/", said("account.oauth2.client.endpoint") or "")
    return StoreSettings(options | ({"azure_tenant_id": tenant[1]} if tenant else {}))


def _of_google(settings: Mapping[str, str]) -> StoreSettings:
    kind = settings.get("fs.gs.auth.type", "").upper()
    file = settings.get("fs.gs.auth.service.account.json.keyfile") or settings.get(
        "google.cloud.auth.service.account.json.keyfile"
    )
    if file:
        return StoreSettings({"google_service_account": file})
    if kind in ("", "APPLICATION_DEFAULT", "COMPUTE_ENGINE"):
        return StoreSettings({})
    return StoreSettings({}, f"the login {kind} of fs.gs.auth.type")
