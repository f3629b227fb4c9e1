"""The fold over columns against the fold of one group at a time: equal rows, findings, heads and counts."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.history import LogRow
from groupledger.core.wire.consumer_protocol import ConsumerProtocolAssignment, encode_assignment
from groupledger.core.wire.offsets_log import RecordKind
from tests.core.history.captured import log_rows, topic_changes
from tests.core.history.histories import HISTORIES
from tests.core.history.records import Log, member
from tests.core.history.test_conversions import GROUPS, case
from tests.core.history.test_conversions import changes as topics_of_case
from tests.core.wire.captured import LOGS
from tests.engine.both_folds import compared, left_groups, rows_of
from tests.engine.classic_logs import CHANGES, bucket, heads_of, logs
from tests.engine.slices import in_slices
from tests.examples import examples
from tests.fuzz import replay
from tests.fuzz.checks import check


def in_pieces(groups: dict[str, list[LogRow]], changes, cuts: int) -> None:
    """Both folds agree on every piece of the groups, each piece from the heads of the ones before."""
    heads: dict[str, bytes] = {}
    for piece in range(cuts):
        part = {}
        for name, rows in groups.items():
            offsets = sorted({row.offset for row in rows})
            first, end = (len(offsets) * bound // cuts for bound in (piece, piece + 1))
            part[name] = [row for row in rows if row.offset in offsets[first:end]]
        part = {name: rows for name, rows in part.items() if rows}
        heads |= heads_of(compared(bucket(part, heads, changes)))


@pytest.mark.parametrize("name", LOGS)
def test_captures_fold_alike_at_once_and_in_pieces(name):
    changes, groups = topic_changes(name.split("/")[0]), {group: list(rows) for group, rows in log_rows(name).items()}
    compared(bucket(groups, changes=changes))
    in_pieces(groups, changes, 3)


def test_the_columns_fold_all_groups_of_a_capture_that_only_have_generations():
    groups = {
        name: [row for row in rows if (row.key or b"")[:2] == b"\0\2"] for name, rows in log_rows("dev/offsets").items()
    }
    groups = {name: rows for name, rows in groups.items() if rows}
    assert left_groups(bucket(groups, changes=topic_changes("dev"))) == 0
    assert len(groups) > 3


@pytest.mark.parametrize("group", GROUPS)
def test_conversions_fold_alike_at_every_split_and_in_slices(group):
    rows, changes = list(case(group)), topics_of_case()
    whole = rows_of(compared(bucket({group: rows}, changes=changes)))
    for cut in range(1, len(rows)):
        heads = heads_of(compared(bucket({group: rows[:cut]}, changes=changes)))
        compared(bucket({group: rows[cut:]}, heads, changes))
    assert in_slices(bucket({group: rows}, changes=changes), 1)[0] == whole


def test_the_columns_leave_a_tombstone_that_more_records_may_take_back():
    log = Log()
    log.classic(1, [member("m", {"clicks": (0,)})])
    log.deleted()
    log.commit(0, None)
    assert left_groups(bucket({"payments": log.rows})) == 1
    log.classic(0)
    assert left_groups(bucket({"payments": log.rows})) == 0
    compared(bucket({"payments": log.rows}))


@pytest.mark.parametrize("name", HISTORIES)
def test_histories_made_by_hand_fold_alike_at_every_split(name):
    rows = HISTORIES[name]().rows
    compared(bucket({"payments": rows}))
    for cut in range(1, len(rows)):
        heads = heads_of(compared(bucket({"payments": rows[:cut]})))
        compared(bucket({"payments": rows[cut:]}, heads))


@given(st.lists(logs(), min_size=1, max_size=3), st.integers(1, 4), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=examples(15))
def test_drawn_logs_fold_alike_in_every_piece(groups, cuts, shuffle):
    named = {f"payments-{at}": _renamed(rows, f"payments-{at}") for at, rows in enumerate(groups)}
    for rows in named.values():
        shuffle.shuffle(rows)
    compared(bucket(named))
    in_pieces(named, CHANGES, cuts)


def _renamed(rows: list[LogRow], name: str) -> list[LogRow]:
    """Records of another group: only the name in the keys is another."""
    old, new = (len(text).to_bytes(2, "big") + text.encode() for text in ("payments", name))
    return [row._replace(key=(row.key or b"").replace(old, new, 1)) for row in rows]


def double_log() -> Log:
    """Partitions of several owners, that change hands among them."""
    log = Log()
    log.classic(1, [member("a", {"clicks": (0, 1)}), member("b", {"clicks": (0, 1)}), member("c", {"clicks": (1,)})])
    log.classic(2, [member("d", {"clicks": (0, 1)}), member("c", {"clicks": (0, 1)})])
    log.classic(3, [member("b", {"clicks": (0,)}), member("d", {"clicks": (0, 1)}), member("a", {"clicks": (0,)})])
    log.classic(4, [member("e", {"grow": (0,)})])
    return log


def twice() -> Log:
    """A member id that stands twice in a record."""
    log = Log()
    log.classic(1, [member("a", {"clicks": (0,)}), member("a", {"clicks": (1,)})])
    log.classic(2, [member("a", {"clicks": (0, 1)})])
    return log


def rewritten() -> Log:
    """Static members that come back, one of them with another assignment."""
    log = Log()
    log.classic(1, [member("a1", {"clicks": (0,)}, instance="a"), member("b", {"clicks": (1,)})])
    log.classic(1, [member("a2", {"clicks": (0,)}, instance="a"), member("b", {"clicks": (1,)})])
    log.classic(
        1, [member("a3", {"clicks": (1,)}, instance="a", owned={"clicks": (5,)}), member("b", {"clicks": (0,)})]
    )
    return log


def nameless() -> Log:
    """A static member whose id is empty; the one that comes back in its place leaves out what it held."""
    log = Log()
    log.classic(1, [member("", {"clicks": (0,)}, instance="a")])
    log.classic(1, [member("c", {"clicks": (0,)}, instance="a", owned={})], protocol="cooperative-sticky")
    return log


def repeated() -> Log:
    """A topic that stands twice in an assignment, and one that nobody subscribes to."""
    again = encode_assignment(ConsumerProtocolAssignment(1, (("clicks", (0,)), ("clicks", (1, 0)), ("other", (3,)))))
    log = Log()
    log.classic(1, [member("a", {}, assignment=again), member("b", {"grow": (0,)}, topics=("clicks",))])
    return log


def crowded() -> Log:
    """More holders of one partition than the columns compare."""
    log = Log()
    log.classic(1, [member(f"m{number}", {"clicks": (0,)}) for number in range(80)])
    log.classic(2, [member(f"m{number}", {"clicks": (0,)}) for number in range(40, 90)])
    return log


def foreign() -> Log:
    """A Connect group, whose bytes are not the consumer's; its protocol type changes."""
    log = Log()
    log.classic(1, [member("w", {"clicks": (0,)})], kind="connect")
    log.classic(2, [member("w", {"clicks": (0,)})])
    log.classic(3, [member("w", {"clicks": (0,)})], kind="connect")
    return log


