"""The records of assignors: what is derived from them, and that nothing else says otherwise."""

import pytest

from groupledger.config.settings import ASSIGNORS as CONFIGURED
from groupledger.core.assignors import ASSIGNORS
from groupledger.core.protocol.compatibility import LIBRARIES, SUPPORTED
from groupledger.core.rebalance.registry import BY_NAME, READING_CLAIMS, RECORDS, REMEMBERING

JAVAS = ("range", "roundrobin", "sticky", "cooperative-sticky")
KIPS = ("constrained-cooperative-sticky", "sticky-stream-join")
LIBRDKAFKAS = "librdkafka-cooperative-sticky"


def test_every_record_has_a_function_and_can_be_configured():
    assert tuple(ASSIGNORS) == tuple(BY_NAME) == CONFIGURED[1:]
    assert set(BY_NAME) >= {*JAVAS, *KIPS, LIBRDKAFKAS}
    assert len(BY_NAME) == len(RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_protocols_and_libraries_are_those_of_the_compatibility_table(record):
    assert record.protocols == SUPPORTED[record.name]
    if record.library is not None:
        assert record.protocol_name in LIBRARIES[record.library].assignors


def test_what_the_lists_derived_from_the_records_hold():
    assert {"sticky", "cooperative-sticky"} == READING_CLAIMS
    assert {"sticky"} == REMEMBERING
    assert {each.name: each.protocol_name for each in RECORDS if each.protocol_name != each.name} == {
        LIBRDKAFKAS: "cooperative-sticky"
    }
    known = [BY_NAME[name] for name in (*JAVAS, *KIPS, LIBRDKAFKAS)]
    assert {each.name for each in known if each.cooperative} == {"cooperative-sticky", KIPS[0], LIBRDKAFKAS}
    assert {each.name for each in known if each.always_safe} == set(KIPS)
    assert {each.name for each in known if not each.sticky} == {"range", "roundrobin", "sticky-stream-join"}
