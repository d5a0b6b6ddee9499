"""What the rows of the chat list look like: the open chat, selected chats, and all others."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QToolTip

from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.window_desk import Desk


async def three_chats(desk: Desk, tmp_path: Path) -> ChatsDesk:
    chats = await ChatsDesk(desk, tmp_path / "data").open_file()
    for text in ("One", "Two", "Three"):
        await chats.ask(text)
    return chats


def colours(chats: ChatsDesk) -> dict[str, QColor]:
    """The background of each chat's row, left of its text; of the list itself for ""."""
    image = chats.view.viewport().grab().toImage()
    places = {title: chats.view.visualRect(chats.index(title)) for title in chats.titles}
    found = {title: image.pixelColor(place.left() + 17, place.center().y()) for title, place in places.items()}
    return {"": image.pixelColor(2, image.height() - 2), **found}


def lit(chats: ChatsDesk) -> list[str]:
    """The chats with another background than the list."""
    found = colours(chats)
    return [title for title, colour in found.items() if colour != found[""]]


async def test_only_the_new_chat_is_highlighted_after_a_question(
    qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    chats = await three_chats(desk, tmp_path)
    chats.click("One")
    await desk.until(lambda: chats.questions == ["One"])
    await desk.until(lambda: lit(chats) == ["One"])
    await chats.ask("Four")
    await desk.until(lambda: lit(chats) == ["Four"])


async def test_only_a_title_that_is_cut_is_repeated_in_a_tooltip(
    qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    chats = await three_chats(desk, tmp_path)
    long = "Which of these wide mammoth words will"
    await chats.ask(long)

    def tip(title: str) -> str:
        place = chats.view.visualRect(chats.index(title)).center()
        viewport = chats.view.viewport()
        event = QHelpEvent(QEvent.Type.ToolTip, place, viewport.mapToGlobal(place))
        QToolTip.hideText()
        QApplication.sendEvent(viewport, event)
        return QToolTip.text()

    assert tip("Two") == ""
    assert tip(long) == long


async def test_a_branch_is_named_after_its_chat_and_leads_back_to_it(
    qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    chats = await three_chats(desk, tmp_path)
    said: list[str] = []
    desk.window.chat_page.composer.notice_changed.connect(said.append)
    for name in ("One (branch)", "One (branch 2)"):
        chats.click("One")
        await desk.until(lambda: chats.questions == ["One"] and not desk.is_shown("chat.branchednote"))
        turn = desk.parts.chat.conversation.turns[0].id
        desk.find(f"thread.branch.{turn}", QAbstractButton).click()
        await desk.until(lambda name=name: name in chats.titles and lit(chats) == [name])  # type: ignore[misc]
        assert chats.titles[0] == name, "it is the chat that was changed last"
    assert sum("Branch created" in sentence for sentence in said) == 2
    await desk.until(lambda: "Branched from “One”" in desk.text_of("chat.branchednote"))
    desk.click("chat.branchednote")
    await desk.until(lambda: lit(chats) == ["One"])


async def test_new_branch_is_at_the_top_and_its_original_leads_to_it(
    qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    chats = await three_chats(desk, tmp_path)
    chats.click("One")
    await desk.until(lambda: chats.questions == ["One"])
    original = desk.parts.chat.conversation.turns[0].id
    desk.click(f"thread.branch.{original}")
    await desk.until(lambda: "One (branch)" in chats.titles)
    branch_id = desk.parts.chat.chat_id
    branch = f"thread.branchlink.{branch_id}"
    assert chats.titles[0] == "One (branch)"
    assert not desk.has(branch)
    chats.click("One")
    await desk.until(lambda: desk.is_shown(branch))
    assert "Branch: “One (branch)”" in desk.text_of(branch)
    desk.click(branch)
    await desk.until(lambda: lit(chats) == ["One (branch)"])
    chats.click("One")
    await desk.until(lambda: desk.is_shown(branch))
    desk.parts.chats.services.chat_list.delete((branch_id,))
    await desk.until(lambda: not desk.is_shown(branch))


async def test_a_right_clicked_chat_is_highlighted_while_its_menu_is_open(
    qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    chats = await three_chats(desk, tmp_path)
    menu = chats.menu("One")
    await desk.until(lambda: lit(chats) == ["Three", "One"])
    assert colours(chats)["One"] != colours(chats)["Three"]
    menu.hide()
    await desk.until(lambda: lit(chats) == ["Three"])


async def test_selected_chats_stay_selected_after_their_menu(
    qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    chats = await three_chats(desk, tmp_path)
    chats.click("One", Qt.KeyboardModifier.ControlModifier)
    chats.menu("One").hide()
    await asyncio.sleep(0)  # the menu's signal that it has hidden is queued
    await desk.until(lambda: lit(chats) == ["Three", "One"])


async def test_chat_left_again_at_once_isnt_highlighted(qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path) -> None:
    """The list is drawn less often than chats may be opened: by a link in the chat that was just clicked, for example.

    Then it is drawn with the chat that it showed before as the open one, while the row that was clicked is selected.
    """
    chats = await three_chats(desk, tmp_path)
    await desk.until(lambda: lit(chats) == ["Three"])
    chat_list = desk.parts.chats.services.chat_list
    ids = {each.title: each.id for each in chat_list.state.value.summaries.values()}
    chats.view.setCurrentIndex(chats.index("One"))
    assert lit(chats) == ["Three", "One"]
    chat_list.follow(ids["One"])
    chat_list.follow(ids["Three"])
    await desk.until(lambda: lit(chats) == ["Three"])
