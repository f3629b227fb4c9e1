"""KIP-1306, statement by statement: the numbers are those of docs/contributing/kips.md."""

from __future__ import annotations

import threading

import pytest

from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.listener import (
    Adapted,
    CommitFailedError,
    CompositeRebalanceListener,
    ConsumerRebalanceListener,
    HostedConsumer,
    IllegalArgumentError,
    IllegalStateError,
    InterruptError,
    OffsetAndMetadata,
    RebalanceListener,
    WakeupError,
    rehearse_simulation,
)
from tests.core.protocol.played import COOPERATIVE, EAGER, member, t
from tests.kips.listeners import Doing, assigned, failing, lost, polled, revoked

# What callbacks are given


def test_kip_1306_1_offsets_are_committed_on_revocation():
    def commit(partitions, view):
        for each in partitions:
            view.seek(each, 7)
        view.commit_sync()

    consumer = polled(Doing(revoked=commit), assigned(0, 1), revoked(1))
    assert consumer.broker.committed[t(1)[0]] == OffsetAndMetadata(7)


def test_kip_1306_2_positions_are_set_on_assignment():
    def seek(partitions, view):
        view.seek(partitions[0], 41)
        view.seek(partitions[1], OffsetAndMetadata(42))
        assert [view.position(each) for each in partitions] == [41, 42]

    assert polled(Doing(assigned=seek), assigned(0, 1)).positions == dict(zip(t(0, 1), (41, 42), strict=True))


def test_kip_1306_3_what_is_paused_on_assignment_stays_paused():
    consumer = polled(Doing(assigned=lambda partitions, view: view.pause(partitions)), assigned(0, 1))
    consumer.poll()
    assert consumer.paused() == set(t(0, 1))


@pytest.mark.parametrize("taken", [revoked(1), lost(1)])
def test_kip_1306_4_revoked_partitions_are_paused_no_longer(taken):
    consumer = polled(Doing(assigned=lambda partitions, view: view.pause(partitions)), assigned(0, 1), taken)
    assert consumer.paused() == set(t(0))
    assert consumer.assignment() == set(t(0))


def test_kip_1306_5_lost_falls_back_to_revoked():
    calls = []

    class Two(RebalanceListener):
        def on_partitions_assigned(self, partitions, consumer):
            calls.append("assigned")

        def on_partitions_revoked(self, partitions, consumer):
            calls.append("revoked")

    polled(Two(), assigned(0), lost(0))
    assert calls == ["assigned", "revoked"]


def test_kip_1306_6_revoked_partitions_are_assigned_until_the_callback_returns():
    seen = []
    polled(Doing(revoked=lambda _, view: seen.append(view.assignment())), assigned(0, 1), revoked(1))
    assert seen == [frozenset(t(0, 1))]


def test_kip_1306_7_lost_partitions_are_gone_before_the_callback():
    seen = []
    polled(Doing(lost=lambda _, view: seen.append(view.assignment())), assigned(0, 1), lost(0, 1))
    assert seen == [frozenset()]


def test_kip_1306_8_commit_in_lost_does_not_commit_what_was_lost():
    consumer = polled(Doing(lost=lambda _, view: view.commit_sync()), assigned(0, 1), lost(0, 1))
    assert consumer.broker.committed == {}


def test_kip_1306_9_offsets_of_lost_partitions_are_refused():
    told = []
    offsets = {t(0)[0]: OffsetAndMetadata(3)}

    def commit(_, view):
        view.commit_async(offsets, lambda _, error: told.append(error.code))
        view.commit_sync(offsets)

    with pytest.raises(CommitFailedError, match="m does not own t-0"):
        polled(Doing(lost=commit), assigned(0), lost(0))
    assert told == ["COMMIT_FAILED"]


@pytest.mark.parametrize("operation", [lambda view: view.position(t(0)[0]), lambda view: view.seek(t(0)[0], 3)])
def test_kip_1306_10_position_and_seek_fail_for_lost_partitions(operation):
    with pytest.raises(IllegalStateError, match="t-0, which m is not assigned"):
        polled(Doing(lost=lambda _, view: operation(view)), assigned(0), lost(0))


