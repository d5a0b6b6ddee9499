"""Actions on whole chats, and that they survive a restart."""

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest_asyncio

from qwendesk.chat.chat_list import ChatOpened, StoreProblem
from qwendesk.core.chats import ChatSettings, ReadPosition, SavedDraft
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import ImagePart, Message, TextPart
from qwendesk.core.paths import cache_folder
from qwendesk.store.opening import FILE_NAME, open_store
from tests.chat.chats_kit import ChatsKit
from tests.store.chat_nodes import node


@pytest_asyncio.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ChatsKit]:
    kit = await ChatsKit(tmp_path).start()
    yield kit
    await kit.chat_list.close()


async def again(kit: ChatsKit) -> ChatsKit:
    """The app ended and was started again."""
    await kit.chat_list.close()
    other = await ChatsKit(kit.folder).start()
    # The fixture ends the one that runs.
    kit.chat_list = other.chat_list
    return other


async def test_chat_is_listed_with_its_first_question_as_title(kit: ChatsKit) -> None:
    assert kit.titles == set()

    await kit.chat("Why is the sky blue?\nAnd the sea?", "1")

    assert kit.titles == {"Why is the sky blue?"}


async def test_last_chat_is_reopened(kit: ChatsKit) -> None:
    first = await kit.chat("First", "1")
    await kit.chat("Second", "2")
    await kit.chat_list.open(first)

    other = await again(kit)

    assert other.opened.chat_id == first
    assert [each.message.text for each in other.opened.tree.path()] == ["First"]


async def test_names_pins_archive_and_folders_are_saved(kit: ChatsKit) -> None:
    chat = await kit.chat("First", "1")
    folder = kit.chat_list.folders.add("  Work ")
    kit.chat_list.chats.rename(chat, "  My\nchat ")
    kit.chat_list.chats.rename(chat, "   ")
    kit.chat_list.chats.pin([chat], pinned=True)
    kit.chat_list.chats.archive([chat], archived=True)
    kit.chat_list.chats.move([chat], folder.id)

    other = await again(kit)

    row = other.chat_list.chats.summaries[chat]
    assert (row.title, row.pinned, row.archived, row.folder_id) == ("My chat", True, True, folder.id)
    assert [each.name for each in other.chat_list.folders.folders] == ["Work"]

    other.chat_list.folders.rename(folder.id, "Play")
    assert [each.name for each in other.chat_list.folders.folders] == ["Play"]
    other.chat_list.chats.delete_folder(folder.id)
    assert other.chat_list.chats.summaries[chat].folder_id == ""


async def test_title_set_by_the_user_survives_the_next_message(kit: ChatsKit) -> None:
    chat = await kit.chat("First", "1")
    kit.chat_list.chats.rename(chat, "Mine")

    await kit.say(chat, node("a1", "q1", created_s=9.0))
    await kit.until(lambda: kit.chat_list.chats.summaries[chat].changed_s == 9.0)

    assert kit.titles == {"Mine"}


