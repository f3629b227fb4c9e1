"""Declare every invariant of a recorded rebalance, with its stable code and severity.

`INGEST` and `ASSIGN` write rows of the table `violations` under `recorded_as`; `AUDIT` is judged on request.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from groupledger.core.faults import Fault, meant


class Severity(StrEnum):
    """How serious a finding is, the gravest first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Judge(StrEnum):
    """The command that judges an invariant."""

    INGEST = "ingest"
    ASSIGN = "assign"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant, by the code under which its breach is found.

    `severity` is the gravest of its findings. `shown_by`: the command that shows more of it, of a group; `guide`: the
    page of the documentation about it. `recorded_as` is its code in the table `violations`, if that differs: codes in
    tables never change.
    """

    code: str
    severity: Severity
    judge: Judge
    shown_by: str
    guide: str
    what: str
    recorded_as: str

    def next_step(self, group_id: str, cluster_id: str, snapshot_id: str | None, at: str | None, where: str) -> str:
        """Return the command that shows more of a finding, in the ledger that `where` names, and the page about it."""
        words, options = re.fullmatch(r"([a-z -]*?)((?: --.*)?)", self.shown_by).groups()  # type: ignore[union-attr]
        log, _, offset = (snapshot_id or "").rpartition("/")
        if words == "explain" and log.startswith("log/") and offset.isdecimal():
            options += f" --offset {offset}"
        elif words in ("explain", "who") and at is not None:
            options += f" --at {at}"
        named = f"{shlex.quote(group_id)}{options} --cluster {shlex.quote(cluster_id)}{where}"
        return f"groupledger {words} {named} (docs/guides/investigate/{self.guide}.md)"


def _recorded(*declared: Any) -> Invariant:
    return Invariant(*declared, *([] if len(declared) > 6 else [declared[0]]))


DOUBLE_OWNED = _recorded(
    *("DOUBLE_OWNED", Severity.ERROR, Judge.INGEST),
    *("timeline --partition TOPIC-N", "two-owners-duplicates-zombies"),
    "a partition is recorded for two members at once; never in a share group, where that is right",
    "DOUBLE_ASSIGNED",
)
NOT_SUBSCRIBED = _recorded(
    *("NOT_SUBSCRIBED", Severity.ERROR, Judge.INGEST),
    *("explain", "which-client-assigned"),
    "a member is assigned partitions of a topic that its subscription does not name",
    "ASSIGNED_NOT_SUBSCRIBED",
)
ASSIGNED_WITHOUT_TOPICS = _recorded(
    *("ASSIGNED_WITHOUT_TOPICS", Severity.ERROR, Judge.INGEST),
    *("explain", "audit"),
    "a member whose subscription names no topic is assigned partitions, which nobody reads: Kafka's sticky and "
    "cooperative-sticky do so where such a member comes first when they compare the subscriptions",
)
OFFSET_REWRITTEN = _recorded(
    *("OFFSET_REWRITTEN", Severity.ERROR, Judge.INGEST),
    *("show --coverage", "audit"),
    "an offset of the log was read with two contents: the log was truncated, or two clusters share a cluster id",
)
REPEATED_TOPIC = _recorded(
    *("REPEATED_TOPIC", Severity.WARNING, Judge.INGEST),
    *("explain", "which-client-assigned"),
    "a topic stands twice in a member's assignment: some clients take only one of the two, and rejoin over and over",
    "TOPIC_REPEATED",
)
STALE_CLAIM = _recorded(
    *("STALE_CLAIM", Severity.WARNING, Judge.INGEST),
    *("explain", "two-owners-duplicates-zombies"),
    "a member claims partitions of an older generation, which may be another member's by now",
)
CLAIM_DIFFERS = _recorded(
    *("CLAIM_DIFFERS", Severity.WARNING, Judge.INGEST),
    *("explain", "two-owners-duplicates-zombies"),
    "a member claims other partitions than were recorded for it; info where the course of things explains it (an eager "
    "member, a static one that came back, a deleted topic, one that the member no longer subscribes to), and where the "
    "log lacks the record of the claim's generation, so that it cannot be judged",
)
REWRITE_DIFFERS = _recorded(
    *("REWRITE_DIFFERS", Severity.WARNING, Judge.INGEST),
    *("timeline", "audit"),
    "a generation was recorded again with another assignment",
)
HANDED_OVER_BEFORE_REVOKED = _recorded(
    *("HANDED_OVER_BEFORE_REVOKED", Severity.ERROR, Judge.ASSIGN),
    *("explain", "which-client-assigned"),
    "a partition went to a new owner while another member said it owned it (KIP-429)",
    "HANDED_OVER",
)
LEFT_OUT = _recorded(
    *("LEFT_OUT", Severity.WARNING, Judge.ASSIGN),
    *("explain", "unowned-partitions"),
    "the assignor gave partitions of a topic to nobody, and others of that topic to members",
)
UNOWNED = _recorded(
    *("UNOWNED", Severity.ERROR, Judge.AUDIT),
    *("who --unowned-since", "unowned-partitions"),
    "nobody has a partition of a subscribed topic although the group has members, for longer than a rebalance explains",
)
NEVER_SETTLES = _recorded(
    *("NEVER_SETTLES", Severity.ERROR, Judge.AUDIT),
    *("report storms", "rebalance-storms"),
    "a classic group rebalances again and again while nothing changes that the log holds of members, subscriptions and "
    "topics",
)
SHARED_INSTANCE_ID = _recorded(
    *("SHARED_INSTANCE_ID", Severity.ERROR, Judge.AUDIT),
    *("report static", "static-members"),
    "one group.instance.id is taken over again and again: two processes share it, or one restarts over and over",
)
COPARTITION_BROKEN = _recorded(
    *("COPARTITION_BROKEN", Severity.ERROR, Judge.AUDIT),
    *("audit --joined TOPIC,TOPIC", "co-partitioned-joins"),
    "topics that are joined have different partition counts, or their partitions of one number different owners",
)
UNBALANCED = _recorded(
    *("UNBALANCED", Severity.WARNING, Judge.AUDIT),
    *("report skew", "skew"),
    "a settled group with one subscription has a member with two or more partitions more than another, under an "
    "assignor that promises balance",
)
EXCESS_MOVES = _recorded(
    *("EXCESS_MOVES", Severity.WARNING, Judge.AUDIT),
    *("report stickiness", "excess-moves"),
    "more partitions moved than had to, under an assignor that promises to keep what members have",
)

INVARIANTS = (
    *(UNOWNED, DOUBLE_OWNED, NOT_SUBSCRIBED, ASSIGNED_WITHOUT_TOPICS, HANDED_OVER_BEFORE_REVOKED, NEVER_SETTLES),
    *(SHARED_INSTANCE_ID, COPARTITION_BROKEN, OFFSET_REWRITTEN, STALE_CLAIM, REPEATED_TOPIC, LEFT_OUT, REWRITE_DIFFERS),
    *(CLAIM_DIFFERS, UNBALANCED, EXCESS_MOVES),
)
"""All invariants, the gravest first."""
BY_CODE = {each.code: each for each in INVARIANTS}
BY_RECORDED = {each.recorded_as: each for each in INVARIANTS}


def audited(finding: str) -> str:
    """Return a finding as `CODE: evidence` with the code of `audit`, whatever the table `violations` calls it."""
    code, colon, evidence = finding.partition(":")
    return f"{BY_RECORDED[code].code if code in BY_RECORDED else code}{colon}{evidence}"


def failing(words: Iterable[str]) -> frozenset[str]:
    """Parse a person's lists of codes and severities (`UNOWNED,error`) into codes and severities, in their own case.

    A code of the table `violations` selects its invariant. Raises Fault("UNKNOWN_CODE") for any other word, and for a
    list without one: an unset variable of a script would open its gate.
    """
    found = set()
    for word in (word.strip() for text in words for word in _words(text)):
        code, severity = word.upper(), word.lower()
        if code in BY_CODE or code in BY_RECORDED:
            found.add((BY_CODE.get(code) or BY_RECORDED[code]).code)
        elif severity in {each.value for each in Severity}:
            found.add(severity)
        else:
            known = f"{meant(code, BY_CODE, 2)}known: {', '.join([*BY_CODE, *Severity])}"
            raise Fault("UNKNOWN_CODE", f"no finding has the code or severity {word!r}; {known}")
    return frozenset(found)


def _words(text: str) -> list[str]:
    found = [each for each in text.split(",") if each.strip()]
    if not found:
        raise Fault("UNKNOWN_CODE", "the list names no code or severity; expected some, such as UNOWNED,error")
    return found
