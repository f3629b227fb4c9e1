"""A head carries all that the records to come depend on; late records end in the same state as ordered ones."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.faults import Fault
from groupledger.core.history import decode_head, fold_group
from groupledger.core.history.head import encode_head
from tests.core.history.captured import CLUSTER, catalog, every_group, folded, log_rows
from tests.core.history.histories import HISTORIES
from tests.core.history.parts import in_parts, together
from tests.core.history.records import CLICKS, TOPICS, Log, head_of, member

ALL = every_group()


def of_capture(name, rows, cuts):
    return in_parts(rows, cuts, catalog(name.split("/")[0]))


@pytest.mark.parametrize(("name", "group"), ALL)
def test_every_split_of_a_capture_gives_the_same_rows_and_the_same_head(name, group):
    rows, whole = log_rows(name)[group], folded(name, group)
    for cut in range(1, len(rows)):
        parts = of_capture(name, rows, [cut])
        assert together(parts) == together([whole]), cut
        assert head_of(parts[-1]).state == head_of(whole).state, cut
        assert head_of(parts[-1]).from_offset == rows[cut - 1].offset


@pytest.mark.parametrize("name", HISTORIES)
def test_every_split_of_a_history_made_by_hand_gives_the_same(name):
    rows, whole = HISTORIES[name]().rows, HISTORIES[name]().fold()
    for cut in range(1, len(rows)):
        first = fold_group("eu-1", rows[:cut], None, TOPICS)
        rest = fold_group("eu-1", rows[cut:], head_of(first).state, TOPICS)
        assert together([first, rest]) == together([whole]), cut
        assert head_of(rest).state == head_of(whole).state, cut


@settings(deadline=None)
@given(st.data())
def test_any_number_of_splits_gives_the_same(data):
    name, group = data.draw(st.sampled_from(ALL))
    rows = log_rows(name)[group]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=8)) - {len(rows)})
    parts = of_capture(name, rows, cuts)
    assert together(parts) == together([folded(name, group)])
    assert head_of(parts[-1]).state == head_of(folded(name, group)).state


@settings(deadline=None)
@given(st.sampled_from(ALL), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(place, shuffle):
    name, group = place
    rows = [*log_rows(name)[group], *log_rows(name)[group][:3]]
    shuffle.shuffle(rows)
    again = fold_group(CLUSTER, rows, None, catalog(name.split("/")[0]))
    assert together([again]) == together([folded(name, group)])
    assert again.head == folded(name, group).head
    assert again.counts.duplicates == len(rows) - len(log_rows(name)[group])


@pytest.mark.parametrize(("name", "group"), ALL)
def test_a_late_record_ends_in_the_state_of_ordered_data(name, group):
    rows, topics = log_rows(name)[group], catalog(name.split("/")[0])
    chosen = random.Random(group)  # noqa: S311 - seeded on purpose
    for _ in range(4):
        late = chosen.randrange(len(rows))
        read = rows[:late] + rows[late + 1 :]
        heads = {
            part.head.offset: part.head.state for part in of_capture(name, read, range(5, len(read), 5)) if part.head
        }
        start = max((offset for offset in heads if offset < rows[late].offset), default=None)
        again = [row for row in rows if start is None or row.offset > start]
        refolded = fold_group(CLUSTER, again, heads.get(start), topics, refolded=True)
        assert head_of(refolded).state == head_of(folded(name, group)).state
        assert head_of(refolded).refolded
        assert head_of(refolded).from_offset == (-1 if start is None else start)


def test_heads_are_equal_only_where_all_that_follows_is_the_same():
    log = Log()
    log.classic(0)
    log.classic(1, [member("m", {"clicks": (0,)})])
    one = head_of(log.fold()).state
    log.rows[1] = log.rows[1]._replace(timestamp_ms=5)
    assert one != head_of(log.fold()).state


@pytest.mark.parametrize("late", [0, 1])
def test_a_record_at_or_before_the_head_is_refused_and_not_lost(late):
    log = Log()
    log.classic(0)
    log.classic(1)
    head = head_of(log.fold()).state
    with pytest.raises(
        ValueError, match=f"offset {late} is not after the head's 1; start from the last head before it"
    ):
        fold_group("eu-1", log.rows[late : late + 1], head, TOPICS)


def test_a_head_is_canonical_json_and_names_its_version():
    log = Log()
    log.joined("m")
    log.step(2, {"m": {CLICKS: (0, 1)}})
    head = head_of(log.fold()).state
    assert encode_head(decode_head(head, TOPICS)) == head
    document = json.loads(head)
    assert json.dumps(document, separators=(",", ":"), sort_keys=True).encode() == head
    document["version"] = 99
    with pytest.raises(Fault, match="head has version 99; expected 1: fold the group again from the beginning"):
        decode_head(json.dumps(document).encode(), TOPICS)


def test_without_new_records_the_head_stays():
    log = Log()
    log.classic(0)
    head = head_of(log.fold())
    again = head_of(fold_group("eu-1", [], head.state, TOPICS))
    assert again.state == head.state
    assert again.from_offset == again.offset == head.offset
