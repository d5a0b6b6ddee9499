"""Stopping from another thread."""

from qwendesk.engine.worker.control import RequestControl
from qwendesk.engine.worker.model import AbortFlag


def test_only_what_runs_or_waits_can_be_cancelled() -> None:
    control = RequestControl()
    assert not control.cancel(1)
    control.expect(1)
    assert control.cancel(1)
    with control.running(1):
        assert control.cancelled
    with control.running(2):
        assert not control.cancelled


def test_a_cancel_does_not_reach_the_next_request() -> None:
    control, abort = RequestControl(), AbortFlag()
    with control.running(1, abort):
        assert control.cancel(1)
    assert not control.cancel(1)
    with control.running(2, abort):
        assert not control.cancelled


def test_an_interrupted_request_can_be_cancelled_and_told_to_answer_now() -> None:
    control = RequestControl()
    with control.running(7):
        control.expect(7, is_interrupted=True)
    with control.running(8):
        assert control.answer_now(7)
        assert control.cancel(7)
        assert control.is_cancelled(7)
        assert not control.cancelled
        assert not control.take_answer_now()
    with control.running(7):
        assert control.cancelled
        assert control.take_answer_now()
    assert not control.is_cancelled(7)


def test_answer_now_is_asked_once_and_only_of_the_running_answer() -> None:
    control = RequestControl()
    with control.running(7):
        assert not control.answer_now(6)
        assert not control.take_answer_now()
        assert control.answer_now(7)
        assert control.take_answer_now()
        assert not control.take_answer_now()


def test_a_long_token_is_aborted_after_the_grace() -> None:
    import threading

    raised = threading.Event()

    class Flag(AbortFlag):
        def raise_(self) -> None:
            super().raise_()
            raised.set()

    control = RequestControl()
    with control.running(3, Flag()):
        control.cancel(3)
        assert raised.wait(120)
