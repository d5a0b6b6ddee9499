"""The saver writes messages and partial answers, even if the disk is full or slow."""

import asyncio
import hashlib
import io
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.chat import chat_saver
from qwendesk.chat.chat_saver import ChatSaved, SavingFailed, SavingWorksAgain, StoreChatSaver
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import ImagePart, Message
from qwendesk.store import attachments
from qwendesk.store.opening import Store, open_store
from tests.chat.chats_kit import ChatsKit
from tests.store.attachment_files import picture, question
from tests.store.chat_nodes import node


class Kit:
    """A saver on a real store that looks at what grows as often as it can, and its events."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.saver = StoreChatSaver(store, partial_every_s=0.0)
        self.events = []
        self.saver.subscribe(self.events.append)

    async def saved(self, name: str, chat: str = "c") -> str | None:
        """The text of a message as it is on the disk now; None when it is not there."""
        found = (await asyncio.to_thread(self.store.chats.load, chat)).nodes.get(name)
        return None if found is None else found.message.text

    async def until_saved(self, name: str, text: str) -> None:
        while await self.saved(name) != text:  # noqa: ASYNC110 - the disk has no event
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    store, _report = await asyncio.to_thread(open_store, tmp_path)
    kit = Kit(store)
    yield kit
    kit.saver.close()
    await kit.saver.wait_for_writes()
    await asyncio.to_thread(store.close)


def files_with(folder: Path, content: bytes) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and content in content_of(path)]


def content_of(path: Path) -> bytes:
    """The content of a file; nothing of one that was renamed or deleted since it was listed."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


async def test_an_answer_is_saved_as_it_grows(kit: Kit) -> None:
    kit.saver.save("c", node("q1"))
    words = ["Air"]
    kit.saver.save_partial("c", "a1", lambda: node("a1", "q1", text=" ".join(words)))
    await kit.until_saved("a1", "Air")

    words.append("scatters")

    await kit.until_saved("a1", "Air scatters")


async def test_many_pieces_are_saved_once_and_the_final_text_replaces_them(kit: Kit) -> None:
    looked = []

    def current() -> ChatNode:
        looked.append(1)
        return node("a1", "q1", text="so far")

    kit.saver.save("c", node("q1"))
    for _ in range(1000):
        kit.saver.save_partial("c", "a1", current)
    kit.saver.save("c", node("a1", "q1", text="whole"))
    await kit.saver.wait_for_writes()

    assert len(looked) == 1
    assert await kit.saved("a1") == "whole"


