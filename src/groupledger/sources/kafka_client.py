"""Query a running cluster through confluent-kafka's admin client: its id, the ends of its log, its topics.

Nothing here joins a group, commits or writes. A request that is not answered in time, or that no retry could fix, is a
Fault of one line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from groupledger.core.digest import digest
from groupledger.core.faults import PASSING, UNSETTLED, Fault, client_module, is_hopeless, kafka_fault, unreachable
from groupledger.core.log.described_groups import DescribedGroup, DescribedMember
from groupledger.core.log.lines import TOPIC
from groupledger.core.log.read_plan import LogEnds

PACKAGE = ("confluent-kafka", "kafka")
_POLL_SECONDS, _AGAIN_SECONDS = 0.05, 0.2
_NAMES_A_QUESTION = 500
_GONE = "UNKNOWN_TOPIC_OR_PART"
_NOT_DESCRIBED = frozenset({"GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION"})
"""Errors of a group that is gone, may not be seen, or has a type that this client cannot describe."""
Returned = TypeVar("Returned")
TopicListing = tuple[str, str | None, tuple[tuple[str | None, ...], ...]]
"""A topic: name, id, and the racks of each partition's replicas."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a cluster is, how to log in (never shown), and the timeout of a request."""

    bootstrap: str
    options: Mapping[str, str] = field(repr=False)
    timeout_seconds: float

    def client(self, kind: str, library: str = "confluent_kafka", **ours: Any) -> Any:
        """Make a client of the library. Raises Fault: CLIENT_MISSING, KAFKA_OPTION if it rejects the options.

        It writes no log of its own: faults say what it would log.
        """
        module = client_module(library, *PACKAGE)
        quiet = logging.getLogger("groupledger.kafka")
        quiet.propagate = False
        if not quiet.handlers:
            quiet.addHandler(logging.NullHandler())
        settings = {**self.options, "bootstrap.servers": self.bootstrap, "logger": quiet, **ours}
        try:
            return getattr(module, kind)(settings)
        except client_module("confluent_kafka", *PACKAGE).KafkaException as error:
            raise Fault("KAFKA_OPTION", f"options of the Kafka client: {error.args[0].str()}; see sources") from error
        except (TypeError, ValueError) as error:
            raise Fault("KAFKA_OPTION", f"options of the Kafka client: {error}; see sources") from error


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster at one moment. `ends`: of each partition of its log; empty if it never had a group."""

    cluster_id: str
    ends: Mapping[int, LogEnds]
    topics: tuple[TopicListing, ...]

    @property
    def topics_digest(self) -> str:
        """Return a digest that is equal for the same topics with the same ids, partitions and racks."""
        return digest(self.topics)


class _UnsettledError(Exception):
    """A request was answered with a transient error; holds the fault to raise if it persists."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Cluster:
    """Requests to a cluster. `seconds` is a monotonic clock."""

    def __init__(self, address: Address, seconds: Callable[[], float]) -> None:
        self.address, self._seconds = address, seconds
        self._errors: list[Any] = []
        self._until = 0.0
        self._library = client_module("confluent_kafka", *PACKAGE)
        self._asked = client_module("confluent_kafka.admin", *PACKAGE)
        self._admin = address.client("AdminClient", "confluent_kafka.admin", error_cb=self._errors.append)

    def state(self) -> ClusterState:
        """Return everything that an ingest needs; the log's ends are read before the topics are listed."""
        cluster_id = self.cluster_id()
        log_partitions = self.partitions().get(TOPIC, 0)
        if not log_partitions:
            self.described_topics([TOPIC])  # if it is missing or not visible to us, this raises a Fault
        ends = self._ends(log_partitions)
        return ClusterState(cluster_id, ends, self.topics())  # even topic names are requested after the ends

    def topics(self) -> tuple[TopicListing, ...]:
        """Return the topics visible to us."""
        found = []
        for topic in self.described_topics(sorted(self.partitions())):
            partitions = sorted(topic.partitions, key=lambda each: each.id)
            racks = tuple(tuple(node.rack or None for node in each.replicas) for each in partitions)
            found.append((topic.name, str(topic.topic_id) if topic.topic_id else None, racks))
        return tuple(sorted(found, key=lambda each: each[0]))

    def cluster_id(self) -> str:
        """Return the cluster's own id: the first request, which shows whether a broker answers."""
        return str(self.described().cluster_id)

    def described(self, *, rights: bool = False) -> Any:
        """Return the cluster's description."""
        settings = self._timeout | ({"include_authorized_operations": True} if rights else {})
        return self._settled(lambda: self._answer(self._admin.describe_cluster(**settings), "describing the cluster"))

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of each topic visible to us."""
        found = self._settled(self._metadata)
        return {name: len(topic.partitions) for name, topic in found.topics.items()}

    def described_topics(self, names: Iterable[str], *, rights: bool = False) -> list[Any]:
        """Return the descriptions of those topics that still exist."""
        settings = self._timeout | ({"include_authorized_operations": True} if rights else {})
        wanted, found = list(names), []
        for at in range(0, len(wanted), _NAMES_A_QUESTION):
            some = self._library.TopicCollection(wanted[at : at + _NAMES_A_QUESTION])
            ask = partial(self._admin.describe_topics, some, **settings)
            topics = self._answers(ask, "describing the topic", {_GONE})
            found += [topic for topic in topics.values() if topic is not None]
        return found

    def groups(self) -> tuple[list[DescribedGroup], list[str]]:
        """Return the groups' descriptions, and the ids of groups without one."""
        wanted = sorted(each.group_id for each in self._settled(self._listed_groups))
        found, left_out = list[DescribedGroup](), list[str]()
        for at in range(0, len(wanted), _NAMES_A_QUESTION):
            some = wanted[at : at + _NAMES_A_QUESTION]
            ask = partial(self._admin.describe_consumer_groups, some, **self._timeout)
            for name, group in self._answers(ask, "describing the group", _NOT_DESCRIBED).items():
                if group is None:
                    left_out.append(name)
                else:
                    found.append(_group(group))
        return found, left_out

    @property
    def _timeout(self) -> dict[str, float]:
        return {"request_timeout": self.address.timeout_seconds}

    def _ends(self, partitions: int) -> dict[int, LogEnds]:
        """Return log start and end of each log partition, the end as seen by a reader of uncommitted records."""
        starts, ends = (self._offsets(partitions, spec) for spec in ("earliest", "latest"))
        return {partition: LogEnds(starts[partition], ends[partition]) for partition in range(partitions)}

    def _offsets(self, partitions: int, which: str) -> dict[int, int]:
        if not partitions:
            return {}
        spec = getattr(self._asked.OffsetSpec, which)()
        asked = {self._library.TopicPartition(TOPIC, partition): spec for partition in range(partitions)}
        level = self._library.IsolationLevel.READ_UNCOMMITTED
        ask = partial(self._admin.list_offsets, asked, isolation_level=level, **self._timeout)
        found = self._answers(ask, f"asking for the {which} offsets of")
        return {place.partition: answer.offset for place, answer in found.items()}

    def _metadata(self) -> Any:
        try:
            return self._admin.list_topics(timeout=self.address.timeout_seconds)
        except self._library.KafkaException as error:
            raise self._fault(error, "listing the topics") from error

    def _listed_groups(self) -> Any:
        doing = "listing the groups"
        listed = self._answer(self._admin.list_consumer_groups(**self._timeout), doing)
        for error in listed.errors:
            raise self._fault(error, doing)
        return listed.valid

    def _settled(self, question: Callable[[], Returned]) -> Returned:
        """Ask, and retry within the timeout of one request while a leader has changed or just started."""
        self._until = self._seconds() + self.address.timeout_seconds
        while True:
            try:
                return question()
            except _UnsettledError as error:
                if self._seconds() > self._until:
                    raise error.fault from error
            self._admin.poll(_AGAIN_SECONDS)

    def _answers(
        self, ask: Callable[[], Mapping[Any, Any]], doing: str, unless: Collection[str] = ()
    ) -> dict[Any, Any]:
        """Return the answers to a request about several things, by thing."""
        return self._settled(
            lambda: {about: self._answer(each, f"{doing} {_name(about)}", unless) for about, each in ask().items()}
        )

    def _answer(self, future: Any, doing: str, unless: Collection[str] = ()) -> Any:
        """Return the answer to a request; None for one of the errors `unless`."""
        while not future.done():
            self._admin.poll(_POLL_SECONDS)
            hopeless = next((error for error in self._errors if is_hopeless(error.name(), error.str())), None)
            if hopeless is not None:
                raise kafka_fault(hopeless.name(), hopeless.str(), self.address.bootstrap, doing)
            if self._seconds() > self._until:
                raise silence(self.address, self._errors, doing)
        try:
            return future.result(0)
        except self._library.KafkaException as error:
            if error.args[0].name() in unless:
                return None
            raise self._fault(error, doing) from error

    def _fault(self, error: Any, doing: str) -> Exception:
        """Return the exception for an error, which may be transient."""
        cause = error.args[0]
        fault = kafka_fault(cause.name(), cause.str(), self.address.bootstrap, doing)
        if fault.code == "KAFKA_UNREACHABLE":
            fault = silence(self.address, self._errors, doing)
        return _UnsettledError(fault) if cause.name() in UNSETTLED else fault


