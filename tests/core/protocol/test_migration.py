"""Migrations rehearsed: the safe way, and each way to get it wrong, by the name of its first unsafe step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.custom.custom_group import Protocol
from groupledger.core.faults import Fault
from groupledger.core.protocol.compatibility import SUPPORTED, ByteCode
from groupledger.core.protocol.rolling_migration import Bounce, Danger, GroupClient, one_bounce, rehearse, two_bounces
from tests.examples import examples

COOPERATIVE_STICKY = "cooperative-sticky"
OLD = ByteCode.BEFORE_KIP_429


def group(assignors=("range",), library="java", code=ByteCode.KIP_792, instance=False, names="abc"):
    return [GroupClient(name, assignors, ("t",), library, code, f"i-{name}" if instance else None) for name in names]


def played(clients, bounces):
    return rehearse(clients, bounces, {"t": 6})


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
@pytest.mark.parametrize("code", [OLD, ByteCode.KIP_792])
@pytest.mark.parametrize("instance", [False, True])
def test_the_two_bounces_of_the_kip_are_safe(assignor, code, instance):
    clients = group((assignor,), code=code, instance=instance)
    rehearsal = played(clients, two_bounces(clients, COOPERATIVE_STICKY))
    assert rehearsal.first_unsafe is None
    assert [step.member for step in rehearsal.steps] == list("abcabc")
    assert [step.assignor for step in rehearsal.steps] == [assignor] * 3 + [COOPERATIVE_STICKY] * 3
    cooperative = [sum(each is Protocol.COOPERATIVE for each in step.protocols.values()) for step in rehearsal.steps]
    assert cooperative == [0, 0, 0, 1, 2, 3]


def test_a_step_tells_the_assignors_that_all_members_have_in_common():
    clients = group(names="ab")
    steps = played(clients, two_bounces(clients, COOPERATIVE_STICKY)).steps
    both = ("range", COOPERATIVE_STICKY)
    assert [step.common for step in steps] == [("range",), both, (COOPERATIVE_STICKY,), (COOPERATIVE_STICKY,)]


STREAMS = group(("stream",), code=OLD)
BY_AND_BY = [*group(names="abcde"), *group(library="librdkafka", names="f")]
UNSAFE = {
    "Streams has no other assignor": (STREAMS, two_bounces(STREAMS, COOPERATIVE_STICKY), 1, Danger.STREAMS_ASSIGNOR),
    "and nobody else has that of Streams": (group(), two_bounces(group(), "stream"), 1, Danger.STREAMS_ASSIGNOR),
    "the last of six cannot mix: said before the first": (
        BY_AND_BY,
        two_bounces(BY_AND_BY, COOPERATIVE_STICKY),
        1,
        Danger.CLIENT_CANNOT_MIX,
    ),
    "an old jar lists what it does not have": (
        group((COOPERATIVE_STICKY, "range"), code=OLD),
        two_bounces(group((COOPERATIVE_STICKY, "range"), code=OLD), COOPERATIVE_STICKY),
        1,
        Danger.CLIENT_LACKS_ASSIGNOR,
    ),
    "and so it does where its jar stays": (
        group(code=OLD),
        [Bounce("list both", ("range", COOPERATIVE_STICKY), byte_code=OLD)],
        1,
        Danger.CLIENT_LACKS_ASSIGNOR,
    ),
    "one bounce: the first member cannot join": (group(), one_bounce(COOPERATIVE_STICKY), 1, Danger.NO_COMMON_ASSIGNOR),
    "nor can it once its session is over": (
        group(instance=True),
        one_bounce(COOPERATIVE_STICKY),
        1,
        Danger.NO_COMMON_ASSIGNOR,
    ),
    "librdkafka refuses a mixed list": (
        group(library="librdkafka"),
        two_bounces(group(), COOPERATIVE_STICKY),
        1,
        Danger.CLIENT_CANNOT_MIX,
    ),
    "aiokafka has no cooperative assignor": (
        group(library="aiokafka"),
        two_bounces(group(), COOPERATIVE_STICKY),
        1,
        Danger.CLIENT_LACKS_ASSIGNOR,
    ),
    "Streams without UPGRADE_FROM: an old leader beside a new member": (
        group(("stream",), code=OLD),
        one_bounce("stream"),
        1,
        Danger.OLD_LEADER,
    ),
}


@pytest.mark.parametrize(("clients", "bounces", "number", "danger"), UNSAFE.values(), ids=UNSAFE.keys())
def test_the_first_unsafe_step_is_named_and_nobody_goes_further(clients, bounces, number, danger):
    rehearsal = played(clients, bounces)
    assert rehearsal.first_unsafe is not None
    assert rehearsal.first_unsafe is rehearsal.steps[-1]
    assert rehearsal.first_unsafe.number == number
    assert rehearsal.first_unsafe.findings[0].danger is danger
    assert len(rehearsal.first_unsafe.findings[0].evidence) > 20


def test_who_stands_in_the_way_is_named_with_the_reason():
    clients = [
        *group(names="abcde"),
        *group(library="librdkafka", names="fghij"),
        *group(library="aiokafka", names="k"),
    ]
    found = played(clients, two_bounces(clients, COOPERATIVE_STICKY)).first_unsafe.findings
    evidence = {each.danger: each.evidence for each in found}
    assert evidence[Danger.CLIENT_CANNOT_MIX].startswith("f, g, h and 2 more: librdkafka refuses a list of eager and")
    assert evidence[Danger.CLIENT_LACKS_ASSIGNOR] == (
        "k: aiokafka has no cooperative assignor, only range, roundrobin, sticky; what is left: members of another "
        "client, by KIP-848 or in a new group"
    )
    four = group(library="librdkafka", names="abcd")
    (found, *_) = played(four, two_bounces(four, COOPERATIVE_STICKY)).first_unsafe.findings
    assert found.evidence.startswith("a, b, c and 1 more: ")
    old = group((COOPERATIVE_STICKY, "range"), code=OLD)
    (lists, *_) = played(old, two_bounces(old, COOPERATIVE_STICKY)).first_unsafe.findings
    told = "a, b, c: lists cooperative-sticky now: java before Kafka 2.4 has range, roundrobin, sticky, stream"
    assert lists.evidence == told


STOPPED = {
    "who cannot mix is stopped with all others": (BY_AND_BY, two_bounces(BY_AND_BY, COOPERATIVE_STICKY), True),
    "whose static members lose their sessions": (group(library="librdkafka", instance=True), None, True),
    "who cannot join in one bounce": (group(), one_bounce(COOPERATIVE_STICKY), True),
    "not for who lacks the assignor": (group(library="aiokafka"), None, False),
    "nor in one bounce": (group(library="aiokafka"), one_bounce(COOPERATIVE_STICKY), False),
    "nor for Streams with another one": (STREAMS, two_bounces(STREAMS, COOPERATIVE_STICKY), False),
}


@pytest.mark.parametrize(("clients", "bounces", "possible"), STOPPED.values(), ids=STOPPED.keys())
def test_stopping_all_is_rehearsed_where_it_is_the_other_way(clients, bounces, possible):
    rehearsal = played(clients, bounces or two_bounces(clients, COOPERATIVE_STICKY))
    assert rehearsal.first_unsafe is not None
    assert (rehearsal.stop_all is not None) == possible
    if rehearsal.stop_all is not None:
        assert (rehearsal.stop_all.assignor, rehearsal.stop_all.unavailable) == (COOPERATIVE_STICKY, 6)
        assert rehearsal.stop_all.rounds >= len(clients)
        assert rehearsal.stop_all.findings == ()


def test_one_member_alone_is_stopped_and_started_too():
    """It subscribes to a topic that is not there, besides: nothing of that is unowned."""
    (client,) = group(library="librdkafka", names="a")
    clients = [replace(client, topics=("t", "missing"))]
    rehearsal = played(clients, two_bounces(clients, COOPERATIVE_STICKY))
    assert rehearsal.stop_all is not None
    assert (rehearsal.stop_all.assignor, rehearsal.stop_all.unavailable) == (COOPERATIVE_STICKY, 6)


def test_of_a_large_group_three_of_a_kind_are_played_at_least():
    clients = group(names="abcdefghij")
    rehearsal = rehearse(clients, two_bounces(clients, COOPERATIVE_STICKY), {"t": 30}, 3)
    assert rehearsal.played == 3


def test_a_safe_way_needs_no_other():
    assert played(group(), two_bounces(group(), COOPERATIVE_STICKY)).stop_all is None


def too_early(order):
    """What the first step of Streams' second bounce finds where `c` still runs the old byte code, and who leads."""
    codes = {"a": ByteCode.KIP_792, "b": ByteCode.KIP_792, "c": OLD}
    clients = [GroupClient(name, ("stream",), ("t",), byte_code=codes[name], upgrade_from=True) for name in order]
    (step,) = played(clients, two_bounces(clients, "stream")[1:]).steps
    return step.leader, [(each.danger, each.evidence) for each in step.findings], step.safe


