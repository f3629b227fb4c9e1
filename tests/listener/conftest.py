"""Clients whose library is a fake."""

from __future__ import annotations

import pytest

from groupledger.listener.confluent import ConfluentConsumer
from groupledger.listener.kafka_python import KafkaPythonConsumer
from tests.listener.fake_clients import CONFLUENT, KAFKA


@pytest.fixture
def confluent(monkeypatch):
    monkeypatch.setattr("groupledger.listener.confluent.client_module", lambda *_: CONFLUENT)
    return lambda strategy: ConfluentConsumer({"group.id": "g", "partition.assignment.strategy": strategy})


@pytest.fixture
def kafka_python(monkeypatch):
    monkeypatch.setattr("groupledger.listener.kafka_python.client_module", lambda *_: KAFKA)
    return KafkaPythonConsumer(group_id="g")
