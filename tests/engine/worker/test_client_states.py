"""Each client of the server has only its own chats in memory."""

from tests.engine.worker.test_chat_states import Desk, prompt


def test_no_client_gets_what_another_has_of_its_prompt() -> None:
    desk = Desk()
    desk.ask("one", prompt(1), client="Ann")
    assert desk.ask("one", prompt(1), client="Bob") == 1000, "neither what is in memory"
    assert desk.ask("two", prompt(1), client="") == 1000, "nor what is kept in RAM"
    assert desk.ask("", prompt(1, 1005), client="Ann") == 5
    assert desk.ask("one", prompt(1, 1010), client="Bob") == 10
    assert desk.ask("two", prompt(1, 1020)) == 20
    assert desk.states.copy("one", 10**9) is None, "only chats of the app are written to files"


def test_what_was_put_aside_is_still_that_client_s() -> None:
    desk = Desk()
    desk.ask("one", prompt(1), client="Ann")
    desk.states.put_aside()
    assert desk.ask("window", prompt(1)) == 1000
    assert desk.ask("one", prompt(1, 1005), client="Ann") == 5
