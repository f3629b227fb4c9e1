"""A ledger read by delta-rs: queries over the views of what counts, as Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from arro3.core import DataType, Table

from groupledger.answers.queries import Value, filled, require_query
from groupledger.core.faults import Fault, meant, resembling
from groupledger.core.ledger_version import VERSION_PROPERTY, first_words, no_ledger, version_problem
from groupledger.core.secrets import without_secrets

if TYPE_CHECKING:
    from deltalake import DeltaTable, QueryBuilder


_RUNS = "runs"
RUNS_THAT_COUNT, REFOLDS = "current_runs", "current_refolds"
_ATTEMPTS, _OF_ATTEMPTS = "attempts_that_count", "t.attempt_id, t.kind, t.sequence"
"""A table in memory in place of `current_runs`, with the columns of it that views use."""
_REFOLDED = "offsets_folded_again"
"""A table in memory behind `current_refolds`."""
_ALLOCATOR = "_RJEM_MALLOC_CONF", "narenas:2,dirty_decay_ms:200,muzzy_decay_ms:0"
"""How the allocator within delta-rs (jemalloc) is to work; it reads this variable of the environment when it is loaded.
By default it keeps freed memory for ten seconds: a third of what an answer about a large ledger takes."""
_NO_TABLE = re.compile(r"table 'datafusion\.(?:public\.)?(?P<name>[^']*)' not found")
_NO_COLUMN = re.compile(r'No field named (?:(?P<of>\w+)\.)?"?(?P<name>\w+)"?\..*?\nValid fields are (?P<there>.*)\.')
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class LedgerReader:
    """A ledger as of the moment at which it is opened: every query sees the same versions of the tables."""

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        """Open it; on an object store with the options that delta-rs takes for it (`answers.reader`).

        Raises Fault: LEDGER_MISSING, LEDGER_UNREADABLE, LEDGER_OLDER, LEDGER_NEWER.
        """
        os.environ.setdefault(*_ALLOCATOR)
        self._options = dict(storage_options or {}) or None
        self._location = location if "://" in location else str(Path(location).absolute())
        self.place = without_secrets(location)
        self._tables: dict[str, DeltaTable] = {}
        self._builder: QueryBuilder | None = None
        self._named: set[str] = set()
        self._numbers = count()
        version = self._table(_RUNS).metadata().configuration.get(VERSION_PROPERTY, "")
        if not version.isdecimal():
            raise Fault("FOREIGN_TABLE", f"the table runs at {self.place} is no ledger's: it has no {VERSION_PROPERTY}")
        problem = version_problem(self.place, int(version))
        if problem is not None:
            raise Fault(*problem)

    def query(self, sql: str, /, **values: Value) -> Table:
        """Return the rows of a query over the views and tables; `:name` in it stands for the value of that name.

        Raises Fault: SQL_INVALID for a query that cannot be run or is none that reads; LEDGER_UNREADABLE where a file
        is damaged or gone.
        """
        require_query(sql)
        return self._executed(filled(sql, values, _text))

    @contextmanager
    def kept(self, sql: str, /) -> Iterator[str]:
        """Keep the rows of a query in memory as a table, and drop it in the end. Raises as `query`.

        Texts are copied: one that was read is a view of the whole page on which it stands, which stays in memory
        with it, and counts when the engine asks which side of a join is the smaller one.
        """
        require_query(sql)
        name = f"kept_{next(self._numbers)}"
        schema = self._executed(f"SELECT * FROM ({sql}) q LIMIT 0").schema
        columns = ", ".join(map(_copied, schema.names, schema.types))
        self._executed(f"CREATE TABLE {name} AS SELECT {columns} FROM ({sql}) q")
        try:
            yield name
        finally:
            self._executed(f"DROP TABLE {name}")

    @contextmanager
    def beside(self, rows: Any) -> Iterator[str]:
        """Let queries read these rows (Arrow) too: under the name that is given, until the context ends."""
        from deltalake import DeltaTable, write_deltalake

        name = f"beside_{next(self._numbers)}"
        with TemporaryDirectory() as folder:
            write_deltalake(folder, rows)
            self._engine([], {name: DeltaTable(folder)})
            yield name

    def _executed(self, sql: str) -> Table:
        rests_on, names = needed(sql)
        tables = {name: self._table(name) for name in names}
        try:
            return self._engine(rests_on, tables).execute(sql).read_all()
        except Exception as error:
            raise self._fault(error) from error

    def _engine(self, rests_on: Sequence[View], tables: Mapping[str, DeltaTable]) -> QueryBuilder:
        """Return the reader's engine once it knows what a query names: each table and view is made known once."""
        from deltalake import QueryBuilder

        if self._builder is None:
            self._builder = QueryBuilder()
        for name, table in tables.items():
            if name not in self._named:
                self._builder.register(name, table)
                self._named.add(name)
        for view in rests_on:
            if view.name not in self._named:
                self._make_known(self._builder, view)
                self._named.add(view.name)
        return self._builder

    def _make_known(self, engine: QueryBuilder, view: View) -> None:
        """Create a view. Which attempts count is read once, not in every query, and so are refolds, which are few.

        Where there are none, the view says so: then the engine asks no row of any table whether it was folded again.
        """
        if view.name == RUNS_THAT_COUNT:
            engine.execute(f"CREATE TABLE {_ATTEMPTS} AS SELECT {_OF_ATTEMPTS} FROM ({view.query}) t").read_all()
        query = view.reading(lambda name: _ATTEMPTS if name == RUNS_THAT_COUNT else name)
        if view.name == REFOLDS:
            engine.execute(f"CREATE TABLE {_REFOLDED} AS {query}").read_all()
            any_refold = engine.execute(f"SELECT 1 AS found FROM {_REFOLDED} LIMIT 1").read_all().num_rows
            query = f"SELECT * FROM {_REFOLDED} t WHERE {'true' if any_refold else 'false'}"
        engine.execute(f"CREATE VIEW {view.name} AS {query}").read_all()

    def _table(self, name: str) -> DeltaTable:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        if name not in self._tables:
            place = f"{self._location.rstrip('/')}/{name}"
            try:
                self._tables[name] = DeltaTable(place, storage_options=self._options)
            except TableNotFoundError as error:
                raise Fault(*no_ledger(self.place, name)) from error
            except (DeltaError, OSError) as error:
                raise Fault(
                    "LEDGER_UNREADABLE", f"table {name} at {self.place} cannot be read: {first_words(error)}"
                ) from error
        return self._tables[name]

    def _fault(self, error: Exception) -> Fault:
        said, column = first_words(error), _NO_COLUMN.search(str(error))
        if isinstance(error, OSError) or re.search(r"Parquet|Object (?:at|Store)|IO error|Corrupt", said):
            return Fault("LEDGER_UNREADABLE", f"a file of the ledger at {self.place} cannot be read: {said}")
        return Fault("SQL_INVALID", _why_not(said) if column is None else self._no_column(**column.groupdict()))

    def _no_column(self, of: str | None, name: str, there: str) -> str:
        """Say which columns what is queried has, and which views have the one that was asked for."""
        pairs = [each.rpartition(".") for each in there.split(", ") if of is None or each.startswith(f"{of}.")]
        sources, columns = (list(dict.fromkeys(pair[at] for pair in pairs)) for at in (0, 2))
        where = f"no column {name!r} in {', '.join(sources)}"
        having = [view for view in views() if name in self._executed(f"SELECT * FROM {view} LIMIT 0").schema.names]
        hint = meant(name, columns)
        if hint and not having:
            return f"{where}; {hint.rstrip()}"
        found = f"; {', '.join(having)} has {name}" if having else ""
        return f"{where}, which has {', '.join(columns)}{found}"


