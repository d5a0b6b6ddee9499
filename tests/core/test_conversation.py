from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.messages import text_message


def turn(number: int, question: str, **answer: str) -> Turn:
    return Turn(number, text_message("user", question), Answer(**answer))


def spoken(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages()]


def test_no_system_message_for_a_blank_system_prompt():
    assert spoken(Conversation((turn(1, "Hi"),), "  \n")) == [("user", "Hi")]


def test_a_partial_last_answer_is_sent_so_that_it_can_be_continued():
    conversation = Conversation((turn(1, "Count", reasoning="One, two", text="1, 2,"),))
    assert conversation.messages()[-1] == text_message("assistant", "1, 2,", reasoning="One, two")


def test_failed_turn_without_text_is_left_out_of_the_next_request():
    failed = turn(1, "Look", error="The picture cannot be read.")
    assert spoken(Conversation((failed, turn(2, "Hi")))) == [("user", "Hi")]
    assert spoken(Conversation((failed,))) == [("user", "Look")]


def test_text_of_a_failed_answer_is_kept():
    died = turn(1, "Count", text="1, 2", error="The engine died.")
    assert spoken(Conversation((died, turn(2, "Go on")))) == [
        ("user", "Count"),
        ("assistant", "1, 2"),
        ("user", "Go on"),
    ]


def test_an_answer_stopped_before_its_first_word_keeps_roles_alternating():
    stopped = Turn(1, text_message("user", "Hi"), Answer(stop_reason="cancelled"))
    assert [role for role, _ in spoken(Conversation((stopped, turn(2, "Hello?"))))] == ["user", "assistant", "user"]


def test_with_turn_adds_or_replaces_by_id():
    conversation = Conversation().with_turn(turn(1, "a")).with_turn(turn(2, "b")).with_turn(turn(1, "a", text="done"))
    assert [(each.id, each.answer.text) for each in conversation.turns] == [(1, "done"), (2, "")]
