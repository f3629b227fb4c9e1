"""Listeners by name: what is found, what is adapted, what is refused and why."""

from __future__ import annotations

import pytest

from groupledger.core.faults import Fault
from groupledger.listener import Adapted, HostedConsumer, RebalanceListener
from groupledger.listener.listener_names import find_listener
from groupledger.listener.view import view_of
from tests.core.protocol.played import t


class Ours(RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer): ...


class Foreign:
    """As kafka-python has it: partitions alone."""

    def __init__(self):
        self.calls = []

    def on_partitions_assigned(self, assigned):
        self.calls.append(("assigned", assigned))

    def on_partitions_revoked(self, revoked):
        self.calls.append(("revoked", revoked))


class ForeignWithLost(Foreign):
    def on_partitions_lost(self, lost):
        self.calls.append(("lost", lost))


class Demanding(Ours):
    def __init__(self, broker): ...


class Abstract(RebalanceListener): ...


class Half:
    def on_partitions_assigned(self, assigned): ...


class Swapped(Foreign):
    """Meant to have the newer form, without its base class."""

    def on_partitions_assigned(self, consumer, partitions): ...  # type: ignore[override]


class WithoutConsumer(Ours):
    def on_partitions_lost(self, partitions): ...  # type: ignore[override]


class Leaving(Ours):
    def __init__(self):
        raise SystemExit(0)


def test_a_listener_is_made_for_each_member():
    make = find_listener(f"{__name__}:Ours")
    first, second = make(), make()
    assert (type(first).__name__, type(second).__name__) == ("Ours", "Ours")
    assert first is not second


@pytest.mark.parametrize(("name", "lost"), [("Foreign", "revoked"), ("ForeignWithLost", "lost")])
def test_a_class_of_the_older_form_is_adapted(name, lost):
    """Each member has an object of its own, and every callback reaches it, without the consumer."""
    make = find_listener(f"{__name__}:{name}")
    adapted, other = make(), make()
    assert isinstance(adapted, Adapted)
    assert isinstance(other, Adapted)
    with view_of(HostedConsumer("m")) as view:
        adapted.on_partitions_assigned(t(0, 1), view)
        adapted.on_partitions_revoked(t(0), view)
        adapted.on_partitions_lost(t(1), view)
    assert type(adapted.listener).__name__ == name
    assert adapted.listener.calls == [("assigned", t(0, 1)), ("revoked", t(0)), (lost, t(1))]
    assert other.listener.calls == []


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


@pytest.mark.parametrize(
    ("name", "error"), [("Demanding", "TypeError"), ("Abstract", "TypeError"), ("Leaving", "SystemExit")]
)
def test_a_class_that_cannot_be_made_without_arguments_is_said(name, error):
    with pytest.raises(Fault, match=rf"{name}\(\) raised {error}: .+; expected a class that is made without") as raised:
        find_listener(f"{__name__}:{name}")()
    assert raised.value.code == "LISTENER_NOT_MADE"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Swapped", "Swapped.on_partitions_assigned takes (consumer, partitions), and is called with (partitions); "),
        ("WithoutConsumer", "on_partitions_lost takes (partitions), and is called with (partitions, consumer); "),
    ],
)
def test_a_callback_that_would_fail_in_every_call_is_refused(name, message):
    with pytest.raises(Fault) as raised:
        find_listener(f"{__name__}:{name}")()
    assert raised.value.code == "LISTENER_NOT_MADE"
    assert message + "expected (partitions, consumer) in a subclass of groupledger.listener" in raised.value.message


def test_what_a_module_prints_is_not_a_result_and_its_exit_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loud_listener.py").write_text(f"from {__name__} import Ours\nprint('loading')\n", encoding="utf-8")
    (tmp_path / "leaving_listener.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    assert type(find_listener("loud_listener:Ours")()).__name__ == "Ours"
    assert capsys.readouterr() == ("", "loading\n")
    with pytest.raises(Fault, match="cannot import leaving_listener:Ours: SystemExit: 0; expected") as raised:
        find_listener("leaving_listener:Ours")
    assert raised.value.code == "LISTENER_NOT_FOUND"
