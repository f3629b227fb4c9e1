"""The heads of the groups of a timeline: their states behind the last record, each written once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.batch import NONE
from groupledger.core.history import GroupHeadRow
from groupledger.core.history.fold import BEGINNING
from groupledger.core.history.head import encode_state
from groupledger.core.history.roles import GroupType
from groupledger.core.history.writer import Generation, GroupState

if TYPE_CHECKING:
    from groupledger.core.history.head import Tenures
    from groupledger.core.history.rows import Assignment
    from groupledger.engine.classic.tables import FactColumns
    from groupledger.engine.classic.timeline import HeadOfGroup


def head_rows(facts: FactColumns, refolded: list[bool], heads: Mapping[int, HeadOfGroup]) -> Iterator[GroupHeadRow]:
    """Rows of `group_heads` for the good groups."""
    writer = HeadWriter(facts)
    for group in np.flatnonzero(facts.good).tolist():
        from_offset = heads[group].state.offset if group in heads else BEGINNING
        state, held = writer.state(group)
        yield GroupHeadRow(
            writer.cluster_ids[group],
            state.group_id,
            state.log_partition,
            from_offset,
            state.offset,
            state.incarnation,
            refolded[group],
            encode_state(state, held),
        )


class HeadWriter:
    """Reads states off a timeline."""

    def __init__(self, facts: FactColumns) -> None:
        line, self.line = facts.line, facts.line
        self.cluster_ids, self.group_ids = facts.cluster_ids.to_pylist(), facts.group_ids.to_pylist()
        self.homes, self.last_offsets = facts.homes.tolist(), facts.last_offsets.tolist()
        self.instances = line.instances
        held = line.transfers.held
        self.bounds = line.transfers.held_start.tolist()
        self.held = [column[: self.bounds[-1]].tolist() for column in held]
        slots = np.asarray(held.slot[: self.bounds[-1]])
        self.topics = line.slot_topic[slots].tolist()
        self.topic_ids = line.topic_id_at_end[slots].tolist()
        self.partitions = line.slot_partition[slots].tolist()
        self.states = {name: getattr(line.states, name).tolist() for name in line.states._fields}

    def state(self, group: int) -> tuple[GroupState, list[Tenures]]:
        """The state of a group, and what its members hold."""
        of = {name: column[group] for name, column in self.states.items()}
        state = GroupState(
            self.group_ids[group],
            self.homes[group],
            offset=self.last_offsets[group],
            incarnation=of["incarnation"],
            group_type=GroupType.CLASSIC.value if of["incarnation"] else None,
            alive=bool(of["alive"]),
            number=of["number"] if of["has_number"] else None,
            previous_offset=None if of["previous"] == NONE else of["previous"],
            hole=bool(of["hole"]),
            generation=self._generation(of["last"], of["first"]),
        )
        return state, self._tenures(group)

    def _generation(self, step: int, first_offset: int) -> Generation | None:
        if step == NONE:
            return None
        line = self.line
        first = line.steps.member_first[step]
        rows = slice(first, first + line.steps.member_count[step])
        members = {
            line.members[member]: None if instance == NONE else self.instances[instance]
            for member, instance in zip(
                line.names.member[rows].tolist(), line.names.instance[rows].tolist(), strict=True
            )
        }
        return Generation(int(line.steps.generation[step]), first_offset, int(line.time[step]), members)

    def _tenures(self, group: int) -> list[Tenures]:
        """By member, then since when, topic and partition."""
        _, members, since, has_since = self.held
        spans: dict[tuple[int, bool, int], dict[int, list[int]]] = {}
        ids: dict[int, int] = {}
        for row in range(self.bounds[group], self.bounds[group + 1]):
            tenure = members[row], bool(has_since[row]), since[row] if has_since[row] else 0
            spans.setdefault(tenure, {}).setdefault(self.topics[row], []).append(self.partitions[row])
            ids[self.topics[row]] = self.topic_ids[row]
        return [
            (self.line.members[member], moment if known else None, self._assignment(topics, ids))
            for (member, known, moment), topics in sorted(spans.items())
        ]

    def _assignment(self, topics: dict[int, list[int]], ids: dict[int, int]) -> Assignment:
        line = self.line
        return tuple(
            [
                (None if ids[topic] == NONE else line.topic_ids[ids[topic]], line.topics[topic], tuple(numbers))
                for topic, numbers in topics.items()
            ]
        )