@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_kip_1306_11_who_falls_out_loses_all_it_was_assigned(protocol):
    fallen = c.fall_out(member(protocol, owned=t(0, 1, 2)), c.Error.UNKNOWN_MEMBER_ID)
    assert fallen.calls == (lost(0, 1, 2),)


@pytest.mark.parametrize("error", [WakeupError("WAKEUP", "woken"), InterruptError("INTERRUPTED", "interrupted")])
def test_kip_1306_12_wakeup_and_interrupt_pass_through(error):
    class Woken(HostedConsumer):
        def commit_sync(self, offsets=None, *, timeout=None):
            raise error

    with pytest.raises(type(error)):
        polled(Doing(revoked=lambda _, view: view.commit_sync()), assigned(0), revoked(0), consumer=Woken("m"))


# setRebalanceListener


def test_kip_1306_20_the_last_one_set_before_a_poll_counts():
    first, last = Doing(), Doing()
    consumer = HostedConsumer("m")
    consumer.set_rebalance_listener(first)
    consumer.feed([assigned(0)])
    consumer.set_rebalance_listener(last)
    consumer.poll()
    assert (first.calls, last.calls) == ([], [("assigned", t(0))])


def test_kip_1306_21_one_set_in_a_callback_counts_from_the_next_poll():
    later = Doing()
    consumer = HostedConsumer("m")
    now = Doing(assigned=lambda *_: consumer.set_rebalance_listener(later))
    consumer.set_rebalance_listener(now)
    consumer.feed([assigned(0), assigned(1)])
    consumer.poll()
    consumer.feed([revoked(0)])
    consumer.poll()
    assert [name for name, _ in now.calls] == ["assigned", "assigned"]
    assert later.calls == [("revoked", t(0))]


def test_kip_1306_22_none_removes_it():
    listener = Doing()
    consumer = polled(listener, assigned(0))
    polled(None, revoked(0), consumer=consumer)
    assert listener.calls == [("assigned", t(0))]
    assert consumer.assignment() == set()


def test_kip_1306_23_it_overrides_one_given_to_subscribe():
    given, set_later = Doing(), Doing()
    consumer = HostedConsumer("m")
    with pytest.warns(DeprecationWarning, match="subscribe with a listener is deprecated by KIP-1306"):
        consumer.subscribe(["t"], given)
    polled(set_later, assigned(0), consumer=consumer)
    assert (given.calls, set_later.calls) == ([], [("assigned", t(0))])


def test_kip_1306_24_subscribe_with_a_listener_still_works_and_without_one_keeps_it():
    listener = Doing()
    consumer = HostedConsumer("m")
    with pytest.warns(DeprecationWarning, match="expected set_rebalance_listener"):
        consumer.subscribe(["t"], listener)
    consumer.subscribe(["t", "u"])
    consumer.feed([assigned(0)])
    consumer.poll()
    assert listener.calls == [("assigned", t(0))]


# The delegation table


class Legacy(ConsumerRebalanceListener):
    def __init__(self):
        self.calls = []

    def partitions_assigned(self, partitions):
        self.calls.append("assigned/1")

    def partitions_revoked(self, partitions):
        self.calls.append("revoked/1")


class BothForms(Legacy):
    def on_partitions_assigned(self, partitions, consumer):
        self.calls.append("assigned/2")

    def on_partitions_revoked(self, partitions, consumer):
        self.calls.append("revoked/2")


class AllForms(BothForms):
    def on_partitions_lost(self, partitions, consumer):
        self.calls.append("lost/2")


class LostAlone(Legacy):
    def partitions_lost(self, partitions):
        self.calls.append("lost/1")


