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


def test_the_memory_of_an_interrupted_answer_is_its_own_and_that_client_s() -> None:
    desk = Desk()
    desk.ask("one", prompt(1), client="Ann")
    aside = desk.states.set_aside()
    assert aside is not None
    assert desk.ask("window", prompt(1)) == 1000
    assert desk.states.take_back(aside)
    assert desk.ask("one", prompt(1, 1005), client="Ann") == 5
    assert desk.ask("window", prompt(1, 1005)) == 5, "what interrupted it is kept, as at any change of chats"


def test_the_memory_of_a_short_answer_is_kept_too() -> None:
    desk = Desk()
    desk.ask("one", prompt(1, 20), client="Ann")
    aside = desk.states.set_aside()
    assert aside is not None
    desk.ask("window", prompt(2, 500))
    assert desk.states.take_back(aside)
    assert desk.ask("one", prompt(1, 25), client="Ann") == 5


def test_other_chats_make_room_for_the_memory_of_an_interrupted_answer() -> None:
    desk = Desk()
    for number in range(3):
        desk.ask(f"chat {number}", prompt(number))
    assert len(desk.states.kept) == 2
    desk.free_bytes = 0
    assert desk.states.set_aside() is None, "without room nothing is interrupted"
    assert desk.states.kept == ()
    assert desk.ask("chat 2", prompt(2, 1005)) == 5, "and the answer goes on from its memory"