def _name(about: Any) -> str:
    """Return the name of what is requested: a partition of a topic, or something with a name."""
    return about if isinstance(about, str) else f"{about.topic} partition {about.partition}"


def _group(group: Any) -> DescribedGroup:
    members = tuple(
        DescribedMember(
            each.member_id,
            each.group_instance_id or None,
            each.client_id or None,
            each.host or None,
            tuple((at.topic, at.partition) for at in each.assignment.topic_partitions),
        )
        for each in group.members
    )
    state = "".join(word.capitalize() for word in group.state.name.split("_"))
    kind = "consumer" if group.type.name == "CONSUMER" else "classic"  # a broker older than KIP-848 does not say
    return DescribedGroup(group.group_id, kind, state, group.partition_assignor or None, members)


def silence(address: Address, errors: Iterable[Any], doing: str) -> Fault:
    """Return the fault of a cluster that did not answer in time, by the errors that its client reported meanwhile."""
    heard = [error for error in errors if error.name() not in PASSING]
    hopeless = [error for error in heard if is_hopeless(error.name(), error.str())]
    for error in (*hopeless, *heard[-1:]):
        fault = kafka_fault(error.name(), error.str(), address.bootstrap, doing)
        if fault.code != "KAFKA_UNREACHABLE":
            return fault
    said = heard[-1].str() if heard else None
    return unreachable(address.bootstrap, said, doing, address.timeout_seconds)
