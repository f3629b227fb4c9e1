"""Define every command's common options, and make a `Job` of them: a checked configuration and an output."""

from __future__ import annotations

import functools
import os
import re
import shlex
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from groupledger.cli.exits import JVM_OUTPUT, LEDGER, hide_secrets
from groupledger.cli.output import Output, say
from groupledger.core.custom.custom_group import MEMORY_MB, SECONDS, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.moments import Bound, bound
from groupledger.core.rebalance.registry import called
from groupledger.core.secrets import without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.answers.queries import Reader
    from groupledger.answers.reader import LedgerReader
    from groupledger.config import Config
    from groupledger.pipeline.frames import LedgerFrames, SparkReader
    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.ledger_tables import LedgerLocation


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_CONFIG = "groupledger.yaml"
_ELSEWHERE = {"PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"}
DEMO_LEDGER = "build/demo-ledger"
WITHOUT_A_FILE = {"cluster_id": "local", "ledger": {"location": "ledger"}, "spark": {"profile": "small"}}
"""The configuration of a command without one, if the default file does not exist."""


def new_invocation(run_id: str | None, doing: Callable[[str], None] = lambda _: None) -> Invocation:
    """Make a new attempt and the clock, which are made only here."""
    from groupledger.pipeline.invocation import Invocation

    return Invocation(
        attempt_id=str(uuid.uuid4()),
        now=lambda: datetime.now(UTC),
        seconds=time.perf_counter,
        run_id=run_id,
        doing=doing,
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A command about to run: its name, its configuration, its output."""

    name: str
    output: Output
    config_file: Path | None
    overrides: tuple[str, ...]
    config: Config
    given: Mapping[str, Any] = field(default_factory=dict)
    opened: list[LedgerReader | SparkReader] = field(default_factory=list, compare=False)

    invocation = staticmethod(new_invocation)

    @classmethod
    def configured(
        cls,
        name: str,
        output: Output,
        config_file: Path | None,
        overrides: tuple[str, ...],
        given: Mapping[str, Any] | None = None,
    ) -> Job:
        """Make a job from a configuration file, if there is one, with `given` in its place and overrides applied."""
        from groupledger.config import load, parse

        hide_secrets()
        given = given or {}
        if config_file is None:
            config = parse("", "the command line", overrides, {**WITHOUT_A_FILE, **given})
        else:
            config = load(config_file, overrides, given)
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[LEDGER] = config.ledger  # so that an error of Spark's is explained by the ledger's settings
        return cls(name, output, config_file, overrides, config, given)

    def override(self, settings: Mapping[str, object | None]) -> Job:
        """Return the job with options applied as settings, checked like any other; None leaves one unchanged."""
        from groupledger.config.settings import ConfigFault

        given = tuple(f"{key}={value}" for key, value in settings.items() if value is not None)
        try:
            return Job.configured(self.name, self.output, self.config_file, (*self.overrides, *given), self.given)
        except ConfigFault as fault:  # what was given as an option is no --set
            of_option = re.match(rf".*--set (?:{'|'.join(map(re.escape, given))}): \w+\.(\w+)", fault.message)
            if not given or of_option is None:
                raise
            option = of_option[1].replace("_", "-")
            raise ConfigFault(fault.code, f"--{option}{fault.message[of_option.end() :]}") from None

    def spark(self) -> SparkSession:
        """Start the session; it takes seconds, so it comes last before the work."""
        from groupledger.engine.session import session

        said = tempfile.TemporaryFile()  # noqa: SIM115 the JVM writes to it until this process ends
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[JVM_OUTPUT] = said
            context.find_root().call_on_close(said.close)
        with self.output.status("starting Spark"):
            jar_sets = sorted({conf for source in self.config.sources for conf in source.jar_sets})
            return session(self.config.spark, f"groupledger {self.name}", said, jar_sets)

    @property
    def paths_are_here(self) -> bool:
        """Return whether a path without a scheme is on this machine: elsewhere a cluster's own settings decide."""
        decided = os.environ.keys() & _ELSEWHERE or any("fs.defaultFS" in name for name in self.config.spark.conf)
        return self.config.spark.profile != "cluster" and not decided

    def spark_for_ledger(self, *, assigns: bool = False) -> SparkSession:
        """Start the session for a command that needs a ledger, and the configured assignors if it `assigns`.

        Raises before the start LedgerFault LEDGER_MISSING, if a look at a folder of this machine is enough, and Fault
        ASSIGNOR_NOT_FOUND.
        """
        from groupledger.answers.reader import folder_of
        from groupledger.core.custom.assignor_names import find_all
        from groupledger.sinks.ledger_tables import missing
        from groupledger.tables import RUNS

        location = self.config.ledger.location
        if location is not None and self.paths_are_here:
            folder = folder_of(location)
            if folder is not None and not (Path(folder) / RUNS.name).exists():
                raise missing(self.place(), RUNS)
        if assigns:
            find_all(self.config.assign.custom_assignors, self.config.limits.custom)
        return self.spark()

    def warn_of_writers(self, spark: SparkSession) -> None:
        """Say on stderr where a second writer's commit could be lost."""
        from groupledger.pipeline.doctor import writers_of

        found = writers_of(spark, self.place())
        if found is not None and not found.several:
            say(f"groupledger: {found.detail}: {found.advice}")

    def place(self) -> LedgerLocation:
        """Return the location of the ledger, which may not exist yet."""
        from groupledger.sinks.ledger_tables import LedgerLocation

        return LedgerLocation.of(self.config.ledger)

    def reader(self) -> LedgerReader | SparkReader:
        """Open the configured ledger for queries: without Spark if it is in a folder or on an object store.

        A catalog needs Spark, and so does a store whose login delta-rs cannot do as it is configured.
        """
        from groupledger.answers.reader import LedgerReader, folder_of, is_object_store

        location = self.config.ledger.location
        if location is not None and (folder := folder_of(location)) is not None:
            found: LedgerReader | SparkReader | None = LedgerReader(folder)
        else:
            found = self._store_reader(location) if location is not None and is_object_store(location) else None
        if found is None:
            from groupledger.pipeline.frames import SparkReader

            found = SparkReader(self.spark(), self.ledger().location)
        self.opened.append(found)
        return found

    def answer(
        self,
        ask: Callable[[LedgerReader | SparkReader], T],
        show: Callable[[Output, T], None],
        cluster: str | None,
        key: str,
        /,
        **more: object,
    ) -> T:
        """Ask the ledger, and print the answer; in the result it has this key."""
        with self.output.status("reading the ledger"):
            found = ask(self.reader())
        show(self.output, found)
        self.answered(found, cluster, **more, **{key: found})
        return found

    def answered(self, answer: object, cluster: str | None, /, **result: Any) -> None:
        """Print the result of a question, and up to when what it is about is known; `cluster`: that was asked for."""
        from groupledger.answers.scope import known_for

        read = known_for(self.opened[-1], answer, cluster)
        if read.reaches:
            self.output.line(read.text)
        self.done({"known_up_to": read.reaches, **result})

    def done(self, result: Mapping[str, Any], status: str = "done") -> None:
        """Print the result for a program."""
        self.output.result({"status": status, "command": self.name, **result})

    def _store_reader(self, location: str) -> LedgerReader | None:
        """Open a ledger on an object store with delta-rs; None, and a line on stderr with the reason, if it cannot."""
        from groupledger.answers.reader import LedgerReader, store_settings
        from groupledger.config.kafka_options import resolved

        given = resolved(self.config.ledger.storage_options)
        settings = store_settings(location, self.config.spark.conf, given)
        reason = f"delta-rs does not have {settings.lacks}"
        if settings.lacks is None:
            try:
                return LedgerReader(location, settings.options)
            except Fault as fault:
                if fault.code != "LEDGER_UNREADABLE" or given:
                    raise
                reason = fault.message
        say(f"note: {reason}; Spark reads the ledger instead (ledger.storage_options gives delta-rs a login)")
        return None

    def ledger(self) -> LedgerFrames:
        """Open the configured ledger, which must exist."""
        from groupledger.pipeline.frames import LedgerFrames

        place = self.config.ledger
        return LedgerFrames(self.spark_for_ledger(), place.location, catalog=place.catalog)


# Options that several commands take, each declared once: one name, one wording, one default.


def takes(*names: str) -> Callable[[Any], Any]:
    """Add options of SHARED to a command, by name, in the order of its help."""

    def add(command: Callable[..., Any]) -> Any:
        return functools.reduce(lambda made, name: SHARED[name](made), reversed(names), command)

    return add


_TIMES = (
    "24h, '10m ago' or now, counted from the newest record read; ISO 8601 (UTC unless it names "
    "a zone); Unix seconds or milliseconds."
)
_TO_GENERATION = "The rebalance to this generation or group epoch; latest."
_GENERATION = re.compile(r"latest|-?[0-9]{1,10}")


def _generation(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Read a generation or group epoch; `latest` is None, as if none were given."""
    if text is not None and not _GENERATION.fullmatch(text):
        raise click.BadParameter(f"{text!r} is no generation; expected a number, or latest (a time is --at)")
    return None if text in (None, "latest") else int(text)


def _takes_generation(command: Callable[..., Any]) -> Any:
    """Add `--generation`, and `--last`, the same as `--generation latest`; `was_given` says whether one was."""

    @click.option("--generation", callback=_generation, metavar="N", help=_TO_GENERATION)
    @click.option("--last", is_flag=True, hidden=True, help="The same as --generation latest.")
    @functools.wraps(command)
    def run(*args: Any, last: bool, generation: int | None, **more: Any) -> Any:
        if last and generation is not None:
            raise click.UsageError("--last or --generation, not both")
        return command(*args, generation=generation, **more)

    return run


def _time(context: click.Context, option: click.Parameter, text: str | None) -> Bound | None:
    return read_time(text, bound)


def _takes_group(command: Callable[..., Any], *, required: bool = False) -> Any:
    """Add GROUP as an argument and as `--group`; the command gets `group`."""

    @click.argument("group", required=False, metavar="GROUP" if required else "[GROUP]")
    @click.option("--group", "named", metavar="GROUP", help="GROUP, given as an option.")
    @functools.wraps(command)
    def run(*args: Any, group: str | None, named: str | None, **more: Any) -> Any:
        if group is not None and named is not None and group != named:
            raise click.UsageError(f"two groups: {group!r} and --group {named!r}; expected one")
        found = group if group is not None else named
        if required and found is None:
            all_groups = "; of all groups: groupledger timeline '*' --since TIME --until TIME"
            raise click.UsageError(f"Missing argument 'GROUP'{'' if more.get('at') is None else all_groups}.")
        return command(*args, group=found, **more)

    return run


def _takes_scope(command: Callable[..., Any], *, group: str = "group") -> Any:
    """Add the part of the ledger that a question is about: a group or a pattern of names, a cluster, a period.

    The command gets it as `asked`, a `answers.scope.RequestedScope`.
    """

    @takes(group, "since", "until", "cluster")
    @functools.wraps(command)
    def run(
        *args: Any, since: Bound | None, until: Bound | None, group: str | None, cluster: str | None, **more: Any
    ) -> Any:
        from groupledger.answers.scope import RequestedScope

        return command(*args, asked=RequestedScope(cluster, group, since, until), **more)

    return run


def was_given(*names: str) -> bool:
    """Return whether an option of one of these names stands on the command line."""
    given = click.get_current_context().get_parameter_source
    return any(given(name) is ParameterSource.COMMANDLINE for name in names)


def comma_separated(option: str, text: str, expected: str, most: int | None = None) -> tuple[str, ...]:
    """Return the names that an option takes, two or more."""
    names = [each.strip() for each in text.split(",")]
    found = tuple(dict.fromkeys(filter(None, names)))
    if len(found) < 2 if most is None else len(names) != most or not all(names):
        raise click.UsageError(f"{option} takes {expected}, with a comma between them; got {text!r}")
    return found


def place_given() -> str:
    """Return the options of the command line that say where the ledger is, which a command to paste needs as well."""
    params, given = click.get_current_context().params, (("config", "config_file"), ("ledger", "ledger"))
    places = [(option, without_secrets(params[name])) for option, name in given if was_given(name)]
    return "".join(f" --{option} {shlex.quote(place)}" for option, place in places)


def moment(reader: Reader, cluster: str | None, at: Bound | None, group: str | None = None) -> datetime | None:
    """Return the moment that `--at` means in the ledger; None if it was not given."""
    from groupledger.answers.scope import moments

    return moments(reader, cluster, [at], group)[0]


def _takes_json(command: Callable[..., Any]) -> Any:
    """Add `--json`; the command gets an `Output` as its first argument, which is as wide as `--wide` asks for."""

    @click.option("--json", "as_json", is_flag=True, help="One JSON line on stdout.")
    @functools.wraps(command)
    def run(*, as_json: bool, wide: bool = False, **options: Any) -> Any:
        return command(Output(as_json=as_json, wide=wide), **options)

    return run


def _takes_config(command: Callable[..., Any]) -> Any:
    """Add `--config`, `--ledger`, `--set` and `--json`; the command gets a `Job` as its first argument.

    A ledger or a cluster (`bootstrap`) on the command line replaces the configured one.
    """

    @takes("ledger", "json")
    @functools.wraps(command)
    def run(output: Output, *, opened: Callable[..., Job], **options: Any) -> Any:
        return command(opened(output, cluster_given(options)), **options)

    return run


def _takes_ledger(command: Callable[..., Any]) -> Any:
    """Add `--config`, `--ledger` and `--set`; the command gets `opened`, which makes the `Job` of an output.

    For a command that needs a ledger in some of its forms only: nothing is read before `opened` is called.
    """

    @click.option(
        "--config", "config_file", default=DEFAULT_CONFIG, show_default=True, metavar="FILE", help="YAML file."
    )
    @takes("folder", "set")
    @functools.wraps(command)
    def run(*, config_file: str, overrides: tuple[str, ...], ledger: str | None, **options: Any) -> Any:
        name = click.get_current_context().info_name or ""
        place = {} if ledger is None else {"ledger": {"location": ledger}}

        def opened(output: Output, given: Mapping[str, Any] | None = None) -> Job:
            return Job.configured(name, output, file_of(config_file), overrides, {**place, **(given or {})})

        return command(opened=opened, **options)

    return run


def file_of(config_file: str) -> Path | None:
    """Return the file that `--config` names; None if it is the default one and does not exist."""
    source = click.get_current_context().get_parameter_source("config_file")
    named = source is not ParameterSource.DEFAULT
    return Path(config_file) if named or Path(config_file).exists() else None


def _takes_sample(command: Callable[..., Any]) -> Any:
    """Add `--ledger`, `--set` and `--json`; the command gets a `Job` over the sample data as its first argument.

    The sample is never written to the ledger that the environment names: that one holds somebody's data.
    """

    @takes("folder", "set", "json")
    @functools.wraps(command)
    def run(output: Output, *, overrides: tuple[str, ...], ledger: str | None, **options: Any) -> Any:
        from groupledger.config.loading import sample_settings

        context = click.get_current_context()
        named = context.get_parameter_source("ledger") is ParameterSource.COMMANDLINE
        given = {**sample_settings(), "ledger": {"location": ledger if named else DEMO_LEDGER}}
        return command(Job.configured(context.info_name or "", output, None, overrides, given), **options)

    return run


def _takes_custom(command: Callable[..., Any]) -> Any:
    """Add `--custom` and its limits; the command gets `custom` (names) and `limits`."""

    @click.option("--custom", multiple=True, metavar="MODULE:FUNCTION", help="A custom assignor that lines may name.")
    @_limit("--custom-seconds", 1, SECONDS, "Seconds a custom assignor may take for one group.")
    @_limit("--custom-memory-mb", 64, MEMORY_MB, "Memory of the process a custom assignor runs in, in MiB.")
    @functools.wraps(command)
    def run(*args: Any, custom_seconds: int, custom_memory_mb: int, **options: Any) -> Any:
        return command(*args, limits=CustomLimits(custom_seconds, custom_memory_mb), **options)

    return run


def _limit(name: str, least: int, default: int, words: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.IntRange(least), default=default, show_default=True, help=words)


# Take a running cluster on the command line, instead of the configured sources.

BOOTSTRAP, OPTIONS, FILE = "bootstrap", "kafka_options", "command_config"


def _takes_cluster(command: Callable[..., Any]) -> Any:
    """Add `--bootstrap`, `--kafka-option` and `--command-config`, which make the cluster the only source."""
    words = "Client options in a properties file, as for Kafka's tools."
    command = click.option("--command-config", FILE, metavar="FILE", help=words)(command)
    words = "An option of the Kafka client."
    command = click.option("--kafka-option", OPTIONS, multiple=True, metavar="NAME=VALUE", help=words)(command)
    words = "Read this running cluster; needs no --config."
    return click.option("--bootstrap", metavar="HOST:PORT,..", help=words)(command)


def cluster_given(options: dict[str, Any]) -> dict[str, Any]:
    """Convert the options of `bootstrap` to configuration, and remove them from `options`."""
    bootstrap, named, file = (options.pop(name, None) for name in (BOOTSTRAP, OPTIONS, FILE))
    if bootstrap is None:
        if named or file:
            raise click.UsageError("--kafka-option and --command-config go with --bootstrap")
        return {}
    from groupledger.config.kafka_options import from_file

    found = from_file(Path(file)) if file else {}
    for each in named or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError("--kafka-option: expected NAME=VALUE, such as security.protocol=SSL")
        found[name] = value
    return {"cluster_id": None, "sources": [{"kind": "kafka", "bootstrap": bootstrap, "options": found}]}


SHARED: Mapping[str, Callable[[Any], Any]] = {
    "assignor": click.option(
        "--assignor",
        callback=lambda _context, _option, name: name and called(name),
        metavar="NAME",
        help="An assignor: its name, its Java class, or MODULE:FUNCTION.",
    ),
    "at": click.option("--at", callback=_time, metavar="TIME", help=f"At this time: {_TIMES}"),
    "bootstrap": _takes_cluster,
    "cluster": click.option("--cluster", metavar="CLUSTER", help="Only this cluster."),
    "config": _takes_config,
    "custom": _takes_custom,
    "folder": click.option(
        "--ledger",
        metavar="FOLDER",
        envvar="GROUPLEDGER_LEDGER",
        show_envvar=True,
        help="The ledger's folder, instead of the configured one.",
    ),
    "generation": _takes_generation,
    "group": _takes_group,
    "GROUP": functools.partial(_takes_group, required=True),
    "html": click.option(
        "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page with pictures."
    ),
    "json": _takes_json,
    "ledger": _takes_ledger,
    "limit": click.option(
        "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Maximum rows of a table."
    ),
    "listener": click.option(
        "--listener", metavar="MODULE:CLASS", help="Give members this rebalance listener; print what it did."
    ),
    "run_id": click.option("--run-id", metavar="ID", help="Unique name of the run; a committed one changes nothing."),
    "sample": _takes_sample,
    "scenario": click.option("--scenario", metavar="NAME", help="The results of `assign` or `replay` by this name."),
    "scope": _takes_scope,
    "SCOPE": functools.partial(_takes_scope, group="GROUP"),
    "set": click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a setting."),
    "since": click.option("--since", callback=_time, metavar="TIME", help=f"From then on: {_TIMES}"),
    "timings": click.option("--timings", is_flag=True, help="Print the time of each stage."),
    "until": click.option("--until", callback=_time, metavar="TIME", help="Up to then, in the same formats."),
    "wide": click.option("--wide", is_flag=True, help="All columns, and ids in full."),
}
"""By the name by which `takes` adds them; GROUP and SCOPE are those that must be given."""


# Parse times given as options, and say if a zone was assumed.


def read_time(text: str | None, parse: Callable[[str], tuple[T, bool]]) -> T | None:
    """Parse a time by `moments.bound` or `moments.point`; None if the option is not given."""
    if text is None:
        return None
    found, assumed = parse(text)
    if assumed:
        say(f"no time zone in {text!r}: UTC assumed")
    return found
