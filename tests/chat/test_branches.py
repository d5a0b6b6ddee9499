"""Versions of messages: editing, regenerating, switching, deleting, undoing and saving."""

import pytest

from qwendesk.chat.chat_state import (
    ConversationReplaced,
    MessagesDeleted,
    TextAdded,
    TurnsReplaced,
)
from qwendesk.chat.open_chat import NoChatSaver
from qwendesk.chat.service import ChatService
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadRequest
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Begun
from tests.fakes.engine import ScriptedAnswer

OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")


class Disk(NoChatSaver):
    """A saver that holds what a database would: refuses a message whose parent it does not know."""

    def __init__(self) -> None:
        self.chats: dict[str, dict] = {}
        self.shown: dict[str, dict[str, str]] = {}
        self.settings: dict[str, ChatSettings] = {}
        self.grown = 0

    def save(self, chat_id, node) -> None:
        chat = self.chats.setdefault(chat_id, {})
        assert node.parent_id == "" or node.parent_id in chat, "its parent was not saved"
        chat[node.id] = node

    def save_partial(self, chat_id, node_id, current) -> None:
        self.grown += 1

    def show(self, chat_id, parent_id, node_id) -> None:
        assert node_id in self.chats[chat_id]
        self.shown.setdefault(chat_id, {})[parent_id] = node_id

    def delete(self, chat_id, node_id) -> None:
        gone = {node_id}
        for node in tuple(self.chats[chat_id].values()):
            if node.id in gone or node.parent_id in gone:
                gone.add(node.id)
                del self.chats[chat_id][node.id]
        shown = self.shown[chat_id]
        self.shown[chat_id] = {parent: child for parent, child in shown.items() if not gone & {parent, child}}

    def save_settings(self, chat_id, settings) -> None:
        self.settings[chat_id] = settings

    async def wait_until_settled(self) -> None:
        pass


@pytest.fixture
def disk(desk) -> Disk:
    disk = Disk()
    desk.chat = ChatService(desk.client, desk.engine, disk)
    desk.chat.subscribe(desk.events.append)
    return disk


def shown(desk) -> list[tuple[str, str]]:
    return [(turn.question.text, turn.answer.text) for turn in desk.chat.conversation.turns]


def is_kept(desk, disk) -> bool:
    """What is shown is what the disk would show again."""
    service = ChatService(desk.client, desk.engine)
    tree = desk.chat.tree
    kept = type(tree)(disk.chats[desk.chat.chat_id], disk.shown[desk.chat.chat_id])
    service.open(desk.chat.chat_id, kept, disk.settings[desk.chat.chat_id])
    return shown(desk) == [(turn.question.text, turn.answer.text) for turn in service.conversation.turns]


async def two_turns(desk) -> tuple[int, int]:
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(reasoning="Hm.", text="One."), ScriptedAnswer(text="Two.")]
    first, second = await desk.chat.send("First?"), await desk.chat.send("Second?")
    desk.events.clear()
    return first.id, second.id


async def test_edited_question_keeps_its_pictures(desk, disk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    first = await desk.chat.send("What is this?", [picture])
    turn = await desk.chat.edit_question(first.id, "And this?")
    assert turn.question.images == first.question.images


async def test_regenerating_adds_a_version_that_can_be_switched(desk, disk):
    _, second = await two_turns(desk)
    desk.client.answers = [ScriptedAnswer(text="Zwei.")]
    turn = await desk.chat.regenerate(second)
    assert turn.id == second, "the same question, so the same turn"
    assert (turn.answer.text, turn.answer_version) == ("Zwei.", (2, 2))
    assert [each.text for each in desk.client.asked[-1].messages] == ["First?", "One.", "Second?"]
    desk.chat.show_version(second, "answer", -1)
    assert shown(desk)[1] == ("Second?", "Two.")
    desk.chat.show_version(second, "answer", -1)
    assert shown(desk)[1] == ("Second?", "Two."), "there is none before the first"
    desk.chat.show_version(second, "answer", 1)
    assert shown(desk)[1] == ("Second?", "Zwei.")
    assert is_kept(desk, disk)


async def test_regenerating_an_earlier_answer_keeps_the_later_turns(desk, disk):
    first, _ = await two_turns(desk)
    desk.client.answers = [ScriptedAnswer(text="Eins.")]
    await desk.chat.regenerate(first)
    assert shown(desk) == [("First?", "Eins.")]
    desk.chat.show_version(first, "answer", -1)
    assert shown(desk) == [("First?", "One."), ("Second?", "Two.")]


async def test_edited_answer_keeps_reasoning_and_text_separate(desk, disk):
    first, _ = await two_turns(desk)
    desk.chat.edit_answer(first, text="<think>Not a thought</think> Uno.", reasoning="Hm, </think> yes.")
    (turn,) = desk.chat.conversation.turns
    assert turn.answer.text == "<think>Not a thought</think> Uno."
    assert turn.answer.reasoning == "Hm, </think> yes."
    assert turn.answer.by_hand
    assert turn.answer_version == (2, 2)
    await desk.chat.send("Next?")
    message = desk.client.asked[-1].messages[1]
    assert (message.text, message.reasoning) == (turn.answer.text, turn.answer.reasoning)
    with pytest.raises(BadRequest, match="can't be empty"):
        desk.chat.edit_answer(turn.id, text=" ", reasoning="\n")
    assert is_kept(desk, disk)


async def test_cut_off_answer_is_continued_from_its_last_word(desk, disk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(reasoning="Let me ", text="One, two, ", stop_reason="max_tokens")]
    cut = await desk.chat.send("Count")
    assert cut.answer.can_continue
    desk.client.answers = [ScriptedAnswer(text="three.")]
    desk.events.clear()
    turn = await desk.chat.resume(cut.id)
    request = desk.client.asked[-1]
    assert request.begun == Begun("Let me ", "One, two, ")
    assert [each.text for each in request.messages] == ["Count"], "what was begun is not among the messages"
    assert request.options.enable_thinking
    assert (turn.answer.reasoning, turn.answer.text) == ("Let me ", "One, two, three.")
    assert not turn.answer.can_continue
    assert turn.answer_version == (1, 1)
    assert turn.answer.stats.answer_tokens == 3
    assert "".join(event.text for event in desk.events if isinstance(event, TextAdded)) == "three."
    assert is_kept(desk, disk)


async def test_cut_off_reasoning_is_continued_as_reasoning(desk, disk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(reasoning="Let me ", stop_reason="max_tokens")]
    cut = await desk.chat.send("Count")
    desk.chat.set_thinking(False)
    desk.client.answers = [ScriptedAnswer(reasoning="see.", text="One.")]
    turn = await desk.chat.resume(cut.id)
    assert desk.client.asked[-1].options.enable_thinking, "as it was when the answer began"
    assert (turn.answer.reasoning, turn.answer.text) == ("Let me see.", "One.")


async def test_failed_answer_can_be_continued_and_loses_its_error(desk, disk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="one two three", crashes_after=2), ScriptedAnswer(text="three")]
    died = await desk.chat.send("Count")
    assert died.answer.error
    turn = await desk.chat.resume(died.id)
    assert (turn.answer.text, turn.answer.error) == ("one two three", "")


