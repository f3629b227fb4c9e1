"""Claims against holdings: identity-edge-cases, "Claims", "Two bounces", and the storm."""

from collections import Counter

import pytest

from groupledger.core.history import TopicChange, TopicHistory
from groupledger.core.wire.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from groupledger.core.wire.records import ClassicGroupMember
from tests.core.history.captured import folded, log_rows
from tests.core.history.records import Log, member
from tests.engine.both_folds import compared
from tests.engine.classic_logs import bucket

EDGE = "edge/offsets"


def findings(name, *codes):
    return [v for g in log_rows(name) for v in folded(name, g).violations if v.code in codes]


def test_every_disagreement_of_the_edge_cases_is_told_by_its_cause():
    found = findings(EDGE, "CLAIM_DIFFERS", "STALE_CLAIM")
    assert Counter((v.code, v.severity, v.evidence.split(":")[0]) for v in found) == {
        ("CLAIM_DIFFERS", "info", "eager-empty"): 16,
        ("CLAIM_DIFFERS", "info", "static-replacement"): 8,
        ("CLAIM_DIFFERS", "info", "topic-deleted"): 2,
        ("STALE_CLAIM", "warning", "stale"): 3,
    }


def test_eager_members_of_the_upgrade_claim_nothing_under_a_cooperative_protocol():
    found = [v for v in findings(EDGE, "CLAIM_DIFFERS") if v.evidence.startswith("eager-empty")]
    assert {v.group_id for v in found} == {"up-coop-first", "up-range-first"}


def test_a_stale_claim_is_named_with_its_generation_and_what_it_claims_too_much():
    found = findings(EDGE, "STALE_CLAIM")
    assert [(v.group_id, v.offset) for v in found] == [("stale-java", 218), ("stale-java", 219), ("stale-rdk", 35)]
    assert found[0].evidence == (
        "stale: claims clicks 5 that it did not hold, leaves out nothing that it held; "
        "the claim is of generation 3, the record before of generation 4"
    )
    assert "claims clicks 5; grow 4 that" in found[1].evidence


def test_the_user_data_is_the_generation_a_claim_belongs_to():
    rows = {(v.offset, v.member_id) for v in findings(EDGE, "STALE_CLAIM")}
    stale = [
        (m.claimed_generation, m.subscription_generation)
        for group in ("stale-java", "stale-rdk")
        for m in folded(EDGE, group).member_snapshots
        if (m.offset, m.member_id) in rows
    ]
    assert stale == [(3, 4), (3, 5), (3, 3)]


def test_what_a_stale_claim_withheld_is_nobodys_until_it_is_given_out():
    changes = [c for c in folded(EDGE, "stale-java").ownership_changes if (c.topic, c.partition) == ("clicks", 5)]
    owners = [(c.from_member_id is None, c.to_member_id is None, c.offset) for c in changes[:5]]
    assert owners[-2:] == [(False, True, 217), (True, False, 220)]


def test_a_zombie_comes_back_with_a_new_id_and_claims_nothing_whatever_generation_it_cites():
    java = [
        m
        for m in folded(EDGE, "zo-java").member_snapshots
        if m.claimed_generation == 3 and m.subscription_generation is None
    ]
    rdk = [m for m in folded(EDGE, "zo-rdk").member_snapshots if m.offset == 134 and m.subscription_generation == 3]
    assert [m.claimed for m in java] == [()]
    assert [m.claimed for m in rdk] == [()]
    assert findings(EDGE, "STALE_CLAIM") == [
        v for v in findings(EDGE, "STALE_CLAIM") if not v.group_id.startswith("zo-")
    ]


def test_partitions_of_a_topic_deleted_meanwhile_are_left_out_of_the_claim():
    found = [v for v in findings(EDGE, "CLAIM_DIFFERS") if v.evidence.startswith("topic-deleted")]
    assert {v.group_id for v in found} == {"rc-java-re"}
    assert {"claims nothing that it did not hold" in v.evidence for v in found} == {True}


def test_the_quiet_groups_claim_exactly_what_they_held():
    assert findings("dev/offsets", "CLAIM_DIFFERS", "STALE_CLAIM") == []
    cooperative = [g for g in log_rows("dev/offsets") if "cooperative" in g]
    claims = [m for g in cooperative for m in folded("dev/offsets", g).member_snapshots if m.claimed]
    assert len(claims) > 30


def test_the_storm_is_a_member_that_keeps_only_the_last_of_two_entries():
    found = findings("storm/offsets", "CLAIM_DIFFERS")
    assert {v.severity for v in found} == {"warning"}
    assert len(found) == 30
    assert len({v.member_id for v in found}) == 1, "the franz-go member"
    repeated = findings("storm/offsets", "TOPIC_REPEATED")
    assert {v.member_id for v in repeated} == {v.member_id for v in found}
    assert Counter(v.topic for v in repeated) == {"carts": 30, "clicks": 30}


def test_both_bounces_switch_the_protocol_where_the_last_range_member_is_gone():
    switched = {
        group: next(s.generation for s in folded(EDGE, group).group_snapshots if s.assignor == "cooperative-sticky")
        for group in ("up-range-first", "up-coop-first")
    }
    assert switched == {"up-range-first": 10, "up-coop-first": 8}


def test_an_eager_members_partitions_go_straight_to_another():
    direct = [
        c
        for c in folded(EDGE, "up-coop-first").ownership_changes
        if c.offset == 193 and c.from_member_id and c.to_member_id
    ]
    assert [(c.topic, c.partition) for c in direct] == [("clicks", 2), ("clicks", 4)]