async def test_partial_answer_is_saved_twice_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time of a write, less than a second of text can be lost."""
    store, _report = await asyncio.to_thread(open_store, tmp_path)
    saver = StoreChatSaver(store)
    loop, waits = asyncio.get_running_loop(), []
    call_later = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda delay, *rest: (waits.append(delay), call_later(delay, *rest))[1])

    saver.save("c", node("q1"))
    saver.save_partial("c", "a1", lambda: node("a1", "q1"))

    assert waits == [0.5]
    saver.close()
    await saver.wait_for_writes()
    await asyncio.to_thread(store.close)


async def test_incognito_chat_is_never_written(kit: Kit, tmp_path: Path) -> None:
    kit.saver.exclude("secret")
    kit.saver.save("secret", node("q1", text="xyzzy-secret"))
    kit.saver.save_partial("secret", "a1", lambda: node("a1", "q1", text="xyzzy-secret"))
    kit.saver.save("secret", node("a1", "q1", text="xyzzy-secret"))
    kit.saver.show("secret", "q1", "a1")
    kit.saver.save_settings("secret", ChatSettings(system_prompt="xyzzy-secret"))
    kit.saver.delete("secret", "a1")
    await kit.saver.wait_for_writes()

    assert kit.events == []
    assert not files_with(tmp_path, b"xyzzy")


async def test_full_disk_is_reported_once_and_unsaved_messages_are_saved_later(kit: Kit) -> None:
    """SQLite itself refuses to grow the file, as it does on a full disk."""

    def limit(connection) -> None:
        connection.execute("PRAGMA max_page_count = 1")

    def lift(connection) -> None:
        connection.execute("PRAGMA max_page_count = 1000000")

    database = kit.store.chats._database
    await asyncio.wrap_future(database.write(limit))
    kit.saver.save("c", node("q1", text="long " * 20_000))
    await kit.saver.wait_for_writes()
    kit.saver.save("c", node("a1", "q1", text="answer " * 20_000))
    await kit.saver.wait_for_writes()
    assert [type(event) for event in kit.events if not isinstance(event, ChatSaved)] == [SavingFailed]
    assert "disk is full" in kit.events[0].sentence

    await asyncio.wrap_future(database.write(lift))
    kit.saver.save("c", node("q2", "a1", text="after"))
    await kit.saver.wait_for_writes()

    assert SavingWorksAgain() in kit.events
    assert [await kit.saved(name) is not None for name in ("q1", "a1", "q2")] == [True, True, True]


async def test_versions_and_deletions_are_saved_in_order(kit: Kit) -> None:
    for each in (node("q1"), node("a1", "q1"), node("a1b", "q1"), node("q2", "a1b")):
        kit.saver.save("c", each)
    kit.saver.show("c", "q1", "a1")
    kit.saver.delete("c", "a1b")
    await kit.saver.wait_for_writes()

    tree = await asyncio.to_thread(kit.store.chats.load, "c")
    assert [each.id for each in tree.path()] == ["q1", "a1"]
    assert set(tree.nodes) == {"q1", "a1"}


async def test_pictures_are_copied_to_the_attachments(kit: Kit, tmp_path: Path) -> None:
    original = tmp_path / "cat.png"
    await asyncio.to_thread(original.write_bytes, b"bytes of a cat")
    image = ImagePart(str(original), hashlib.sha256(b"bytes of a cat").hexdigest())
    kit.saver.save("c", ChatNode(id="q1", message=Message("user", (image,))))
    await kit.saver.wait_for_copies()
    await kit.saver.wait_for_writes()
    await asyncio.to_thread(original.unlink)

    tree = await asyncio.to_thread(lambda: kit.store.attachments.with_copies(kit.store.chats.load("c")))

    assert files_with(tmp_path, b"bytes of a cat") == [tree.nodes["q1"].message.images[0].path]


@pytest.fixture
def silent_drive(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A network drive that does not answer until the event is set; its files are called `far...`."""
    answers, open_regular = threading.Event(), attachments.open_regular

    def opened(path: Path) -> io.FileIO:
        if path.name.startswith("far"):
            answers.wait()
        return open_regular(path)

    monkeypatch.setattr(attachments, "open_regular", opened)
    yield answers
    answers.set()


async def test_unresponsive_network_drive_delays_neither_other_saves_nor_closing(
    tmp_path: Path, silent_drive: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_saver, "STALLED_S", 0.0)
    far = await asyncio.to_thread(picture, tmp_path / "far.png", b"far away")
    near = await asyncio.to_thread(picture, tmp_path / "near.png", b"at hand")
    kit = await ChatsKit(tmp_path / "data").start()
    await kit.say("one", question(far, "q1"))
    await kit.say("two", question(near, "q2"))
    await kit.chat_list.open("one")
    assert kit.opened.tree.nodes["q1"].message.images == (far,), "shown from where it is"
    while not files_with(tmp_path / "data" / "attachments", b"at hand"):  # noqa: ASYNC110 - the disk has no event
        await asyncio.sleep(0)
    await kit.chat_list.close()

    again = await ChatsKit(tmp_path / "data").start()
    assert set(again.chat_list.chats.summaries) == {"one", "two"}
    await again.chat_list.close()


async def test_picture_is_copied_when_a_slow_drive_responds(
    kit: Kit, tmp_path: Path, silent_drive: threading.Event
) -> None:
    far = await asyncio.to_thread(picture, tmp_path / "far.png", b"far away")
    kit.saver.save("c", question(far))
    await kit.saver.wait_for_writes()
    assert await kit.saved("q1") == "What is this?"
    silent_drive.set()
    await kit.saver.wait_for_copies()
    assert len(files_with(kit.store.folder / "attachments", b"far away")) == 1