async def test_branch_is_a_separate_chat(desk, disk):
    first, _ = await two_turns(desk)
    old_id, old_nodes = desk.chat.chat_id, set(desk.chat.tree.nodes)
    new_id = desk.chat.branch(first)
    assert new_id == desk.chat.chat_id != old_id
    assert desk.events == [ConversationReplaced()]
    assert shown(desk) == [("First?", "One.")]
    assert old_nodes.isdisjoint(desk.chat.tree.nodes)
    await desk.chat.send("New?")
    assert set(disk.chats[old_id]) == old_nodes
    assert is_kept(desk, disk)


async def test_delete_removes_later_turns_and_undo_restores_them(desk, disk):
    _, second = await two_turns(desk)
    await desk.chat.regenerate(second)
    desk.chat.show_version(second, "answer", -1)
    desk.events.clear()
    desk.chat.delete(second, "question")
    assert shown(desk) == [("First?", "One.")]
    assert desk.events == [TurnsReplaced(1), MessagesDeleted(3)]
    assert is_kept(desk, disk)
    desk.chat.undo_delete()
    assert desk.events[-1] == TurnsReplaced(1)
    assert shown(desk) == [("First?", "One."), ("Second?", "Two.")]
    assert desk.chat.conversation.turns[1].answer_version == (1, 2)
    assert is_kept(desk, disk)
    with pytest.raises(BadRequest, match="nothing to undo"):
        desk.chat.undo_delete()


async def test_undo_after_another_answer_keeps_both(desk, disk):
    _, second = await two_turns(desk)
    desk.chat.delete(second, "answer")
    assert shown(desk)[1] == ("Second?", "")
    await desk.chat.regenerate(second)
    desk.chat.undo_delete()
    assert shown(desk)[1] == ("Second?", "Two.")
    assert desk.chat.conversation.turns[1].answer_version == (1, 2)


async def test_deleting_a_version_shows_another(desk, disk):
    _, second = await two_turns(desk)
    await desk.chat.regenerate(second)
    desk.chat.delete(second, "answer")
    assert shown(desk)[1] == ("Second?", "Two.")


async def test_empty_failed_answer_is_replaced(desk, disk):
    turn = await desk.chat.send("Hi")
    assert turn.answer.error == "No model is loaded."
    await desk.engine.load(OPTIONS)
    again = await desk.chat.regenerate(turn.id)
    assert (again.answer.text, again.answer_version) == ("You said: Hi", (1, 1))


async def test_partial_answer_is_saved_when_another_chat_is_opened(desk, disk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="one two " * 500)]
    desk.chat.subscribe(lambda event: isinstance(event, TextAdded) and desk.chat.busy and desk.chat.new_chat())
    old = desk.chat.chat_id
    turn = await desk.chat.send("Talk")
    assert turn.answer.text == "one "
    assert [node.message.text for node in disk.chats[old].values()] == ["Talk", "one "]
    assert desk.chat.chat_id != old
    assert desk.chat.conversation.turns == ()


async def test_question_with_a_missing_picture_is_saved(desk, disk, tmp_path):
    await desk.engine.load(OPTIONS)
    turn = await desk.chat.send("What is this?", [tmp_path / "gone.png"])
    assert "gone.png" in turn.answer.error
    assert is_kept(desk, disk)
