"""User data in each client's form, as the captures have them, and what looks like one and is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.wire.consumer_protocol import (
    COOPERATIVE_STICKY,
    STICKY,
    UserData,
    UserDataForm,
    decode_user_data,
    encode_user_data,
)
from tests.core.wire.test_consumer_protocol import GENERATIONS, OWNED

A1 = "00000001 000161 00000001 00000001"
OWNED_A1 = (("a", (1,)),)


@pytest.mark.parametrize(
    ("assignor", "text", "user_data"),
    [
        (STICKY, "", UserData(UserDataForm.EMPTY)),
        # KIP-54 v0 and v1: Java, aiokafka, franz-go
        (STICKY, A1, UserData(UserDataForm.OWNED, OWNED_A1)),
        (STICKY, A1 + "00000005", UserData(UserDataForm.OWNED_GENERATION, OWNED_A1, 5)),
        (STICKY, A1 + "ffffffff", UserData(UserDataForm.OWNED_GENERATION, OWNED_A1, None)),
        (STICKY, "00000000 00000005", UserData(UserDataForm.OWNED_GENERATION, (), 5)),
        (STICKY, A1 + "00000005 aa", UserData(UserDataForm.OWNED_GENERATION, OWNED_A1, 5, b"\xaa")),
        (STICKY, A1 + "aabbcc", UserData(UserDataForm.OWNED, OWNED_A1, None, b"\xaa\xbb\xcc")),
        # kafka-python
        (STICKY, "0001" + A1 + "00000005", UserData(UserDataForm.PREFIXED_OWNED_GENERATION, OWNED_A1, 5)),
        (STICKY, "0001 00000000 ffffffff", UserData(UserDataForm.PREFIXED_OWNED_GENERATION, (), None)),
        # Java's cooperative-sticky; the same four bytes are an empty KIP-54 v0 elsewhere
        (COOPERATIVE_STICKY, "00000007", UserData(UserDataForm.GENERATION, (), 7)),
        (COOPERATIVE_STICKY, "ffffffff", UserData(UserDataForm.GENERATION, (), None)),
        (COOPERATIVE_STICKY, "00000000", UserData(UserDataForm.GENERATION, (), 0)),
        (STICKY, "00000000", UserData(UserDataForm.OWNED)),
        # librdkafka's cooperative-sticky
        (COOPERATIVE_STICKY, A1 + "00000005", UserData(UserDataForm.OWNED_GENERATION, OWNED_A1, 5)),
        # not one of these
        (STICKY, "00000007", UserData(UserDataForm.OPAQUE, leftover=bytes.fromhex("00000007"))),
        (STICKY, "0001" + A1, UserData(UserDataForm.OPAQUE, leftover=bytes.fromhex("0001" + A1))),
        (STICKY, "7fffffff 00", UserData(UserDataForm.OPAQUE, leftover=bytes.fromhex("7fffffff00"))),
        (COOPERATIVE_STICKY, "000000", UserData(UserDataForm.OPAQUE, leftover=bytes(3))),
        ("range", A1 + "00000005", UserData(UserDataForm.OPAQUE, leftover=bytes.fromhex(A1 + "00000005"))),
        (None, "00000007", UserData(UserDataForm.OPAQUE, leftover=bytes.fromhex("00000007"))),
    ],
)
def test_user_data_as_clients_write_it(assignor, text, user_data):
    data = bytes.fromhex(text)
    assert decode_user_data(data, assignor) == user_data
    assert decode_user_data(data, assignor) == user_data
    assert encode_user_data(user_data) == data


def test_null_is_not_empty():
    assert decode_user_data(None, STICKY) == UserData(UserDataForm.NULL)
    assert encode_user_data(UserData(UserDataForm.NULL)) is None
    assert encode_user_data(UserData(UserDataForm.EMPTY)) == b""


@settings(deadline=None)
@given(
    owned=OWNED,
    generation=GENERATIONS,
    form=st.sampled_from((UserDataForm.OWNED_GENERATION, UserDataForm.PREFIXED_OWNED_GENERATION)),
    assignor=st.sampled_from((STICKY, COOPERATIVE_STICKY)),
    leftover=st.binary(max_size=5),
)
def test_any_owned_with_a_generation_comes_back(owned, generation, form, assignor, leftover):
    user_data = UserData(form, owned, generation, leftover)
    assert decode_user_data(encode_user_data(user_data), assignor) == user_data


@settings(deadline=None)
@given(owned=OWNED)
def test_any_owned_alone_comes_back(owned):
    user_data = UserData(UserDataForm.OWNED, owned)
    assert decode_user_data(encode_user_data(user_data), STICKY) == user_data