def _why_not(said: str) -> str:
    """Say why a query cannot be run, by the engine's message; in place of a table with dead rows it names its view."""
    unknown = _NO_TABLE.search(said)
    if unknown is None:
        return f"the query cannot be run: {said.rstrip('.')}; {WHERE_VIEWS_ARE}"
    of_words = {"_".join(sorted(each.split("_"))): each for each in views()}  # also those of `rebalances_current`
    near = resembling("_".join(sorted(unknown["name"].split("_"))), of_words)
    hint = f"did you mean {of_words[near[0]]}? " if near else ""
    return f"there is no table or view {unknown['name']!r}; {hint}{WHERE_VIEWS_ARE}"


def folder_of(location: str) -> str | None:
    """Return the folder of this machine that a location names; None if it is on another file system."""
    scheme, colon, rest = location.partition(":")
    if colon and scheme == "file":
        return re.sub("^/+", "/", rest)
    return None if _SCHEME.match(location) else location


def _copied(name: str, kind: DataType) -> str:
    """Select a column of `q`, its texts copied."""
    is_text = any(map(bool, (DataType.is_string(kind), DataType.is_string_view(kind), DataType.is_large_string(kind))))
    return f"q.{name} || '' AS {name}" if is_text else f"q.{name}"


def _text(value: str) -> str:
    """Quote a text as this engine does: no character but a quote means anything else."""
    return "'" + value.replace("'", "''") + "'"


