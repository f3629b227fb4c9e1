"""Listeners by name: what is found, what is adapted, what is refused and why."""

from __future__ import annotations

import pytest

from groupledger.core.faults import Fault
from groupledger.listener import Adapted, RebalanceListener
from groupledger.listener.naming import find_listener


class Ours(RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer): ...


class Foreign:
    """As kafka-python has it: partitions alone."""

    def on_partitions_assigned(self, assigned): ...

    def on_partitions_revoked(self, revoked): ...


class Demanding(Ours):
    def __init__(self, broker): ...


class Abstract(RebalanceListener): ...


class Half:
    def on_partitions_assigned(self, assigned): ...


def test_a_listener_is_made_for_each_member():
    make = find_listener(f"{__name__}:Ours")
    assert type(make()).__name__ == "Ours"
    assert make() is not make()


def test_a_class_of_the_older_form_is_adapted():
    assert isinstance(find_listener(f"{__name__}:Foreign")(), Adapted)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Committing", "expected module:Class"),
        ("nowhere.to.be.found:Committing", "cannot import nowhere.to.be.found:Committing: ModuleNotFoundError"),
        (f"{__name__}:Half", "expected a class with on_partitions_revoked"),
        (f"{__name__}:pytest", "is no listener"),
    ],
)
def test_what_is_no_listener_is_said(name, message):
    with pytest.raises(Fault) as raised:
        find_listener(name)
    assert raised.value.code == "LISTENER_NOT_FOUND"
    assert message in raised.value.message


@pytest.mark.parametrize("name", ["Demanding", "Abstract"])
def test_a_class_that_cannot_be_made_without_arguments_is_said(name):
    with pytest.raises(
        Fault, match=rf"{name}\(\) raised TypeError: .+; expected a class that is made without"
    ) as raised:
        find_listener(f"{__name__}:{name}")()
    assert raised.value.code == "LISTENER_NOT_MADE"
