"""When a recomputed `uniform` is exact although the log is cut: judged by trying the orders that are possible."""

import random
from dataclasses import replace

import pytest

from groupledger.core.assignors.server import ServerGroup, ServerMember, Topic, TopicId, assign, encode
from groupledger.core.assignors.server.answer import written
from groupledger.core.assignors.server.certainty import Certainty, certainty

TOPICS = {f"t{at}": Topic(TopicId(bytes([at]) * 16), 5 + at) for at in range(4)}
COMPETE = Certainty.UNLESS_NEIGHBOURS_COMPETE


def drawn(seed):
    draw = random.Random(seed)  # noqa: S311 - seeded on purpose
    names = tuple(sorted(TOPICS)) if seed % 2 else None
    members = tuple(
        ServerMember(f"member-{draw.random()}", names or tuple(sorted(draw.sample(sorted(TOPICS), draw.randint(1, 4)))))
        for _ in range(draw.randint(2, 40))
    )
    return ServerGroup(members, TOPICS)


def answer(group):
    batch, names = encode([group])
    return written(batch, names, assign("uniform", batch), 0)


def sure(group, name="uniform", history=False, joining=True):
    batch, _ = encode([group])
    return certainty(name, batch, [history], [joining])[0] is Certainty.EXACT


def test_a_sure_group_answers_alike_whatever_the_log_hides():
    """Other join orders, tables that were once larger: the same target whenever the verdict is `exact`."""
    exact = 0
    for seed in range(80):
        group = drawn(seed)
        if not sure(group):
            continue
        exact += 1
        draw = random.Random(seed)  # noqa: S311 - seeded on purpose
        for larger in (0, 50, 400):
            shuffled = tuple(draw.sample(group.members, len(group.members)))
            changes = (1,) * (len(group.members) + larger) + (-1,) * larger
            assert answer(ServerGroup(shuffled, TOPICS, changes)) == answer(group)
    assert exact > 40


def test_a_doubtful_group_can_answer_otherwise():
    """The doubt is not empty talk: some doubtful group does change with the order of its records."""
    doubtful = [group for group in map(drawn, range(80)) if not sure(group)]
    assert any(answer(ServerGroup(group.members[::-1], TOPICS)) != answer(group) for group in doubtful)


def test_a_group_is_exact_if_the_member_that_may_be_joining_has_a_bucket_of_its_own():
    exact = 0
    for seed in range(80):
        group = drawn(seed)
        if sure(group, history=True, joining=False):
            exact += 1
            assert answer(replace(group, joining=group.members[-1].member_id)) == answer(group)
    assert exact > 10


@pytest.mark.parametrize(("name", "history", "joining"), [("range", False, False), ("uniform", True, True)])
def test_range_and_a_whole_history_are_always_exact(name, history, joining):
    assert all(sure(drawn(seed), name, history, joining) for seed in range(20))


def test_verdicts_read_as_sentences():
    assert [each.value for each in Certainty] == ["exact", "exact unless bucket neighbours compete"]
    assert COMPETE.value.endswith("compete")
