"""State that others follow: who is called, with what, and when not."""

import logging

import msgspec
import pytest

from qwendesk.core.observed import Observed


class Download(msgspec.Struct, frozen=True):
    name: str = ""
    done_bytes: int = 0


def test_every_change_reaches_subscribers_in_their_order() -> None:
    observed, calls = Observed(Download()), []
    observed.subscribe(lambda state: calls.append(("first", state.done_bytes)))
    observed.subscribe(lambda state: calls.append(("second", state.done_bytes)))

    observed.update(done_bytes=1)
    observed.set(Download("a", 2))

    assert calls == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]
    assert observed.value == Download("a", 2)


def test_an_equal_state_is_no_change() -> None:
    observed, calls = Observed(Download("a", 1)), []
    observed.subscribe(calls.append)

    observed.set(Download("a", 1))

    assert calls == []


def test_field_subscribers_are_called_only_when_the_field_changes() -> None:
    observed, names = Observed(Download("a")), []
    observed.subscribe_field(lambda state: state.name, names.append)

    observed.update(done_bytes=5)
    observed.update(name="b")
    observed.update(name="b", done_bytes=6)

    assert names == ["b"]


def test_unsubscribed_callback_is_not_called() -> None:
    observed, calls = Observed(Download()), []
    unsubscribe = observed.subscribe(calls.append)

    unsubscribe()
    unsubscribe()
    observed.update(name="b")

    assert calls == []


def test_failing_subscriber_is_logged_and_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    observed, calls = Observed(Download()), []

    def fail(_state: Download) -> None:
        raise ValueError("broken view")

    observed.subscribe(fail)
    observed.subscribe(calls.append)
    with caplog.at_level(logging.ERROR):
        observed.update(name="b")

    assert calls == [Download("b")]
    assert "broken view" in caplog.text


def test_a_subscriber_may_end_its_own_subscription_while_it_is_called() -> None:
    observed, calls = Observed(Download()), []

    def once(state: Download) -> None:
        calls.append(state)
        unsubscribe()

    unsubscribe = observed.subscribe(once)
    observed.update(name="b")
    observed.update(name="c")

    assert calls == [Download("b")]


def test_change_made_by_a_subscriber_reaches_all_subscribers_last() -> None:
    observed, heard = Observed(Download()), []
    observed.subscribe(lambda state: observed.set(Download("final", state.done_bytes)))
    observed.subscribe(heard.append)

    observed.update(done_bytes=1)

    assert heard[-1] == observed.value == Download("final", 1)
