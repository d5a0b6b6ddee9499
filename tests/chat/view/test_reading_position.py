"""Reading positions by message, scroll anchors by turn, and back."""

from qwendesk.chat.view.chat_switcher import read_position, scroll_anchor
from qwendesk.chat.view.thread.rows import ScrollAnchor
from qwendesk.core.chats import ReadPosition
from qwendesk.core.conversation import Turn
from qwendesk.core.messages import text_message

TURNS = [
    Turn(number, text_message("user", "?"), question_id=f"q{number}", answer_id=f"a{number}") for number in range(1, 4)
]


def test_a_position_in_an_answer_is_restored() -> None:
    anchor = scroll_anchor(ReadPosition("a2", 3, 40.0), TURNS)

    assert anchor == ScrollAnchor(2, "answer", 3, 40, in_text=True, at_end=False)
    assert read_position(anchor, TURNS) == ReadPosition("a2", 3, 40)


def test_a_position_above_the_text_of_a_message_belongs_to_the_whole_message() -> None:
    anchor = ScrollAnchor(2, "answer", 0, -10, at_end=False)

    assert scroll_anchor(read_position(anchor, TURNS), TURNS) == anchor


def test_the_end_is_stored_as_the_empty_position() -> None:
    assert read_position(ScrollAnchor(), TURNS) == ReadPosition()
    assert scroll_anchor(ReadPosition(), TURNS) is None


def test_a_message_of_another_branch_does_not_scroll() -> None:
    assert scroll_anchor(ReadPosition("other"), TURNS) is None
