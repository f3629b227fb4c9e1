"""KIP-1306, the restricted view, statement by statement: the numbers are those of docs/contributing/kips.md."""

from __future__ import annotations

import pytest

from groupledger.listener import IllegalStateError, RebalanceConsumer, UnsupportedOperationError
from groupledger.listener.view import view_of
from tests.core.protocol.played import t
from tests.kips.listeners import Doing, assigned, polled

INCLUDED = {
    *("commit_sync", "commit_async", "committed", "position", "seek", "seek_to_beginning", "seek_to_end"),
    *("assignment", "pause", "resume", "paused", "beginning_offsets", "end_offsets", "offsets_for_times"),
    *("partitions_for", "list_topics", "group_metadata", "current_lag", "client_instance_id"),
}


def test_kip_1306_13_a_view_kept_after_its_callback_is_refused():
    kept = []
    polled(Doing(assigned=lambda _, view: kept.append(view)), assigned(0))
    with pytest.raises(IllegalStateError, match="commit_sync on a view whose callback has returned"):
        kept[0].commit_sync()


def test_kip_1306_14_a_view_expires_too_when_its_callback_raises():
    kept = []

    def keep_and_raise(_, view):
        kept.append(view)
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        polled(Doing(assigned=keep_and_raise), assigned(0))
    with pytest.raises(IllegalStateError):
        kept[0].paused()


def test_kip_1306_15_each_callback_has_a_view_of_its_own():
    kept = []
    polled(Doing(assigned=lambda _, view: kept.append(view)), assigned(0), assigned(1))
    assert kept[0] is not kept[1]


class Nothing:
    client_name = "a bare client"


class Everything:
    """A client that has every operation and answers with what it was asked."""

    client_name = "everything"

    def __getattr__(self, operation):
        def answer(*arguments, **options):
            self.asked = (operation, arguments, options)
            return ANSWERS.get(operation)

        return answer


TP = t(0)[0]
ANSWERS = {
    **dict.fromkeys(("committed", "beginning_offsets", "end_offsets", "offsets_for_times"), ()),
    **dict.fromkeys(("assignment", "paused", "partitions_for", "list_topics"), ()),
    "position": 5,
    "client_instance_id": "id",
    "current_lag": 3,
}
ARGUMENTS = {
    **dict.fromkeys(("committed", "seek_to_beginning", "seek_to_end", "pause", "resume"), (t(0),)),
    **dict.fromkeys(("beginning_offsets", "end_offsets"), (t(0),)),
    **dict.fromkeys(("position", "current_lag"), (TP,)),
    "seek": (TP, 4),
    "offsets_for_times": ({TP: 4},),
    "partitions_for": ("t",),
}


@pytest.mark.parametrize("operation", sorted(INCLUDED))
def test_kip_1306_16_included_operations_reach_the_client(operation):
    client = Everything()
    with view_of(client) as view:
        getattr(view, operation)(*ARGUMENTS.get(operation, ()))
    assert client.asked[0] == operation
    assert client.asked[1][: len(ARGUMENTS.get(operation, ()))] == ARGUMENTS.get(operation, ())


def test_kip_1306_17_what_is_omitted_does_not_exist():
    public = {name for name in vars(RebalanceConsumer) if not name.startswith("_")}
    assert public == INCLUDED


def misuse(view: RebalanceConsumer) -> None:
    """A type checker refuses each line: `make check` fails if one of these comments were not needed."""
    view.poll()  # type: ignore[attr-defined]
    view.close()  # type: ignore[attr-defined]
    view.subscribe(["t"])  # type: ignore[attr-defined]
    view.unsubscribe()  # type: ignore[attr-defined]
    view.assign(t(0))  # type: ignore[attr-defined]
    view.wakeup()  # type: ignore[attr-defined]
    view.enforce_rebalance()  # type: ignore[attr-defined]
    view.metrics()  # type: ignore[attr-defined]
    view.register_metric_for_subscription()  # type: ignore[attr-defined]
    view.unregister_metric_for_subscription()  # type: ignore[attr-defined]


def test_kip_1306_18_misuse_is_an_error_before_it_is_a_call():
    with view_of(Everything()) as view, pytest.raises(AttributeError, match="poll"):
        misuse(view)


def test_kip_1306_19_an_operation_that_the_client_lacks_is_a_named_error():
    with view_of(Nothing()) as view, pytest.raises(UnsupportedOperationError) as raised:
        view.client_instance_id()
    assert raised.value.message == "a bare client has no client_instance_id; expected a client that has it"
