"""Which assignor runs on each group of a batch, and how: as recorded, as a what-if, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors import Mode, assign
from groupledger.core.batch import NONE, AssignmentBatch, GroupBatch
from groupledger.core.custom.batches import Texts, assign_custom
from groupledger.core.custom.calls import Complaint
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.registry import BY_NAME
from groupledger.core.step import Form

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.slots import Mask

Complaints = Mapping[int, tuple[Complaint, ...]]
"""By group: the defects of its custom assignor's answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs on each group. Indices into `names`; NONE in `chosen`: no assignor, the step leads to the record."""

    names: tuple[str, ...]
    chosen: IntArray  # [G]
    recorded: IntArray  # [G] assignor of the record, NONE: not among `names`
    prejudged: IntArray  # [G] a `Verdict` that needs no comparison, NONE otherwise
    form: Form
    custom: Mapping[str, CustomAssignor] = field(default_factory=dict)  # those of `names` that are not ours
    texts: Texts | None = None  # required if any of `custom` is chosen
    carried: bool = False  # what members held is not recorded: the chosen assignor gave it to them before; so a row is
    # not a round, but the rebalance until it has settled
    stated: bool = (
        False  # members' claims are stated, not recorded: nothing is judged, the assignor's own protocol counts
    )

    @property
    def what_if(self) -> Mask:
        """Mark groups with another assignor than recorded, or continued from its answers: members own what they had."""
        differs: Mask = (self.chosen != NONE) & (self.carried | (self.chosen != self.recorded))
        return differs

    @property
    def cooperative(self) -> Mask:
        """Mark groups whose chosen assignor is made for members that keep what they own.

        Used for what-ifs and stated claims only; history shows actual behaviour.
        """
        made: Mask = np.array([self._keeps(name) for name in (*self.names, "")])[self.chosen]
        return made

    def _keeps(self, name: str) -> bool:
        known = self.custom.get(name) or BY_NAME.get(name)
        return known is not None and known.cooperative

    @property
    def by_protocol(self) -> Mask:
        """Mark groups whose members keep what the assignor's protocol lets them keep, whatever a record shows."""
        return self.what_if | (self.chosen != NONE) if self.stated else self.what_if

    @property
    def plans(self) -> Mask:
        """Mark groups whose answer is a plan, not evidence: in the KIP's form, what-ifs are assigned in mode `safe`."""
        ours = np.array([name not in self.custom for name in (*self.names, "")])[self.chosen]
        planned: Mask = self.what_if & ours & (self.form is Form.KIP)
        return planned

    def run(
        self, name: str, mode: Mode, part: GroupBatch, member: LongArray, topic: LongArray
    ) -> tuple[AssignmentBatch, dict[int, tuple[Complaint, ...]]]:
        """Run one assignor on some groups; return its answer, and complaints about a custom one by group."""
        if name not in self.custom:
            return assign(name, part, mode=mode), {}
        if self.texts is None:
            raise AssertionError(f"{name} is a custom assignor; expected the texts of its groups")
        return assign_custom(self.custom[name], part, self.texts.of(member, topic))