# Translate Hadoop's settings of an object store into delta-rs's, so that a ledger there is read without Spark.
#
# The settings are those of `spark.conf` (`spark.hadoop.fs.s3a.endpoint`, also without `spark.hadoop.`). What they do
# not say, delta-rs takes from the environment (`AWS_...`, `AZURE_...`, `GOOGLE_...`) or from the machine's own role.

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
_KEYS_OF_OAUTH = {"client.id": "azure_client_id", "client.secret": "azure_client_secret"}


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
    settings = {
        name.removeprefix(_HADOOP): _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value)
        for name, value in conf.items()
    }
    if found is None or scheme not in S3 + AZURE + GOOGLE:
        raise Fault("STORE_UNKNOWN", f"{location} is on no object store; expected {', '.join(S3 + AZURE + GOOGLE)}")
    if given:
        return StoreSettings(dict(given))
    if scheme in S3:
        return _of_s3(found["host"], settings)
    return _of_azure(found, settings) if scheme in AZURE else _of_google(settings)


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


# The views of `views.sql`: their names, what they are about, their queries, and what each rests on.

_VIEW = re.compile(r"^-- (?P<comment>[^\n]*)\nCREATE VIEW (?P<name>\w+) AS\n(?P<query>.*?);$", re.MULTILINE | re.DOTALL)
_SOURCE = re.compile(r"\b(?P<word>FROM|JOIN) (?P<name>[a-z]\w*)")
_WORD = re.compile(r"\w+")
WHERE_VIEWS_ARE = "`groupledger sql` lists the views"
"""For a query that names something else."""


@dataclass(frozen=True, slots=True)
class View:
    """A view; `sources` are tables of the ledger and views before it."""

    name: str
    comment: str
    query: str

    @property
    def sources(self) -> frozenset[str]:
        """What its query reads."""
        return frozenset(found["name"] for found in _SOURCE.finditer(self.query))

    def reading(self, named: Callable[[str], str]) -> str:
        """Return the query with another name for everything it reads."""
        return _SOURCE.sub(lambda found: f"{found['word']} {named(found['name'])}", self.query)

    @property
    def facts(self) -> str:
        """Of facts with results beside them the facts alone: an engine works out which results count, wanted or not."""
        return self.query.partition("\nUNION ALL\n")[0]


@cache
def views() -> dict[str, View]:
    """Return the views by name; each rests on those before it."""
    text = files(__package__).joinpath("views.sql").read_text(encoding="utf-8")
    return {found["name"]: View(found["name"], found["comment"], found["query"]) for found in _VIEW.finditer(text)}


@cache
def tables() -> frozenset[str]:
    """Return the tables of a ledger that the views rest on: all of them."""
    return frozenset(name for view in views().values() for name in view.sources) - views().keys()


def ingest_findings() -> str:
    """Select what `ingest` found: `current_violations` whose scenario is null."""
    return views()["current_violations"].facts


def needed(sql: str) -> tuple[list[View], list[str]]:
    """Return the views, in their order, and the tables that a query may read, by the words in it."""
    named = {word.lower() for word in _WORD.findall(sql)}
    for view in reversed(views().values()):
        if view.name in named:
            named |= view.sources
    return [view for view in views().values() if view.name in named], sorted(named & tables())