def no_text() -> Log:
    """Texts that are no UTF-8, as member id and as protocol; and a text that is."""
    log = Log()
    for name, good, bad in (("mm", b"mm", b"m\xff"), ("mm", b"range", b"r\xc3nge"), ("mü", b"clicks", b"clicks")):
        log.classic(1, [member(name, {"clicks": (0,)})])
        log.rows[-1] = log.rows[-1]._replace(value=(log.rows[-1].value or b"").replace(good, bad))
    return log


def other_groups() -> Log:
    """A key that names another group, one of an unknown type, one of none, and an offset commit that is cut."""
    log = Log()
    log.classic(1, [member("a", {"clicks": (0,)})])
    for key in (b"\0\2\0\1x", b"\0\x63abc", b"\0\2\0\1", None):
        log.deleted()
        log.rows[-1] = log.rows[-1]._replace(key=key)
    log.broken(RecordKind.OFFSET_COMMIT, topic="clicks", partition=0)
    log.classic(2, [member("a", {"clicks": (0, 1)})])
    return log


CASES = {
    each.__name__: each
    for each in (double_log, twice, rewritten, nameless, repeated, crowded, foreign, no_text, other_groups)
}


@pytest.mark.parametrize("name", CASES)
def test_rare_cases_fold_alike_at_every_split(name):
    rows = CASES[name]().rows
    compared(bucket({"payments": rows}))
    for cut in range(1, len(rows)):
        heads = heads_of(compared(bucket({"payments": rows[:cut]})))
        compared(bucket({"payments": rows[cut:]}, heads))


def test_what_the_columns_hold_and_what_they_leave():
    left = {name: left_groups(bucket({"payments": case().rows})) for name, case in CASES.items()}
    assert {name for name, number in left.items() if number} == {"twice", "crowded"}


def test_a_bucket_without_records_folds_to_nothing():
    assert compared(bucket({})) == ({}, [])


def test_the_judge_sees_a_row_that_is_another():
    folded = compared(bucket({"payments": rewritten().rows}))
    other = compared(bucket({"payments": rewritten().rows[:-1]}))
    assert rows_of(folded) != rows_of(other)


def test_broken_records_fold_alike_in_every_order_and_split(monkeypatch):
    monkeypatch.setattr(replay, "fold_table", compared)
    assert check(seed=3, records=40, logs=("dev/offsets",))["broken"] == 40


@pytest.mark.slow
def test_many_broken_records_fold_alike_in_every_order_and_split(monkeypatch):
    monkeypatch.setattr(replay, "fold_table", compared)
    assert check(seed=random.Random(5).randrange(1_000), records=400)["broken"] == 400  # noqa: S311 seeded