DELEGATION = {
    "legacy, callbacks without a consumer only": (Legacy, ["assigned/1", "revoked/1", "revoked/1"]),
    "legacy, all callbacks with a consumer": (AllForms, ["assigned/2", "revoked/2", "lost/2"]),
    "legacy, assigned and revoked with a consumer: lost goes without": (
        BothForms,
        ["assigned/2", "revoked/2", "revoked/1"],
    ),
    "legacy, lost without a consumer": (LostAlone, ["assigned/1", "revoked/1", "lost/1"]),
}


OLDER_FORM = pytest.mark.filterwarnings("ignore:.*of the older form:DeprecationWarning")


@OLDER_FORM
@pytest.mark.parametrize(("kind", "calls"), DELEGATION.values(), ids=DELEGATION.keys())
def test_kip_1306_25_the_delegation_table(kind, calls):
    listener = kind()
    polled(listener, assigned(0, 1), revoked(0), lost(1))
    assert listener.calls == calls


@OLDER_FORM
def test_kip_1306_26_an_override_that_wants_the_older_callback_calls_it():
    class Calling(Legacy):
        def on_partitions_assigned(self, partitions, consumer):
            self.partitions_assigned(partitions)
            self.calls.append("assigned/2")

    listener = Calling()
    polled(listener, assigned(0))
    assert listener.calls == ["assigned/1", "assigned/2"]


@OLDER_FORM
@pytest.mark.parametrize("has_lost", [True, False])
def test_kip_1306_27_listeners_of_other_libraries_are_adapted(has_lost):
    calls = []
    names = ("on_partitions_assigned", "on_partitions_revoked", *(["on_partitions_lost"] * has_lost))
    foreign = type("Foreign", (), {name: lambda _, partitions, name=name: calls.append(name) for name in names})()
    polled(Adapted(foreign), assigned(0), lost(0))
    assert calls == ["on_partitions_assigned", "on_partitions_lost" if has_lost else "on_partitions_revoked"]


# Exceptions


def test_kip_1306_28_an_exception_reaches_the_caller_of_poll():
    with pytest.raises(ZeroDivisionError):
        polled(Doing(assigned=failing(ZeroDivisionError())), assigned(0))


@pytest.mark.parametrize("name", ["revoked", "lost", "assigned"])
def test_kip_1306_29_the_rebalance_completes_all_the_same(name):
    consumer = polled(None, assigned(0, 1))
    consumer.set_rebalance_listener(Doing(**{name: failing(ZeroDivisionError())}))
    consumer.feed([(lost if name == "lost" else revoked)(0), assigned(2)])
    with pytest.raises(ZeroDivisionError):
        consumer.poll()
    assert consumer.assignment() == set(t(1, 2))


def test_kip_1306_30_the_other_callbacks_still_run_and_the_first_error_is_raised():
    listener = Doing(assigned=failing(KeyError("second")), revoked=failing(KeyError("first")))
    consumer = polled(None, assigned(0))
    consumer.set_rebalance_listener(listener)
    consumer.feed([revoked(0), assigned(1)])
    with pytest.raises(KeyError, match="first") as raised:
        consumer.poll()
    assert raised.value.__cause__ is None
    assert listener.calls == [("revoked", t(0)), ("assigned", t(1))]


@pytest.mark.parametrize("error", [WakeupError("WAKEUP", "woken"), InterruptError("INTERRUPTED", "interrupted")])
def test_kip_1306_37_wakeup_and_interrupt_come_before_what_was_raised_first(error):
    """Both callbacks ran, and the caller learns that somebody woke it; the first error is the cause."""
    first = KeyError("first")
    listener = Doing(assigned=failing(error), revoked=failing(first))
    consumer = polled(None, assigned(0))
    consumer.set_rebalance_listener(listener)
    consumer.feed([revoked(0), assigned(1)])
    with pytest.raises(type(error)) as raised:
        consumer.poll()
    assert raised.value.__cause__ is first
    assert listener.calls == [("revoked", t(0)), ("assigned", t(1))]
    both = CompositeRebalanceListener(Doing(assigned=failing(first)), Doing(assigned=failing(error)))
    with pytest.raises(type(error)):
        polled(both, assigned(0))


