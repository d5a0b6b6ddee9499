"""Branches of a chat."""

from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import text_message


def node(name: str, parent: str = "", role: str = "user") -> ChatNode:
    return ChatNode(id=name, parent_id=parent, message=text_message(role, name))


def tree() -> ChatTree:
    result = ChatTree()
    for each in (node("q1"), node("a1", "q1", "assistant"), node("q2", "a1"), node("a2", "q2", "assistant")):
        result = result.with_node(each)
    return result


def names(path: tuple[ChatNode, ...]) -> str:
    return " ".join(each.id for each in path)


def test_an_edited_question_is_a_new_version_and_the_old_one_keeps_its_answers() -> None:
    edited = tree().with_node(node("q2b", "a1"))
    assert names(edited.path()) == "q1 a1 q2b"
    assert edited.versions("q2") == ("q2", "q2b")
    assert names(edited.showing("q2").path()) == "q1 a1 q2 a2"


def test_a_fork_remembers_what_it_showed() -> None:
    twice = tree().with_node(node("a2b", "q2", "assistant")).with_node(node("q1b"))
    assert names(twice.path()) == "q1b"
    assert names(twice.showing("q1").path()) == "q1 a1 q2 a2b"


def test_deleting_a_message_deletes_its_replies_and_shows_another_version() -> None:
    twice = tree().with_node(node("q2b", "a1")).with_node(node("a2b", "q2b", "assistant"))
    left = twice.without("q2b")
    assert names(left.path()) == "q1 a1 q2 a2"
    assert set(left.nodes) == {"q1", "a1", "q2", "a2"}
    assert names(left.without("q1").path()) == ""


def test_changing_a_message_keeps_its_place() -> None:
    longer = tree().with_node(ChatNode(id="a1", parent_id="q1", message=text_message("assistant", "more")))
    assert names(longer.path()) == "q1 a1 q2 a2"
    assert longer.path()[1].message.text == "more"
