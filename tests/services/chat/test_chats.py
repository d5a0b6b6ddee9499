"""What people do with chats as a whole, and that it is still so the next time."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.core.chats import ChatSettings, ReadPosition, SavedDraft
from qwendesk.services.chat.chats import ChatOpened, StoreTold
from qwendesk.store.opening import FILE_NAME
from tests.services.chat.chats_kit import ChatsKit
from tests.store.chat_nodes import node

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ChatsKit]:
    kit = await ChatsKit(tmp_path).start()
    yield kit
    await kit.chats.close()


async def again(kit: ChatsKit) -> ChatsKit:
    """The app ended and was started again."""
    await kit.chats.close()
    other = await ChatsKit(kit.folder).start()
    # The fixture ends the one that runs.
    kit.chats = other.chats
    return other


async def test_a_chat_joins_the_list_with_its_first_question_as_title(kit: ChatsKit) -> None:
    assert kit.titles == set()

    await kit.chat("Why is the sky blue?\nAnd the sea?", "1")

    assert kit.titles == {"Why is the sky blue?"}


async def test_the_last_chat_is_open_again(kit: ChatsKit) -> None:
    first = await kit.chat("First", "1")
    await kit.chat("Second", "2")
    await kit.chats.open(first)

    other = await again(kit)

    assert other.opened.chat_id == first
    assert [each.message.text for each in other.opened.tree.path()] == ["First"]


async def test_rename_pin_archive_and_folders_stay(kit: ChatsKit) -> None:
    chat = await kit.chat("First", "1")
    folder = kit.chats.add_folder("  Work ")
    kit.chats.rename(chat, "  My\nchat ")
    kit.chats.rename(chat, "   ")
    kit.chats.pin([chat], pinned=True)
    kit.chats.archive([chat], archived=True)
    kit.chats.move([chat], folder.id)

    other = await again(kit)

    row = other.chats.summaries[chat]
    assert (row.title, row.pinned, row.archived, row.folder_id) == ("My chat", True, True, folder.id)
    assert [each.name for each in other.chats.folders] == ["Work"]

    other.chats.rename_folder(folder.id, "Play")
    assert [each.name for each in other.chats.folders] == ["Play"]
    other.chats.delete_folder(folder.id)
    assert other.chats.summaries[chat].folder_id == ""


async def test_a_title_by_hand_outlives_the_next_message(kit: ChatsKit) -> None:
    chat = await kit.chat("First", "1")
    kit.chats.rename(chat, "Mine")

    await kit.say(chat, node("a1", "q1", created_s=9.0))
    await kit.until(lambda: kit.chats.summaries[chat].changed_s == 9.0)

    assert kit.titles == {"Mine"}


async def test_deleting_can_be_undone_until_the_app_ends(kit: ChatsKit) -> None:
    one, two = await kit.chat("One", "1"), await kit.chat("Two", "2")
    kit.chats.delete([one, two])
    assert kit.titles == set()
    assert kit.chats.current_id not in (one, two)

    kit.chats.undo()
    assert kit.titles == {"One", "Two"}

    kit.chats.delete([one])
    other = await again(kit)
    other.chats.undo()
    assert other.titles == {"Two"}
    with closing(sqlite3.connect(kit.folder / FILE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)


async def test_archiving_moving_and_removing_a_folder_can_be_taken_back(kit: ChatsKit) -> None:
    one, two = await kit.chat("One", "1"), await kit.chat("Two", "2")
    work, games = kit.chats.add_folder("Work"), kit.chats.add_folder("Games")
    kit.chats.move([one], work.id)
    kit.chats.archive([two], archived=True)

    kit.chats.move([one, two], games.id)
    kit.chats.undo()
    kit.chats.undo()  # one step, not more
    kit.chats.archive([one, two], archived=True)
    kit.chats.undo()
    kit.chats.delete_folder(work.id)
    kit.chats.undo()

    other = await again(kit)
    rows = other.chats.summaries
    assert [(rows[each].folder_id, rows[each].archived) for each in (one, two)] == [(work.id, False), ("", True)]
    assert [folder.name for folder in other.chats.folders] == ["Games", "Work"]


async def test_incognito_leaves_no_trace(kit: ChatsKit) -> None:
    kit.chats.new(incognito=True)
    assert kit.chats.is_incognito
    kit.keeper.save(kit.chats.current_id, node("q1", text="xyzzy"))
    kit.chats.change_draft(SavedDraft("xyzzy"))

    other = await again(kit)

    assert other.titles == set()
    assert [path.name for path in kit.folder.iterdir() if b"xyzzy" in path.read_bytes()] == []


async def test_the_draft_of_each_chat_comes_back(kit: ChatsKit) -> None:
    one = await kit.chat("One", "1")
    kit.chats.change_draft(SavedDraft("half of one"))
    await kit.chat("Two", "2")
    kit.chats.change_draft(SavedDraft("half of two", ("cat.png",)))

    await kit.chats.open(one)
    assert kit.opened.draft == SavedDraft("half of one")

    other = await again(kit)
    assert other.opened.draft == SavedDraft("half of one")


async def test_the_draft_of_a_chat_without_a_message_comes_back(kit: ChatsKit) -> None:
    kit.chats.change_draft(SavedDraft("half"))

    other = await again(kit)

    assert (other.opened.draft, other.titles) == (SavedDraft("half"), set())


async def test_search_leads_to_a_message_also_on_another_branch(kit: ChatsKit) -> None:
    chat = await kit.chat("One", "1")
    await kit.say(chat, node("a1", "q1", text="needle"))
    await kit.say(chat, node("a1b", "q1", text="newer"))

    (hit,) = await kit.chats.search("needle")
    await kit.chats.open(hit.chat_id, hit.node_id)

    assert kit.opened.node_id == "a1"
    assert [each.id for each in kit.opened.tree.path()] == ["q1", "a1"]


async def test_where_the_reader_was_is_kept(kit: ChatsKit) -> None:
    chat = await kit.chat("One", "1")
    kit.chats.save_read_position(chat, ReadPosition("q1", 3, 7.0))

    await kit.chats.open(chat)

    assert kit.opened.position == ReadPosition("q1", 3, 7.0)


async def test_the_last_of_two_chats_asked_for_is_open(kit: ChatsKit) -> None:
    one, two = await kit.chat("One", "1"), await kit.chat("Two", "2")
    count = len(kit.news)

    import asyncio

    await asyncio.gather(kit.chats.open(one), kit.chats.open(two))

    opened = [news.chat_id for news in kit.news[count:] if isinstance(news, ChatOpened)]
    assert opened[-1] == kit.chats.current_id == two


async def test_without_a_store_the_app_goes_on_and_says_so(tmp_path: Path) -> None:
    kit = await ChatsKit(tmp_path).start()
    await kit.chats.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 99")

    other = await ChatsKit(tmp_path).start()
    assert "newer QwenDesk" in other.last(StoreTold).sentence
    other.keeper.save(other.chats.current_id, node("q1"))
    other.chats.new()
    assert await other.chats.search("q1") == ()
    await other.chats.close()


async def test_a_question_asked_before_the_file_is_open_is_kept(tmp_path: Path) -> None:
    kit = ChatsKit(tmp_path)
    early = kit.chats.current_id
    kit.keeper.save(early, node("q1", text="Early"))

    await kit.start()
    await kit.until(lambda: early in kit.chats.summaries)

    assert kit.titles == {"Early"}
    assert kit.chats.current_id == early
    await kit.chats.close()


async def test_settings_chosen_before_the_first_question_are_kept(kit: ChatsKit) -> None:
    kit.chats.new()
    chat = kit.chats.current_id
    kit.keeper.save_settings(chat, ChatSettings(system_prompt="Be brief."))
    await kit.say(chat, node("q1"))
    kit.chats.rename(chat, "Mine")

    other = await again(kit)

    assert other.opened.settings == ChatSettings(system_prompt="Be brief.")
    assert other.titles == {"Mine"}


async def test_a_chat_that_the_chat_service_began_is_followed(kit: ChatsKit) -> None:
    await kit.chat("One", "1")

    kit.chats.follow("branch")
    await kit.say("branch", node("q9", text="Branch"))
    other = await again(kit)

    assert other.opened.chat_id == "branch"