def test_kip_1306_31_the_consumer_stays_usable():
    consumer = HostedConsumer("m")
    with pytest.raises(ZeroDivisionError):
        polled(Doing(assigned=failing(ZeroDivisionError())), assigned(0), consumer=consumer)
    listener = Doing()
    polled(listener, assigned(1), consumer=consumer)
    assert listener.calls == [("assigned", t(1))]


def test_kip_1306_32_callbacks_run_on_the_polling_thread():
    seen = []
    polled(Doing(assigned=lambda *_: seen.append(threading.current_thread())), assigned(0))
    assert seen == [threading.current_thread()]


# Test plan: both protocols


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_kip_1306_33_listeners_commit_and_seek_under_both_protocols(assignor):
    def commit(partitions, view):
        view.commit_sync({each: OffsetAndMetadata(9) for each in partitions})

    def seek(partitions, view):
        for each in partitions:
            view.seek(each, 1)

    def make():
        return Doing(assigned=seek, revoked=commit)

    joins = [e.Join(name, ("t",), (assignor,)) for name in "ab"]
    journal = rehearse_simulation(simulate(Script({"t": 4}, joins)), make)
    assert all(entry.error is None for entry in journal)
    committed = [entry.partitions for entry in journal if entry.did == "commit" and entry.partitions]
    assert committed == ([t(0, 1, 2, 3)] if assignor == "range" else [t(2, 3)])


# Future work of the KIP


def test_kip_1306_34_several_listeners_are_one_and_all_are_called():
    broken, whole = Doing(assigned=failing(ZeroDivisionError())), Doing()
    with pytest.raises(ZeroDivisionError):
        polled(CompositeRebalanceListener(broken, whole), assigned(0))
    assert whole.calls == [("assigned", t(0))]
    polled(CompositeRebalanceListener(whole), assigned(0), revoked(0))
    polled(CompositeRebalanceListener(whole), assigned(0), lost(0))
    assert [name for name, _ in whole.calls] == ["assigned", "assigned", "revoked", "assigned", "lost"]


def test_kip_1306_35_the_deprecated_ways_work_and_warn():
    """One-argument callbacks, ours or of another library, whichever way they are set; the new interface does not."""
    consumer = HostedConsumer("m")
    foreign = type(
        "Foreign", (), {name: lambda *_: None for name in ("on_partitions_assigned", "on_partitions_revoked")}
    )
    for older, name in ((Legacy(), "Legacy"), (Adapted(foreign()), "Foreign")):
        with pytest.warns(DeprecationWarning, match=f"{name} is a listener of the older form") as told:
            consumer.set_rebalance_listener(older)
        assert told[0].filename == __file__
        with pytest.warns(DeprecationWarning, match="subscribe with a listener") as told:
            consumer.subscribe(["t"], Doing())
        assert [each.filename for each in told] == [__file__]
        with pytest.warns(DeprecationWarning, match="of the older form"):
            CompositeRebalanceListener(Doing(), older)
    consumer.set_rebalance_listener(Doing())
    consumer.set_rebalance_listener(None)


@pytest.mark.parametrize("wrong", [object(), "tests:Doing", Doing, lambda *_: None])
def test_kip_1306_36_what_is_no_listener_is_refused(wrong):
    consumer, listener = HostedConsumer("m"), Doing()
    consumer.set_rebalance_listener(listener)
    with pytest.raises(IllegalArgumentError, match="expected a RebalanceListener or None"):
        consumer.set_rebalance_listener(wrong)
    with pytest.raises(IllegalArgumentError), pytest.warns(DeprecationWarning, match="subscribe with"):
        consumer.subscribe(["t"], wrong)
    with pytest.raises(IllegalArgumentError):
        CompositeRebalanceListener(wrong)
    polled(listener, assigned(0), consumer=consumer)
    assert listener.calls == [("assigned", t(0))]