@pytest.mark.parametrize(
    ("order", "leader", "danger"), [("bca", "a", Danger.OLD_MEMBER_MAY_LEAD), ("abc", "c", Danger.OLD_LEADER)]
)
def test_an_old_member_is_a_danger_whether_it_leads_or_another(order, leader, danger):
    """The KIP's key point: the leader may not be on old byte code, and whoever leads now may leave."""
    told = f"c cannot read what {order[0]} own: old byte code"
    assert too_early(order) == (leader, [(danger, told)], False)


def test_an_old_member_that_leads_is_the_greater_danger_and_those_beside_it_are_named_too():
    clients = group(("stream",), code=OLD)
    (step,) = played(clients, one_bounce("stream")).steps
    assert step.leader == "c"
    found = [(each.danger, each.evidence[0]) for each in step.findings]
    assert found == [(Danger.OLD_LEADER, "c"), (Danger.OLD_MEMBER_MAY_LEAD, "b")]


def test_a_group_that_is_there_has_nothing_to_migrate():
    with pytest.raises(Fault, match="nothing to migrate"):
        two_bounces(group((COOPERATIVE_STICKY,)), COOPERATIVE_STICKY)
    assert len(two_bounces(group((COOPERATIVE_STICKY, "range")), COOPERATIVE_STICKY)) == 2


