"""Topics as of a moment."""

import random

from groupledger.core.history import TopicChange, TopicHistory, canonical_topic_id

CHANGES = [
    TopicChange("a", "id/1", 3, None, 10_000),
    TopicChange("a", "id/1", 5, None, 20_000),
    TopicChange("a", "id/1", None, None, 30_000),
    TopicChange("a", "id+2", 3, None, 40_000),
    TopicChange("b", None, 1, None, 20_000),
]


def test_a_topic_is_what_the_last_change_before_says():
    topics = TopicHistory(CHANGES)
    moments = [9, 10, 19, 20, 30, 39, 40, 1_000]
    assert [topics.as_of("a", moment) for moment in moments] == [
        None,
        ("id_1", 3),
        ("id_1", 3),
        ("id_1", 5),
        None,
        None,
        ("id-2", 3),
        ("id-2", 3),
    ]
    assert topics.as_of("b", 25) == (None, 1)
    assert topics.as_of("c", 25) is None


def test_an_id_names_its_topic_for_ever_in_either_spelling():
    topics = TopicHistory(CHANGES)
    assert topics.name_of("id_1") == topics.name_of("id-2") == "a"
    assert topics.name_of("id/1") is None
    assert canonical_topic_id("V1YOFAs/SRGmS1V4W0hINg==") == "V1YOFAs_SRGmS1V4W0hINg"


def test_a_deletion_and_a_creation_at_one_moment_leave_the_new_topic():
    made_again = [TopicChange("a", "2", 3, None, 5_000), TopicChange("a", "1", None, None, 5_000)]
    assert TopicHistory(made_again).as_of("a", 5) == ("2", 3)


def test_the_order_of_the_changes_does_not_matter():
    for seed in range(20):
        shuffled = random.Random(seed).sample(CHANGES, len(CHANGES))  # noqa: S311 - seeded on purpose
        again = TopicHistory(shuffled)
        assert [again.as_of("a", moment) for moment in range(50)] == [
            TopicHistory(CHANGES).as_of("a", moment) for moment in range(50)
        ]


def test_the_epoch_changes_exactly_where_a_topic_does():
    topics = TopicHistory(CHANGES)
    steps = [moment for moment in range(1, 60) if topics.epoch(moment) != topics.epoch(moment - 1)]
    assert steps == [10, 20, 30, 40]
