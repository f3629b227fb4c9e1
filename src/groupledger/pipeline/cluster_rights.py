"""May this user read a cluster's log? What is asked here is what an ingest asks, and a record or two are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from groupledger.config.settings import ADMIN
from groupledger.core.faults import Fault
from groupledger.core.kafka_faults import RIGHTS_ENOUGH
from groupledger.core.lines.log_records import TOPIC
from groupledger.core.log_plan import LogEnds, OffsetRange
from groupledger.pipeline.cluster import address_of
from groupledger.pipeline.doctor import Check
from groupledger.sources.kafka_client import Address, Cluster
from groupledger.sources.kafka_records import StretchReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from groupledger.config import SourceSettings

_NAMED = 3
_GRANT = f"grant this user {RIGHTS_ENOUGH}"


def cluster_checks(source: SourceSettings, seconds: Callable[[], float]) -> Iterator[Check]:
    """Is the cluster there, may its log (its groups, of kind admin) be read, and its topics be described?

    The first that fails is the last.
    """
    try:
        address = address_of(source)
        cluster = Cluster(address, seconds)
        described = cluster.described()
        yield Check("cluster", True, f"{described.cluster_id} at {address.bootstrap}: {len(described.nodes)} brokers")
        if source.kind == ADMIN:
            yield _groups(cluster)
            return
        state = cluster.state()
    except Fault as fault:
        yield Check("cluster", False, fault.message, _remedy(fault))
        return
    yield _described(state.ends)
    yield from _read(address, state.ends)
    topics = f"{len(state.topics)} topics can be described; one that this user may not describe is not seen"
    yield Check("topics", True, topics, "" if state.topics else f"where there are topics, {_GRANT}")
    yield Check("rights that are enough", True, RIGHTS_ENOUGH)


def _groups(cluster: Cluster) -> Check:
    found, missing = cluster.groups()
    told = f"{len(found)} groups can be described; {len(missing)} cannot; one that may not be listed is not seen"
    return Check(
        "groups", not missing, told, f"grant this user Describe on {', '.join(missing[:3])}" if missing else ""
    )


def _described(ends: Mapping[int, LogEnds]) -> Check:
    if not ends:
        return Check("describe the log", True, f"there is no {TOPIC} yet: no group was ever there")
    offsets = sum(end - start for start, end in ends.values())
    return Check("describe the log", True, f"{TOPIC} has {len(ends)} partitions, {offsets:,} offsets")


def _read(address: Address, ends: Mapping[int, LogEnds]) -> Iterator[Check]:
    """Read the last offset of the first log partition that has any."""
    some = [OffsetRange(partition, end - 1, end) for partition, (start, end) in sorted(ends.items()) if start < end]
    if not some:
        return
    try:
        for _ in StretchReader(address, offset_commits=True).read(some[0]):
            pass
    except Fault as fault:
        yield Check("read the log", False, fault.message, _remedy(fault))
    else:
        yield Check("read the log", True, f"{TOPIC} can be read, without a group")


def _remedy(fault: Fault) -> str:
    return _GRANT if fault.code == "KAFKA_NOT_ALLOWED" else "see what it says"