def test_an_old_leader_gives_away_what_a_new_member_keeps():
    """The rehearsal itself shows the partition with two owners, which comes before any rule about byte code."""
    mixed = [*group(("stream",), names="ab"), *group(("stream",), code=OLD, names="c")]
    found = played(mixed, [Bounce("as it was, again", ("stream",), byte_code=OLD)]).steps[0].findings
    assert found[0].danger is Danger.DOUBLE_OWNER
    assert "was given t-" in found[0].evidence


def test_streams_is_safe_with_upgrade_from():
    clients = group(("stream",), code=OLD)
    rehearsal = played(clients, two_bounces(clients, "stream"))
    assert rehearsal.first_unsafe is None
    assert {each for step in rehearsal.steps[:3] for each in step.protocols.values()} == {Protocol.EAGER}
    assert set(rehearsal.steps[-1].protocols.values()) == {Protocol.COOPERATIVE}
    kept = [(each.rounds, each.unavailable) for each in rehearsal.steps[-2:]]
    assert kept == [(3, 10), (3, 4)]  # dealt out anew it would be 13 and 8, in four rounds


def test_a_library_nobody_tried_is_a_warning():
    clients = group(library="franz-go")
    rehearsal = played(clients, two_bounces(clients, COOPERATIVE_STICKY))
    assert rehearsal.first_unsafe is None
    assert {each.danger for step in rehearsal.steps for each in step.findings} == {Danger.CLIENT_NOT_TRIED}


