"""Rows of the list that are dragged."""

from PySide6.QtCore import Qt

from tests.ui.chats.chats_desk import ChatsDesk


async def test_chats_are_dragged_into_a_folder_and_out_and_folded_ones_stay_folded(
    qt_loop: object, chats: ChatsDesk
) -> None:
    await chats.ask("Roses")
    await chats.ask("Steel")
    service = chats.desk.parts.chats.service
    folder = service.add_folder("Garden")
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
    await service.written()
    store = service._store
    assert store is not None
    assert store.chats.remembered("folded_folders") == folder.id
    chats.click("Garden")
    await chats.desk.until(lambda: "Roses" in chats.lines)
    drop("Roses", "Today")
    await chats.desk.until(lambda: chats.lines == ["Garden", "Today", "Steel", "Roses"])
