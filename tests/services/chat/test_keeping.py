"""A chat is on the disk while it goes on, whatever the disk does."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ImagePart, Message
from qwendesk.services.chat.keeping import Kept, KeptAgain, NotKept, StoreKeeper
from qwendesk.store.opening import Store, open_store
from tests.store.chat_nodes import node

pytestmark = pytest.mark.asyncio


class Kit:
    """A keeper on a real store that looks at what grows as often as it can, and its news."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keeper = StoreKeeper(store, growing_every_s=0.0)
        self.news = []
        self.keeper.subscribe(self.news.append)

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
    kit.keeper.close()
    await kit.keeper.settled()
    await asyncio.to_thread(store.close)


def files_with(folder: Path, content: bytes) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and content in path.read_bytes()]


async def test_an_answer_is_saved_as_it_grows(kit: Kit) -> None:
    kit.keeper.save("c", node("q1"))
    words = ["Air"]
    kit.keeper.grow("c", "a1", lambda: node("a1", "q1", text=" ".join(words)))
    await kit.until_saved("a1", "Air")

    words.append("scatters")

    await kit.until_saved("a1", "Air scatters")


async def test_pieces_cost_nothing_and_the_end_is_what_stays(kit: Kit) -> None:
    looked = []

    def current() -> ChatNode:
        looked.append(1)
        return node("a1", "q1", text="so far")

    kit.keeper.save("c", node("q1"))
    for _ in range(1000):
        kit.keeper.grow("c", "a1", current)
    kit.keeper.save("c", node("a1", "q1", text="whole"))
    await kit.keeper.settled()

    assert len(looked) == 1
    assert await kit.saved("a1") == "whole"


async def test_what_grows_is_saved_twice_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time of a write, less than a second of text can be lost."""
    store, _report = await asyncio.to_thread(open_store, tmp_path)
    keeper = StoreKeeper(store)
    loop, waits = asyncio.get_running_loop(), []
    call_later = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda delay, *rest: (waits.append(delay), call_later(delay, *rest))[1])

    keeper.save("c", node("q1"))
    keeper.grow("c", "a1", lambda: node("a1", "q1"))

    assert waits == [0.5]
    keeper.close()
    await keeper.settled()
    await asyncio.to_thread(store.close)


async def test_incognito_is_never_written(kit: Kit, tmp_path: Path) -> None:
    kit.keeper.leave_out("secret")
    kit.keeper.save("secret", node("q1", text="xyzzy-secret"))
    kit.keeper.grow("secret", "a1", lambda: node("a1", "q1", text="xyzzy-secret"))
    kit.keeper.save("secret", node("a1", "q1", text="xyzzy-secret"))
    kit.keeper.show("secret", "q1", "a1")
    kit.keeper.save_settings("secret", ChatSettings(system_prompt="xyzzy-secret"))
    kit.keeper.delete("secret", "a1")
    await kit.keeper.settled()

    assert kit.news == []
    assert not files_with(tmp_path, b"xyzzy")


async def test_a_full_disk_is_told_once_and_what_waited_is_saved_later(kit: Kit) -> None:
    """SQLite itself refuses to grow the file, as it does on a full disk."""

    def limit(connection) -> None:
        connection.execute("PRAGMA max_page_count = 1")

    def lift(connection) -> None:
        connection.execute("PRAGMA max_page_count = 1000000")

    database = kit.store.chats._database
    await asyncio.wrap_future(database.write(limit))
    kit.keeper.save("c", node("q1", text="long " * 20_000))
    await kit.keeper.settled()
    kit.keeper.save("c", node("a1", "q1", text="answer " * 20_000))
    await kit.keeper.settled()
    assert [type(news) for news in kit.news if not isinstance(news, Kept)] == [NotKept]
    assert "disk is full" in kit.news[0].sentence

    await asyncio.wrap_future(database.write(lift))
    kit.keeper.save("c", node("q2", "a1", text="after"))
    await kit.keeper.settled()

    assert KeptAgain() in kit.news
    assert [await kit.saved(name) is not None for name in ("q1", "a1", "q2")] == [True, True, True]


async def test_versions_and_deletions_are_kept_in_order(kit: Kit) -> None:
    for each in (node("q1"), node("a1", "q1"), node("a1b", "q1"), node("q2", "a1b")):
        kit.keeper.save("c", each)
    kit.keeper.show("c", "q1", "a1")
    kit.keeper.delete("c", "a1b")
    await kit.keeper.settled()

    tree = await asyncio.to_thread(kit.store.chats.load, "c")
    assert [each.id for each in tree.path()] == ["q1", "a1"]
    assert set(tree.nodes) == {"q1", "a1"}


async def test_pictures_are_kept_with_their_question(kit: Kit, tmp_path: Path) -> None:
    original = tmp_path / "cat.png"
    await asyncio.to_thread(original.write_bytes, b"bytes of a cat")
    image = ImagePart(str(original), hashlib.sha256(b"bytes of a cat").hexdigest())
    kit.keeper.save("c", ChatNode(id="q1", message=Message("user", (image,))))
    await kit.keeper.settled()
    await asyncio.to_thread(original.unlink)

    tree = await asyncio.to_thread(lambda: kit.store.attachments.in_place(kit.store.chats.load("c")))

    assert files_with(tmp_path, b"bytes of a cat") == [tree.nodes["q1"].message.images[0].path]
