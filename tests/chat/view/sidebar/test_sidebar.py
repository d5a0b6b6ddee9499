"""The sidebar on a real chats file."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import SIGNAL, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QMenu, QWidget

from qwendesk.core.chats import ChatSummary
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

_CONTROL = Qt.KeyboardModifier.ControlModifier


async def test_a_chat_joins_the_list_and_opens_again_with_a_click(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("First question")
    await chats.ask("Second question")
    assert chats.titles == ["Second question", "First question"]
    assert chats.headings == ["Today"]

    chats.click("First question")
    await chats.desk.until(lambda: chats.questions == ["First question"])

    assert chats.desk.parts.chat.conversation.turns[0].answer.text == "About First question"


async def test_the_keyboard_opens_renames_and_deletes_and_undo_restores(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("One")
    await chats.ask("Two")
    chats.view.setFocus()
    chats.view.setCurrentIndex(chats.index("One"))

    QTest.keyClick(chats.view, Qt.Key.Key_F2)
    editor = chats.desk.find("chats.rename", QLineEdit)
    editor.setText("Renamed")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await chats.desk.until(lambda: "Renamed" in chats.titles)
    assert chats.questions == ["Two"]  # Enter took the name, and opened nothing
    await chats.desk.until(chats.view.hasFocus)

    QTest.keyClick(chats.view, Qt.Key.Key_Return)
    await chats.desk.until(lambda: chats.questions == ["One"])

    QTest.keyClick(chats.view, Qt.Key.Key_Delete)
    await chats.desk.until(lambda: chats.titles == ["Two"])
    assert chats.questions == []
    assert "Renamed" in chats.desk.find("chats.toast", QWidget).findChild(QLabel).text()

    chats.desk.click("chats.undo")
    await chats.desk.until(lambda: "Renamed" in chats.titles)
    assert not chats.desk.is_shown("chats.toast")


async def test_a_folder_is_made_without_a_chat_and_can_be_named_at_once(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("One")
    chats.desk.click("chats.more")
    menu = chats.desk.find("chats.more_menu", QMenu)
    next(each for each in menu.actions() if each.objectName() == "chats.more.folder").trigger()
    menu.close()
    await chats.desk.until(lambda: chats.desk.has("chats.rename"))
    editor = chats.desk.find("chats.rename", QLineEdit)
    assert editor.text() == "New folder"
    editor.setText("Work")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await chats.desk.until(lambda: "Work" in chats.headings)


async def test_an_import_that_succeeds_takes_away_the_error_of_the_one_before(
    qt_loop: object, chats: ChatsDesk, tmp_path: Path
) -> None:
    desk, transfer = chats.desk, chats.desk.parts.chats.transfer
    (tmp_path / "bad.json").write_text("{}")
    await transfer._import([tmp_path / "bad.json"])
    assert desk.text_of("banner.title") == "Chats not imported"
    await chats.ask("One")
    await transfer._export(tmp_path / "good.json", "json", ())
    assert not desk.is_shown("banner")
    desk.window.report("The engine crashed", "Restart it.")
    await transfer._import([tmp_path / "good.json"])
    assert desk.text_of("banner.title") == "The engine crashed"
    assert desk.is_shown("banner"), "which has nothing to do with chats"


async def test_escape_cancels_renaming(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("One")
    chats.view.setCurrentIndex(chats.index("One"))
    QTest.keyClick(chats.view, Qt.Key.Key_F2)
    editor = chats.desk.find("chats.rename", QLineEdit)
    editor.setText("Other")

    QTest.keyClick(editor, Qt.Key.Key_Escape)

    assert chats.lines == ["Today", "One"]


async def test_the_menu_pins_archives_and_moves(qt_loop: object, chats: ChatsDesk) -> None:
    for each in ("One", "Two", "Three"):
        await chats.ask(each)

    chats.choose("One", "pin")
    await chats.desk.until(lambda: chats.headings == ["Pinned", "Today"])
    assert chats.titles[0] == "One"

    chats.choose("Two", "folder.new")
    await chats.desk.until(lambda: chats.desk.has("chats.rename"))
    assert "New folder" in chats.headings
    editor = chats.desk.find("chats.rename", QLineEdit)
    editor.setText("Work")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await chats.desk.until(lambda: "Work" in chats.headings)
    assert chats.lines == ["Pinned", "One", "Work", "Two", "Today", "Three"]

    chats.click("Work")
    await chats.desk.until(lambda: "Two" not in chats.titles)
    chats.click("Work")

    chats.choose("Three", "archive")
    await chats.desk.until(lambda: "Three" not in chats.titles)
    chats.desk.parts.chats.sidebar.show_archive(on=True)
    assert chats.titles == ["Three"]
    chats.desk.click("chats.back")
    assert chats.titles == ["One", "Two"]


async def test_several_chats_are_deleted_at_once(qt_loop: object, chats: ChatsDesk) -> None:
    for each in ("One", "Two", "Three"):
        await chats.ask(each)
    chats.view.setCurrentIndex(chats.index("One"))
    chats.click("Two", _CONTROL)

    QTest.keyClick(chats.view, Qt.Key.Key_Delete)
    await chats.desk.until(lambda: chats.titles == ["Three"])

    assert "2 chats" in chats.desk.find("chats.toast", QWidget).findChild(QLabel).text()


async def test_search_shows_snippets_and_opens_the_message(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("needles in haystacks")
    await chats.ask("nothing")

    hits = await chats.search("needles")
    spoken = [hits.model().index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(3)]
    assert [each.split(". ")[1] for each in spoken] == ["Title", "Answer", "Question"]
    hits.setCurrentIndex(hits.model().index(1, 0))
    QTest.keyClick(hits, Qt.Key.Key_Return)
    await chats.desk.until(lambda: chats.questions == ["needles in haystacks"])

    field = chats.desk.find("chats.search", QLineEdit)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == ""
    assert chats.view.isVisible()


async def test_searches_leave_no_connections_behind(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("needles")
    sidebar = chats.desk.parts.chats.sidebar
    before = sidebar.receivers(SIGNAL("destroyed(QObject*)"))
    found: list[None] = []
    chats.desk.find("chats.hits", QListView).model().modelReset.connect(lambda: found.append(None))

    for length in range(1, 8):
        chats.desk.find("chats.search", QLineEdit).setText("needles"[:length])
        await chats.desk.until(lambda length=length: len(found) >= length)

    assert sidebar.receivers(SIGNAL("destroyed(QObject*)")) <= before + 1, "one for the search that ends just now"


async def test_search_without_results_is_reported(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("One")
    chats.desk.find("chats.search", QLineEdit).setText("zebra")

    await chats.desk.until(lambda: chats.desk.is_shown("chats.empty"))

    assert "No results" in chats.desk.text_of("chats.empty")


async def test_empty_list_shows_a_hint(qt_loop: object, chats: ChatsDesk) -> None:
    assert "will appear here" in chats.desk.text_of("chats.empty")


async def test_the_next_start_shows_the_last_chat_and_its_draft(
    chats: ChatsDesk, qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]
) -> None:
    await chats.ask("One")
    await chats.ask("Two")
    chats.click("One")
    await chats.desk.until(lambda: chats.questions == ["One"])
    chats.desk.type("half a ques")
    await chats.desk.parts.chats.services.chat_list.wait_for_writes()

    other = await ChatsDesk(make_desk(), chats.folder).open_file()
    await other.desk.until(lambda: other.questions == ["One"])

    assert other.desk.composer_text.toPlainText() == "half a ques"


async def test_a_draft_belongs_to_its_chat(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("One")
    chats.desk.type("about one")
    chats.desk.click("chats.new")
    assert chats.desk.composer_text.toPlainText() == ""
    chats.desk.type("something new")

    chats.click("One")
    await chats.desk.until(lambda: chats.desk.composer_text.toPlainText() == "about one")
    chats.desk.press(Qt.Key.Key_N, _CONTROL)

    await chats.desk.until(lambda: chats.desk.composer_text.toPlainText() == "something new")


async def test_incognito_chat_is_not_listed(qt_loop: object, chats: ChatsDesk) -> None:
    await chats.ask("One")
    chats.desk.parts.chats.services.chat_list.new(incognito=True)
    chats.desk.client.answers.append(ScriptedAnswer(text="Yes."))
    await chats.desk.ask("Secret")
    await chats.desk.parts.chats.services.chat_list.wait_for_writes()

    assert chats.titles == ["One"]
    assert "Nothing is saved" in chats.desk.text_of("chats.incognito")
    await chats.desk.until(lambda: chats.desk.is_shown("chats.incognito"))
    assert chats.desk.is_shown("chat.incognito"), "the list of chats may be hidden"
    chats.click("One")
    await chats.desk.until(lambda: not chats.desk.is_shown("chats.incognito"))
    assert not chats.desk.is_shown("chat.incognito")


async def test_the_sidebar_is_hidden_in_a_narrow_window_and_covers_the_page_when_opened(
    qt_loop: object, chats: ChatsDesk
) -> None:
    desk = chats.desk
    assert desk.is_shown("chats")
    desk.press(Qt.Key.Key_B, _CONTROL)
    assert not desk.is_shown("chats")
    desk.click("chats.toggle")
    assert desk.is_shown("chats")

    desk.window.resize(860, 700)
    await desk.until(lambda: not desk.is_shown("chats"))
    page, room = desk.window.chat_page, desk.window.chat_area
    await desk.until(lambda: page.width() == room.width())
    desk.press(Qt.Key.Key_K, _CONTROL)
    assert desk.is_shown("chats")
    await desk.until(lambda: page.width() == room.width())
    desk.click("chats.new")
    assert not desk.is_shown("chats")

    desk.window.resize(1280, 800)
    await desk.until(lambda: desk.is_shown("chats"))


async def test_ten_thousand_chats_need_no_widgets(qt_loop: object, chats: ChatsDesk) -> None:
    service = chats.desk.parts.chats.services.chat_list
    before = len(chats.desk.parts.chats.sidebar.findChildren(QWidget))
    service.chats.add(ChatSummary(id=f"{n:032x}", title=f"Chat {n}", changed_s=float(n)) for n in range(10_000))

    await chats.desk.until(lambda: len(chats.titles) == 10_000)
    assert len(chats.desk.parts.chats.sidebar.findChildren(QWidget)) == before
    chats.view.verticalScrollBar().setValue(chats.view.verticalScrollBar().maximum())
    assert chats.view.indexAt(chats.view.viewport().rect().center()).isValid()


async def test_tour_adds_no_chat(qt_loop: object, make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    desk = make_desk()
    desk.parts.chats.services.chat_list.new(incognito=True)
    chats = await ChatsDesk(desk, tmp_path).open_file()
    await desk.load_demo()
    desk.client.answers.append(ScriptedAnswer(text="Yes."))
    await desk.ask("Tour")
    await desk.parts.chats.services.chat_list.wait_for_writes()

    assert chats.titles == []


async def test_the_model_of_a_chat_is_offered_and_loaded_only_when_asked(
    qt_loop: object, chats: ChatsDesk, tmp_path: Path
) -> None:
    await chats.ask("Old")
    await chats.ask("New")
    other = tmp_path / "Other-Q8_0.gguf"
    other.write_bytes(b"GGUF")
    store = chats.desk.parts.chats.services.chat_list._store
    assert store is not None
    old = next(row for row in chats.desk.parts.chats.services.chat_list.chats.summaries.values() if row.title == "Old")
    await asyncio.wrap_future(
        store.chats.save_settings(old.id, msgspec.structs.replace(old.settings, model=str(other)))
    )
    loaded = chats.desk.parts.engine.state.requested
    chats.click("Old")
    await chats.desk.until(lambda: chats.desk.is_shown("modeloffer"))
    assert "Other-Q8_0" in chats.desk.text_of("modeloffer.title")
    assert chats.desk.parts.engine.state.requested == loaded, "nothing is loaded unasked"
    chats.click("New")
    await chats.desk.until(lambda: not chats.desk.is_shown("modeloffer"))
    chats.click("Old")
    await chats.desk.until(lambda: chats.desk.is_shown("modeloffer"))
    chats.desk.click("modeloffer.load")
    wanted = chats.desk.parts.engine
    await chats.desk.until(lambda: wanted.state.requested is not None and wanted.state.requested.model == str(other))
    assert not chats.desk.is_shown("modeloffer")
