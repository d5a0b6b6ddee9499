"""What is saved comes back as it was, from a real file."""

from pathlib import Path

import pytest

from qwendesk.core.chats import ChatSettings, ChatSummary, DraftFile, Folder, ReadPosition, SavedDraft
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import ImagePart, Message, TextPart, ToolCall, text_message
from qwendesk.core.stats import AnswerStats
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import Database
from tests.store.chat_nodes import node


def fill(store: ChatStore, *nodes: ChatNode, chat: str = "c") -> None:
    for each in nodes:
        store.save_node(chat, each).result()


def names(tree: ChatTree) -> str:
    return " ".join(each.id for each in tree.path())


EVERYTHING = ChatNode(
    id="a1",
    parent_id="q1",
    message=Message(
        "assistant",
        (TextPart("before"), ImagePart("cat.png", "ab" * 32), TextPart("after\0 \u202e 🐈")),
        reasoning="hm\n",
        tool_calls=(ToolCall("look", '{"x": 1}'),),
    ),
    created_s=1.5,
    stop_reason="max_tokens",
    stats=AnswerStats(prompt_tokens=7, decode_s=0.25, cache_note="why"),
    thought_s=0.125,
    error="It failed.",
    model="Demo",
    options_json='{"seed":1}',
)


def test_message_is_loaded_as_it_was_saved(store: ChatStore) -> None:
    fill(store, node("q1"), EVERYTHING)

    assert store.load("c").nodes["a1"] == EVERYTHING


def test_lone_surrogate_does_not_prevent_saving(store: ChatStore) -> None:
    fill(store, ChatNode(id="q1", message=text_message("user", "half \ud83d")))

    assert store.load("c").nodes["q1"].message.text == "half \ufffd"


def test_branches_and_shown_versions_are_restored(store: ChatStore) -> None:
    fill(store, node("q1"), node("a1", "q1"), node("q2", "a1"), node("q2b", "a1"), node("a2b", "q2b"))
    assert names(store.load("c")) == "q1 a1 q2b a2b"

    store.set_shown("c", "a1", "q2").result()

    assert names(store.load("c")) == "q1 a1 q2"
    assert store.load("c").versions("q2") == ("q2", "q2b")


def test_growing_answer_does_not_change_the_shown_branch(store: ChatStore) -> None:
    fill(store, node("q1"), node("a1", "q1"), node("a1b", "q1"))
    store.set_shown("c", "q1", "a1").result()

    store.save_node("c", node("a1b", "q1", text="longer"), growing=True).result()

    assert names(store.load("c")) == "q1 a1"


def test_deleting_a_message_deletes_its_descendants(store: ChatStore) -> None:
    chain = [node("q0")]
    chain += [node(f"q{number}", f"q{number - 1}") for number in range(1, 3000)]
    tree = ChatTree({each.id: each for each in chain})
    store.save_tree(ChatSummary(id="c"), tree).result()

    store.delete_node("c", "q1").result()

    assert set(store.load("c").nodes) == {"q0"}


def test_a_tree_is_saved_as_a_whole(store: ChatStore) -> None:
    tree = ChatTree().with_node(node("q1")).with_node(node("a1", "q1")).with_node(node("a1b", "q1")).showing("a1")

    store.save_tree(ChatSummary(id="c", title="Mine", changed_s=3.0), tree).result()

    assert store.load("c") == tree
    assert store.list() == (ChatSummary(id="c", title="Mine", changed_s=3.0),)


def test_chat_is_titled_by_its_first_question_unless_renamed(store: ChatStore) -> None:
    fill(store, node("q1", text="\n## Why is *the sky* blue?\nReally?", created_s=1.0))
    assert [(each.title, each.changed_s) for each in store.list()] == [("Why is *the sky* blue?", 1.0)]

    store.save_summary(ChatSummary(id="c", title="Sky")).result()
    fill(store, node("q1b", text="Another", created_s=2.0))

    assert [(each.title, each.changed_s) for each in store.list()] == [("Sky", 2.0)]


def test_last_changed_chat_is_listed_first(store: ChatStore) -> None:
    for chat, created_s in (("old", 1.0), ("new", 3.0), ("middle", 2.0)):
        fill(store, node(f"q{chat}", created_s=created_s), chat=chat)

    assert [each.id for each in store.list()] == ["new", "middle", "old"]


def test_chat_summary_is_loaded_as_it_was_saved(store: ChatStore) -> None:
    store.save_folder(Folder("f", "Work")).result()
    row = ChatSummary(
        id="c",
        title="Title",
        folder_id="f",
        pinned=True,
        archived=True,
        created_s=1.0,
        changed_s=2.0,
        settings=ChatSettings(system_prompt="Be brief.", thinking=False, overrides={"seed": "7"}),
    )

    store.save_summary(row).result()

    assert store.summary("c") == row


def test_chats_of_a_deleted_folder_are_kept(store: ChatStore) -> None:
    store.save_folder(Folder("f", "Work")).result()
    store.save_summary(ChatSummary(id="c", folder_id="f")).result()

    store.delete_folder("f").result()

    assert store.folders() == ()
    assert [each.folder_id for each in store.list()] == [""]


def test_deleted_chat_can_be_restored_until_purged(store: ChatStore) -> None:
    fill(store, node("q1"), node("a1", "q1"))
    store.set_deleted(["c"], 10.0).result()
    assert store.list() == ()
    assert store.summary("c") is None

    store.set_deleted(["c"], None).result()
    store.purge().result()
    assert names(store.load("c")) == "q1 a1"

    store.set_deleted(["c"], 10.0).result()
    store.purge().result()
    store.set_deleted(["c"], None).result()
    assert store.list() == ()
    assert store.load("c") == ChatTree()


def test_drafts_and_reading_positions_survive_a_restart(tmp_path: Path) -> None:
    first = Database(tmp_path / "chats.db")
    store = ChatStore(first)
    fill(store, node("q1"))
    half = SavedDraft("half a", ("cat.png", DraftFile("dog.png", longest_side=512), DraftFile("a.pdf", pages="1-3")))
    store.save_draft("c", half, 1.0)
    store.save_draft("", SavedDraft("new"), 1.0)
    store.save_draft("", SavedDraft(), 2.0)
    store.save_read_position("c", ReadPosition("q1", 2, 0.5))
    store.remember("last_chat", "c")
    first.close()

    again = Database(tmp_path / "chats.db")
    store = ChatStore(again)
    assert store.draft("c") == half
    assert store.draft("") == SavedDraft()
    assert store.read_position("c") == ReadPosition("q1", 2, 0.5)
    assert store.remembered("last_chat") == "c"
    again.close()


def test_message_without_parent_is_refused(store: ChatStore) -> None:
    with pytest.raises(Exception, match="can't be used"):
        store.save_node("c", node("a9", "nobody")).result()

    assert store.list() == ()
