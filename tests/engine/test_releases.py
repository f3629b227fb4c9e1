"""Records of sticky assignors of older Java clients are said to be such, with what their leaders write."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import groupby

import pytest

from groupledger.core.protocol.compatibility import java_releases
from groupledger.core.rebalance.verdict import OTHER_RELEASE, Verdict
from groupledger.core.wire.consumer_protocol import UserData, UserDataForm, encode_user_data
from groupledger.tables import columns as c
from tests.core.assignors.golden import PARITY
from tests.core.history import captured
from tests.engine.bucket_rows import computed, scenario_rows
from tests.engine.captured_rows import bucket_of, states_of

RELEASES = PARITY.parent / "parity-releases"
WRITES = {"2.4.0": 1, "2.6.0": 1, "2.8.1": 1, "3.0.0": 1, "3.4.1": 3, "3.5.0": 3, "3.5.2": 3}
"""The version of the subscriptions that a client of each release sends."""
GENERATIONS = ("2.8.1", "3.0.0", "3.4.1", "3.5.0", "3.5.2")
"""Releases whose cooperative-sticky writes user data."""
UNLISTED = "not-applicable: partitions-not-listed"  # some releases give out partitions that do not exist


def lines_of(name):
    with gzip.open(RELEASES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def pairs():
    return lines_of("sticky-clients")


def as_sent(member, assignor, release):
    """The columns of a member that a Java client of that release sends."""
    version, generation = WRITES[release], member["generation"]
    generation = generation or 1  # no group has a generation 0
    sent = {c.SUBSCRIPTION_VERSION: version, c.CLAIMED_GENERATION: generation if generation >= 0 else None}
    if assignor == "sticky":
        by_topic = groupby(member["owned"], lambda each: each[0])
        claims = ((topic, tuple(number for _, number in mine)) for topic, mine in by_topic)
        memory = UserData(UserDataForm.OWNED_GENERATION, tuple(claims), generation)
        return sent | {c.USER_DATA: encode_user_data(memory) if member["owned"] else None}
    stated = UserData(UserDataForm.GENERATION, generation=generation)
    return sent | {
        c.USER_DATA: encode_user_data(stated) if release in GENERATIONS else None,
        c.SUBSCRIPTION_GENERATION: generation if version == 3 else None,
    }


def rows_of(pair, number, *, leader=None):
    scenario, release = pair["scenario"] | {"id": f"g{number}"}, pair["release"]
    group, *others = scenario_rows(scenario, pair["result"]["assignment"])
    members = {each["id"]: as_sent(each, scenario["assignor"], release) for each in scenario["members"]}
    first = scenario["members"][0]["id"]
    yield group | {c.LEADER: first, c.MEMBERS: len(members)}
    for row in others:
        sent = members.get(row.get(c.MEMBER_ID), {})
        yield row | sent | ((leader or {}) if row.get(c.MEMBER_ID) == first else {})


def results(chosen, **values):
    rows = [row for number, pair in enumerate(chosen) for row in rows_of(pair, number, **values)]
    found = {row[c.GROUP_ID]: row for row in computed(rows)["rebalances"]}
    return [found[f"g{number}"] for number in range(len(chosen))]


@pytest.fixture(scope="module")
def judged():
    chosen = pairs()
    return [
        (pair["scenario"]["assignor"], pair["release"], row) for pair, row in zip(chosen, results(chosen), strict=True)
    ]


def evidence(assignor, release):
    if WRITES[release] == 3:
        return "3.4.0 on"
    if assignor == "sticky":
        return "2.4-3.3"
    return "2.8.1-3.3" if release in GENERATIONS else "2.4-2.8.0"


def test_another_answer_of_an_older_java_client_is_said_to_be_one(judged):
    told = Counter()
    for assignor, release, row in judged:
        if row[c.VERDICT] == "valid-different":
            assert row[c.ATTRIBUTION] in ("exact", "equal-sets", UNLISTED), row  # another library gives just this
        elif row[c.VERDICT].startswith("not of"):
            writes = evidence(assignor, release)
            assert row[c.VERDICT] == f"not of Kafka 3.7.1-4.4: the leader writes as {writes}"
            told[assignor, writes] += 1
        else:
            assert row[c.VERDICT] in ("exact", "equal-sets", "topic-unknown-to-leader", "invalid"), row
    assert len(told) == 5
    assert min(told.values()) >= 3


def different(judged):
    """Pairs whose records are said to be of another release."""
    return [pair for pair, (*_, row) in zip(pairs(), judged, strict=True) if row[c.VERDICT].startswith("not of")]


@pytest.mark.parametrize(
    "leader",
    [
        pytest.param({c.SUBSCRIPTION_VERSION: 0, c.USER_DATA: b""}, id="kafka-python's bytes"),
        pytest.param({c.SUBSCRIPTION_VERSION: 7}, id="a version that no release writes"),
    ],
)
def test_nothing_is_said_of_releases_where_the_leader_does_not_write_as_java_does(judged, leader):
    found = results(different(judged)[:5], leader=leader)
    assert {row[c.VERDICT] for row in found} == {"valid-different"}


def test_nothing_is_said_of_releases_where_no_listing_has_the_partitions(judged):
    (pair, *_) = different(judged)
    rows = list(rows_of(pair, 0))
    given = next(row for row in rows if row.get(c.RECORDED))
    last = given[c.RECORDED][-1]
    more = [*given[c.RECORDED][:-1], last | {"partitions": [*last["partitions"], 999]}]
    (row,) = computed([each | {c.RECORDED: more} if each is given else each for each in rows])["rebalances"]
    assert row[c.VERDICT] == "valid-different"


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_assignors_that_no_release_changed_have_no_such_verdict(assignor):
    lists = {"a": [["t", 0], ["t", 1], ["t", 2]], "b": [["t", 3]]}
    member = {"topics": ["t"], "owned": [], "generation": -1, "rack": None, "instance_id": None}
    members = [{"id": each, **member} for each in lists]
    scenario = {"id": "g0", "assignor": assignor, "topics": {"t": 4}, "members": members}
    (row,) = results([{"scenario": scenario, "result": {"assignment": lists}, "release": "3.4.1"}])
    assert row[c.VERDICT] == "valid-different"


@pytest.mark.parametrize(
    ("assignor", "version", "user_data", "releases"),
    [
        ("sticky", 0, None, "before 2.4"),
        ("sticky", 1, None, "2.4-3.3"),
        ("sticky", 3, None, "3.4.0 on"),
        ("cooperative-sticky", 1, None, "2.4-2.8.0"),
        ("cooperative-sticky", 1, b"\xff\xff\xff\xff", "2.8.1-3.3"),
        ("cooperative-sticky", 3, b"\0\0\0\5", "3.4.0 on"),
        ("cooperative-sticky", 3, None, None),
        ("cooperative-sticky", 3, b"", None),  # librdkafka's
        ("cooperative-sticky", 1, b"", None),  # kafka-python's
        ("sticky", 2, None, None),
        ("sticky", None, None, None),
    ],
)
def test_releases_by_what_a_java_client_writes(assignor, version, user_data, releases):
    assert java_releases(assignor, version, user_data) == releases
    assert releases is None or OTHER_RELEASE[releases].text.endswith(f"the leader writes as {releases}")


def test_each_evidence_is_a_verdict_of_its_own():
    named = [each for each in Verdict if each.name.startswith("OTHER_RELEASE")]
    assert list(OTHER_RELEASE.values()) == named
    assert len({each.text for each in named}) == len(named)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("release", "verdicts"), [("4.0.0", {"exact", "exact as of Kafka 4.0.0"}), ("4.2.0", {"exact"})]
)
def test_every_state_of_a_consumer_group_of_a_broker_is_exact_under_a_named_release(release, verdicts, monkeypatch):
    monkeypatch.setattr(captured, "lines", lambda name: lines_of(f"broker-{name.replace('/', '.')}"))
    topics = states_of(lines_of(f"broker-{release}.topics"))
    log, rows = f"{release}/offsets", []
    for group in ("uni", "re"):
        rows += bucket_of(group, captured.folded(log, group), captured.log_rows(log)[group], topics)
    found = Counter(row[c.VERDICT] for row in computed(rows)["rebalances"] if row[c.MEMBERS])
    assert set(found) == verdicts
    assert found.total() > 10