@pytest.mark.parametrize(
    ("claim", "code", "how"),
    [
        (member("n", {}, owned={"clicks": (3,)}), "CLAIM_DIFFERS", "not-a-member-before"),
        (member("m", {}, owned={"clicks": (0,)}), "CLAIM_DIFFERS", "other"),
        (member("m", {}, owned={"clicks": (0,)}, generation=4), "STALE_CLAIM", "stale"),
        (member("m", {}, owned={"clicks": (0,)}, generation=5), "CLAIM_DIFFERS", "other"),
        (member("m", {}), "CLAIM_DIFFERS", "eager-empty"),
        (member("o", {}, instance="i", owned={"clicks": (5,)}), "CLAIM_DIFFERS", "other"),
        (member("o", {}, instance="i"), "CLAIM_DIFFERS", "static-replacement"),
        (member("m", {}, owned={"clicks": (1, 0)}), None, None),
        (member("n", {}), None, None),
    ],
)
def test_each_claim_is_explained(claim, code, how):
    log = Log()
    log.classic(5, [member("m", {"clicks": (0, 1)}, instance="i")])
    log.classic(6, [claim], protocol="cooperative-sticky")
    found = [(v.code, v.evidence.split(":")[0]) for v in log.fold().violations]
    assert found == ([] if code is None else [(code, how)])


HELD = {"clicks": (0, 1), "grow": (0,)}


@pytest.mark.parametrize(
    ("then", "claim", "severity", "how"),
    [
        (6, member("m", {}, topics=("clicks",), owned={"clicks": (0, 1)}, generation=5), "info", "unsubscribed"),
        (6, member("m", {}, topics=("clicks",), owned={"clicks": (0,)}, generation=5), "warning", "other"),
        (6, member("m", {}, topics=("grow",), owned={"clicks": (7,), "grow": (0,)}, generation=5), "warning", "other"),
        (6, member("n", {}, topics=("grow",), instance="i", owned={"grow": (0,)}), "info", "unsubscribed"),
        (8, member("m", {}, owned={"clicks": (7,)}, generation=6), "info", "not-judged"),
        (8, member("n", {}, owned={"clicks": (7,)}, generation=7), "info", "not-judged"),
        (8, member("m", {}, owned={"clicks": (7,)}), "info", "not-judged"),
        (8, member("m", {}, owned={"clicks": (7,)}, generation=5), "warning", "other"),
        (8, member("m", {}, owned={"clicks": (7,)}, generation=4), "warning", "stale"),
        (8, member("m", {}, owned={"clicks": (7,)}, generation=8), "warning", "other"),
        (6, member("m", {}, owned={"clicks": (7,)}, generation=9), "warning", "other"),
    ],
    ids=[
        *("a topic dropped", "and more", "claimed and not subscribed to", "dropped by a static one that came back"),
        *("compacted", "by a newcomer", "undated over a gap", "dated before the gap", "older", "its own", "to come"),
    ],
)
def test_what_the_record_cannot_tell_of_a_claim_is_no_warning(then, claim, severity, how):
    """By both folds: a topic that the member dropped itself, and a claim of a generation that the log lacks."""
    log = Log()
    log.classic(5, [member("m", HELD, instance="i" if claim.group_instance_id else None)])
    log.classic(then, [claim], protocol="cooperative-sticky")
    assert [(v.severity, v.evidence.split(":")[0]) for v in log.fold().violations] == [(severity, how)]
    compared(bucket({"payments": log.rows}))


def test_a_claim_that_is_not_judged_says_why():
    log = Log()
    log.classic(11, [member("m", HELD)])
    log.classic(13, [member("m", {}, owned={"clicks": (7,)}, generation=12)], protocol="cooperative-sticky")
    (found,) = log.fold().violations
    assert found.evidence == (
        "not-judged: claims clicks 7 that it did not hold in generation 11, leaves out clicks 0-1; grow 0 that it held "
        "there; the claim is of generation 12, which the log does not have"
    )


def test_who_states_no_claim_or_reads_none_is_not_compared():
    old = ConsumerProtocolSubscription(0, ("clicks",), None)
    silent = ClassicGroupMember("m", None, "m", "/h", 1, 1, encode_subscription(old), b"")
    for protocol, second in (("cooperative-sticky", silent), ("range", member("m", {}))):
        log = Log()
        log.classic(5, [member("m", {"clicks": (0, 1)})])
        log.classic(6, [second], protocol=protocol)
        assert log.fold().violations == []
    assert log.fold().member_snapshots[1].claimed == ()


def test_a_member_that_says_nothing_has_no_claim_which_is_not_an_empty_one():
    old = ConsumerProtocolSubscription(0, ("clicks",), None)
    log = Log()
    log.classic(1, [ClassicGroupMember("m", None, "m", "/h", 1, 1, encode_subscription(old), b"")], protocol="range")
    (row,) = log.fold().member_snapshots
    assert (row.claimed, row.subscription_version, row.recorded) == (None, 0, ())


def test_after_an_unreadable_record_no_claim_is_compared():
    log = Log()
    log.classic(5, [member("m", {"clicks": (0, 1)})])
    log.broken()
    log.classic(7, [member("m", {}, owned={"clicks": (4,)})], protocol="cooperative-sticky")
    assert log.fold().violations == []


def test_a_topic_made_again_between_two_records_explains_what_a_claim_leaves_out():
    topics = TopicHistory([TopicChange("clicks", "id1", 6, None, 0), TopicChange("clicks", "id2", 6, None, 500_000)])
    log = Log()
    log.classic(5, [member("m", {"clicks": (0,), "grow": (0,)})])
    log.classic(6, [member("m", {}, owned={"grow": (0,)}, generation=5)], protocol="cooperative-sticky")
    assert [v.evidence.split(":")[0] for v in log.fold(topics=topics).violations] == ["topic-deleted"]
    assert [v.evidence.split(":")[0] for v in log.fold().violations] == ["other"]
