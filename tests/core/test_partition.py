import pytest

from groupledger.core.faults import Fault
from groupledger.core.log.topic_partitions import topic_partition


@pytest.mark.parametrize(
    ("text", "expected"),
    [("orders-7", ("orders", 7)), ("a-1-2", ("a-1", 2)), ("2024-01-3", ("2024-01", 3)), ("--0", ("-", 0))],
)
def test_the_last_dash_divides(text, expected):
    assert topic_partition(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("orders:7", ("orders", 7)), ("a-1:2", ("a-1", 2))])
def test_a_partition_is_also_read_as_answers_list_it(text, expected):
    assert topic_partition(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "orders:",
        ":7",
        "orders:-7",
        "orders:1-2",
        "",
        "orders",
        "orders-",
        "-7",
        "orders-x",
        "orders--",
        "orders-\u0667",
        "orders-+7",
    ],
)
def test_what_is_no_partition_is_a_fault(text):
    with pytest.raises(Fault) as raised:
        topic_partition(text)
    assert raised.value.code == "BAD_PARTITION"