@pytest.mark.parametrize(
    ("clients", "to", "code"),
    [(group(library="segmentio"), COOPERATIVE_STICKY, "UNKNOWN_CLIENT"), (group(), "best", "UNKNOWN_ASSIGNOR")],
)
def test_what_is_not_known_is_a_fault(clients, to, code):
    with pytest.raises(Fault) as raised:
        played(clients, two_bounces(clients, to))
    assert raised.value.code == code


@pytest.mark.parametrize("clients", [group(), group(("range", "best"))])
def test_an_assignor_that_is_not_known_is_refused_before_anything_is_played(clients):
    """In the words of a migration, not those of a script that is played."""
    with pytest.raises(Fault) as raised:
        played(clients, [Bounce("to the best", ("best",))])
    assert raised.value.code == "UNKNOWN_ASSIGNOR"
    assert raised.value.message == f"assignor is 'best'; expected one of {', '.join(SUPPORTED)}"


def test_a_majority_that_a_member_who_is_not_played_brings_about_is_not_missed():
    """Range wins with the sixth of ten bounces; of the ten, a, b, h, i and j are played, and agree whenever asked."""
    codes = {name: ByteCode.KIP_792 if name in "hi" else ByteCode.KIP_429 for name in "abcdefghij"}
    clients = [GroupClient(name, (COOPERATIVE_STICKY, "range"), ("t",), byte_code=code) for name, code in codes.items()]
    bounces = two_bounces(clients, COOPERATIVE_STICKY)[:1]
    full, some = rehearse(clients, bounces, {"t": 30}), rehearse(clients, bounces, {"t": 30}, 3)
    stands_for = {member: step.assignor for step in some.steps for member in (step.member, *step.alike)}
    assert stands_for == {step.member: step.assignor for step in full.steps}
    assert set(stands_for.values()) == {COOPERATIVE_STICKY, "range"}


LISTS = (("range",), ("range", "roundrobin"), ("roundrobin", "range"), (COOPERATIVE_STICKY, "range"))
KINDS = st.builds(
    lambda assignors, library, code, static: (assignors, library, code, static),
    st.sampled_from(LISTS),
    st.sampled_from(["java", "franz-go", "librdkafka"]),
    st.sampled_from([OLD, ByteCode.KIP_792]),
    st.booleans(),
)


@given(st.lists(KINDS, min_size=1, max_size=3), st.data(), st.booleans())
@settings(max_examples=examples(8), deadline=None)
def test_members_that_are_alike_need_not_all_be_played(kinds, data, twice):
    """The steps of some stand for all: the same first unsafe step, assignors and dangers as when everyone is played."""
    clients = []
    for at in range(data.draw(st.integers(4, 10))):
        assignors, library, code, static = data.draw(st.sampled_from(kinds))
        clients.append(GroupClient(f"m{at}", assignors, ("t",), library, code, f"i{at}" if static else None))
    to = COOPERATIVE_STICKY
    bounces = two_bounces(clients, to) if twice else one_bounce(to)
    topics = {"t": 3 * len(clients)}
    full, some = rehearse(clients, bounces, topics), rehearse(clients, bounces, topics, 3)
    assert full.played == len(clients)
    unsafe = (full.first_unsafe, some.first_unsafe)
    assert len({step and step.number for step in unsafe}) == 1
    stands_for = {(step.bounce, member): step for step in some.steps for member in (step.member, *step.alike)}
    assert stands_for.keys() == {(step.bounce, step.member) for step in full.steps}
    for step in full.steps:
        other = stands_for[step.bounce, step.member]
        assert (other.assignor, dangers(other)) == (step.assignor, dangers(step))
        if other.member == step.member:
            assert (other.number, other.common, other.protocols) == (step.number, step.common, step.protocols)


def dangers(step):
    """Which they are; of old byte code, whether it leads now or may lead later is left to the leader's election."""
    leads = {Danger.OLD_LEADER, Danger.OLD_MEMBER_MAY_LEAD}
    return {"old" if each.danger in leads else each.danger for each in step.findings}