async def test_deletion_can_be_undone_until_the_app_closes(kit: ChatsKit) -> None:
    one, two = await kit.chat("One", "1"), await kit.chat("Two", "2")
    kit.chat_list.delete([one, two])
    assert kit.titles == set()
    assert kit.chat_list.current_id not in (one, two)

    kit.chat_list.chats.undo()
    assert kit.titles == {"One", "Two"}

    kit.chat_list.delete([one])
    other = await again(kit)
    other.chat_list.chats.undo()
    assert other.titles == {"Two"}
    with closing(sqlite3.connect(kit.folder / FILE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)


async def test_archiving_moving_and_deleting_a_folder_can_be_undone(kit: ChatsKit) -> None:
    one, two = await kit.chat("One", "1"), await kit.chat("Two", "2")
    work, games = kit.chat_list.folders.add("Work"), kit.chat_list.folders.add("Games")
    kit.chat_list.chats.move([one], work.id)
    kit.chat_list.chats.archive([two], archived=True)

    kit.chat_list.chats.move([one, two], games.id)
    kit.chat_list.chats.undo()
    kit.chat_list.chats.undo()  # one step, not more
    kit.chat_list.chats.archive([one, two], archived=True)
    kit.chat_list.chats.undo()
    kit.chat_list.chats.delete_folder(work.id)
    kit.chat_list.chats.undo()

    other = await again(kit)
    rows = other.chat_list.chats.summaries
    assert [(rows[each].folder_id, rows[each].archived) for each in (one, two)] == [(work.id, False), ("", True)]
    assert [folder.name for folder in other.chat_list.folders.folders] == ["Games", "Work"]


async def test_incognito_chat_leaves_no_trace(kit: ChatsKit) -> None:
    kit.chat_list.new(incognito=True)
    assert kit.chat_list.is_incognito
    kit.saver.save(kit.chat_list.current_id, node("q1", text="xyzzy"))
    kit.chat_list.change_draft(SavedDraft("xyzzy"))

    other = await again(kit)

    assert other.titles == set()
    assert [path.name for path in kit.folder.iterdir() if b"xyzzy" in path.read_bytes()] == []


async def test_draft_of_each_chat_is_restored(kit: ChatsKit) -> None:
    one = await kit.chat("One", "1")
    kit.chat_list.change_draft(SavedDraft("half of one"))
    await kit.chat("Two", "2")
    kit.chat_list.change_draft(SavedDraft("half of two", ("cat.png",)))

    await kit.chat_list.open(one)
    assert kit.opened.draft == SavedDraft("half of one")

    other = await again(kit)
    assert other.opened.draft == SavedDraft("half of one")


async def test_draft_of_an_empty_chat_is_restored(kit: ChatsKit) -> None:
    kit.chat_list.change_draft(SavedDraft("half"))

    other = await again(kit)

    assert (other.opened.draft, other.titles) == (SavedDraft("half"), set())


async def test_search_finds_messages_on_other_branches(kit: ChatsKit) -> None:
    chat = await kit.chat("One", "1")
    await kit.say(chat, node("a1", "q1", text="needle"))
    await kit.say(chat, node("a1b", "q1", text="newer"))

    (hit,) = await kit.chat_list.search("needle")
    await kit.chat_list.open(hit.chat_id, hit.node_id)

    assert kit.opened.node_id == "a1"
    assert [each.id for each in kit.opened.tree.path()] == ["q1", "a1"]


async def test_reading_position_is_saved(kit: ChatsKit) -> None:
    chat = await kit.chat("One", "1")
    kit.chat_list.save_read_position(chat, ReadPosition("q1", 3, 7.0))

    await kit.chat_list.open(chat)

    assert kit.opened.position == ReadPosition("q1", 3, 7.0)


async def test_last_of_two_simultaneous_open_calls_wins(kit: ChatsKit) -> None:
    one, two = await kit.chat("One", "1"), await kit.chat("Two", "2")
    count = len(kit.events)

    import asyncio

    await asyncio.gather(kit.chat_list.open(one), kit.chat_list.open(two))

    opened = [event.chat_id for event in kit.events[count:] if isinstance(event, ChatOpened)]
    assert opened[-1] == kit.chat_list.current_id == two


async def test_app_works_in_memory_if_the_store_cannot_be_opened(tmp_path: Path) -> None:
    kit = await ChatsKit(tmp_path).start()
    await kit.chat_list.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 99")

    other = await ChatsKit(tmp_path).start()
    assert "newer version of QwenDesk" in other.last(StoreProblem).sentence
    other.saver.save(other.chat_list.current_id, node("q1"))
    other.chat_list.new()
    assert await other.chat_list.search("q1") == ()
    await other.chat_list.close()


async def test_question_sent_before_the_store_is_open_is_saved(tmp_path: Path) -> None:
    kit = ChatsKit(tmp_path)
    early = kit.chat_list.current_id
    kit.saver.save(early, node("q1", text="Early"))

    await kit.start()
    await kit.until(lambda: early in kit.chat_list.chats.summaries)

    assert kit.titles == {"Early"}
    assert kit.chat_list.current_id == early
    await kit.chat_list.close()


async def test_settings_changed_before_the_first_question_are_saved(kit: ChatsKit) -> None:
    kit.chat_list.new()
    chat = kit.chat_list.current_id
    kit.saver.save_settings(chat, ChatSettings(system_prompt="Be brief."))
    await kit.say(chat, node("q1"))
    kit.chat_list.chats.rename(chat, "Mine")

    other = await again(kit)

    assert other.opened.settings == ChatSettings(system_prompt="Be brief.")
    assert other.titles == {"Mine"}


async def test_chat_begun_by_the_chat_service_becomes_the_open_one(kit: ChatsKit) -> None:
    await kit.chat("One", "1")

    kit.chat_list.follow("branch")
    await kit.say("branch", node("q9", text="Branch"))
    other = await again(kit)

    assert other.opened.chat_id == "branch"


async def test_picture_not_copied_before_a_crash_is_copied_at_the_next_start(kit: ChatsKit, tmp_path: Path) -> None:
    original = tmp_path / "originals" / "cat.png"
    await asyncio.to_thread(original.parent.mkdir)
    await asyncio.to_thread(original.write_bytes, b"bytes of a cat")
    image = ImagePart(str(original), hashlib.sha256(b"bytes of a cat").hexdigest())
    await kit.chat_list.close()
    store, _ = await asyncio.to_thread(open_store, tmp_path)
    assert store is not None
    # As a crash leaves it: the message is written, and its file not yet copied.
    question = ChatNode(id="q1", message=Message("user", (image, TextPart("What is this?"))))
    await asyncio.wrap_future(store.chats.save_node("c1", question))
    await asyncio.to_thread(store.close)

    other = await ChatsKit(tmp_path).start()
    kit.chat_list = other.chat_list
    await other.saver.wait_for_copies()
    await asyncio.to_thread(original.unlink)
    (copy,) = (await other.chat_list.tree("c1")).nodes["q1"].message.images
    assert await asyncio.to_thread(Path(copy.path).read_bytes) == b"bytes of a cat"
    assert Path(copy.path).is_relative_to(tmp_path / "attachments")


async def test_frames_in_the_cache_end_with_the_next_start(kit: ChatsKit) -> None:
    """Chats have copies of theirs, so that what stays would be that of deleted chats."""
    old, new = (cache_folder() / "clips" / name for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "0-64x48.png").write_bytes(b"frame")
    os.utime(old, (0, 0))

    await again(kit)

    assert not old.exists()
    assert new.exists(), "qwendesk ask may be reading it"
