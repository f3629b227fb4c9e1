"""The broker of the fixture is the pinned Kafka, and is gone afterwards."""

from __future__ import annotations

import socket

import pytest

from tests.live.broker import broker
from tests.live.topics import Topics


def test_a_broker_starts_serves_and_is_gone(tmp_path):
    with broker(tmp_path) as address:
        Topics(address).create({"t": 3})
    host, port = address.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)
