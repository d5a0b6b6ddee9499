"""Dragging rows of the chat list."""

from PySide6.QtCore import Qt

from tests.chat.view.sidebar.chats_desk import ChatsDesk


async def test_chats_are_dragged_into_and_out_of_folders_and_collapsed_folders_stay_collapsed(
    qt_loop: object, chats: ChatsDesk
) -> None:
    await chats.ask("Roses")
    await chats.ask("Steel")
    service = chats.desk.parts.chats.services.chat_list
    folder = service.folders.add("Garden")
    await chats.desk.until(lambda: "Garden" in chats.headings)
    model = chats.view.model()

    def drop(line: str, onto: str) -> None:
        data = model.mimeData([chats.index(line)])
        target = chats.index(onto)
        assert model.canDropMimeData(data, Qt.DropAction.MoveAction, -1, -1, target)
        model.dropMimeData(data, Qt.DropAction.MoveAction, -1, -1, target)

    drop("Roses", "Garden")
    await chats.desk.until(lambda: chats.lines == ["Garden", "Roses", "Today", "Steel"])
    chats.click("Garden")
    await chats.desk.until(lambda: chats.lines == ["Garden", "Today", "Steel"])
    await service.wait_for_writes()
    store = service._store
    assert store is not None
    assert store.chats.remembered("folded_folders") == folder.id
    chats.click("Garden")
    await chats.desk.until(lambda: "Roses" in chats.lines)
    drop("Roses", "Today")
    await chats.desk.until(lambda: chats.lines == ["Garden", "Today", "Steel", "Roses"])
