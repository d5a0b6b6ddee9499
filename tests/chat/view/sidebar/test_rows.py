"""The order of the rows in the chat list."""

from datetime import datetime, timedelta

from qwendesk.chat.view.sidebar.chat_model import Heading, rows_of
from qwendesk.core.chats import ChatSummary, Folder

NOW = datetime(2026, 3, 10, 12, 0)


def chat(name: str, hours_ago: float = 0.0, **more) -> ChatSummary:
    changed = NOW - timedelta(hours=hours_ago)
    return ChatSummary(id=name, title=name, changed_s=changed.timestamp(), **more)


def lines(*chats: ChatSummary, folders: tuple[Folder, ...] = (), **more) -> list[str]:
    rows = rows_of(chats, folders, NOW, **more)
    return [f"[{row.text}]" if isinstance(row, Heading) else row.title for row in rows]


def test_chats_are_listed_by_day_newest_first() -> None:
    listed = lines(
        chat("b", 11), chat("a", 1), chat("c", 13), chat("d", 24 * 5), chat("e", 24 * 20), chat("f", 24 * 99)
    )

    assert listed == [
        "[Today]", "a", "b", "[Yesterday]", "c", "[Last 7 days]", "d", "[Last 30 days]", "e", "[Earlier]", "f",
    ]  # fmt: skip


def test_pinned_chats_are_listed_first_and_only_once() -> None:
    assert lines(chat("a"), chat("b", 99, pinned=True)) == ["[Pinned]", "b", "[Today]", "a"]


def test_a_folder_shows_its_chats_unless_it_is_collapsed() -> None:
    folders = (Folder("f", "Work"), Folder("g", "Empty"))
    chats = (chat("a"), chat("b", folder_id="f"), chat("c", folder_id="gone"))

    assert lines(*chats, folders=folders) == ["[Work]", "b", "[Empty]", "[Today]", "a", "c"]
    assert lines(*chats, folders=folders, collapsed=frozenset("f")) == ["[Work]", "[Empty]", "[Today]", "a", "c"]


def test_archived_chats_are_listed_separately() -> None:
    chats = (chat("a"), chat("b", archived=True))

    assert lines(*chats) == ["[Today]", "a"]
    assert lines(*chats, archived=True) == ["[Today]", "b"]
