"""Where the reader is, by message and back."""

import msgspec

from qwendesk.core.chats import ReadPosition
from qwendesk.core.conversation import Turn
from qwendesk.core.messages import text_message
from qwendesk.ui.chat.reading import go_to, place_of_reader


class Place(msgspec.Struct, frozen=True):
    turn: int = 0
    part: str = "question"
    section: int = 0
    offset: int = 0
    in_text: bool = False
    at_end: bool = True


class Thread:
    def __init__(self) -> None:
        self.place = Place()

    def position(self) -> Place:
        return self.place

    def show_position(self, position: Place) -> None:
        self.place = position


TURNS = [
    Turn(number, text_message("user", "?"), question_id=f"q{number}", answer_id=f"a{number}") for number in range(1, 4)
]


def test_a_message_is_gone_to_and_kept() -> None:
    thread = Thread()

    go_to(thread, TURNS, ReadPosition("a2", 3, 40.0))

    assert thread.place == Place(2, "answer", 3, 40, in_text=True, at_end=False)
    assert place_of_reader(thread, TURNS) == ReadPosition("a2", 3, 40)


def test_a_place_above_the_words_of_a_message_is_one_of_the_whole_message() -> None:
    thread = Thread()
    thread.place = Place(2, "answer", 0, -10, at_end=False)

    kept = place_of_reader(thread, TURNS)
    go_to(thread, TURNS, kept)

    assert thread.place == Place(2, "answer", 0, -10, at_end=False)


def test_the_end_is_nowhere_in_particular() -> None:
    assert place_of_reader(Thread(), TURNS) == ReadPosition()


def test_a_message_of_another_branch_moves_nothing() -> None:
    thread = Thread()

    go_to(thread, TURNS, ReadPosition("other"))

    assert thread.place == Place()
