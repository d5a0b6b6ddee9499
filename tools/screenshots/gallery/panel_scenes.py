"""What surrounds the thread: the composer, the full context and its sheet, the inspector with its three tabs."""

from functools import partial

import msgspec
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QPlainTextEdit, QPushButton, QToolButton

from qwendesk.core.options import LoadOptions
from qwendesk.engines.view.load_options.options_sheet import OptionsSheet
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.gaming_pc import OPTIONS, REPORT
from tools.hollow_model import write_hollow
from tools.screenshots.gallery import texts
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle, until

_SMALL_CONTEXT = 70


async def composer(room: Room) -> None:
    """A paragraph that was pasted into the empty composer, and then more than it can show."""
    text = room.page.composer.text
    mime = QMimeData()
    mime.setText(texts.MIXED_THOUGHT.replace("\n\n", " "))
    QApplication.clipboard().setMimeData(mime)
    for times in (1, 6):
        text.setFocus()
        for _ in range(times):
            QTest.keyClick(text, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
        await settle()
        await room.shoot("composer-pasted" if times == 1 else "composer-long")
    room.page.composer.clear()
    await room.shoot("composer-styles", lambda: _open_menu(room, "composer.preset"))


async def context(room: Room) -> None:
    """A chat that fills the context, then without its older half; and the sheet of what fills it."""
    room.client.report = msgspec.structs.replace(REPORT, n_ctx=_SMALL_CONTEXT)
    await room.load()
    room.service.new_chat()
    for text in ("One.", "Two."):
        await room.ask("Hi", ScriptedAnswer(text=text))
    await room.ask("Tell me more", ScriptedAnswer(text="word " * 42, stop_reason="context_full"))
    await room.shoot("context-full")
    await room.shoot("context-sheet", lambda: room.do("context"))
    room.click("composer.skip")
    await settle()
    await room.shoot("context-skipped")
    room.client.report = REPORT
    room.service.new_chat()
    await room.load()


async def load_options(room: Room) -> None:
    """The options of a model that isn't loaded; a pasted command in the composer, and the dialog about it."""
    model = write_hollow(room.files / "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", "35b")
    await room.parts.services.pending_load.prepare(LoadOptions(model=str(model)))
    await settle()
    await room.shoot("load-options-unloaded", lambda: room.parts.navigation.inspector_asked.emit("load"))
    mime = QMimeData()
    mime.setText(
        "llama-server -hf unsloth/Qwen3.6-35B-A3B-GGUF:UD-Q4_K_XL -c 65536 --n-cpu-moe 12 -ctk q8_0 -ctv q8_0 "
        "--temp 0.7 -np 4 --host 0.0.0.0"
    )
    room.page.composer.text.insertFromMimeData(mime)
    await settle()
    await room.shoot("composer-command")
    await room.shoot("command", lambda: room.click("composer.pasted.show"))
    room.page.composer.clear()


async def inspector(room: Room) -> None:
    model = write_hollow(room.files / "Qwen3.5-35B-A3B-Q4_K_M.gguf", "35b")
    await room.load(str(model), mmproj="")
    room.service.new_chat()
    await room.shoot("inspector-load", lambda: room.parts.navigation.inspector_asked.emit("load"))
    for query in ("", "kv cache"):
        await room.shoot("options-cache" if query else "options", partial(_search_options, room, query))
    await room.shoot("inspector-sampling", lambda: room.parts.navigation.inspector_asked.emit("sampling"))
    room.click("inspector.sampling.advanced")
    await settle()
    await room.shoot("inspector-sampling-advanced", lambda: room.parts.navigation.inspector_asked.emit("sampling"))
    room.click("inspector.sampling.advanced")
    await room.shoot("inspector-system", lambda: room.parts.navigation.inspector_asked.emit("system"))
    field = room.find("inspector.system.text")
    if isinstance(field, QPlainTextEdit):
        field.setPlainText("You are a patient teacher. Answer in short sentences.")
    await room.shoot("inspector-system-typed", lambda: room.parts.navigation.inspector_asked.emit("system"))
    await room.load(OPTIONS.model)
    room.service.new_chat()


async def _search_options(room: Room, query: str) -> None:
    """Open the sheet with all load options, which makes its rows in short steps, and search it."""
    room.parts.navigation.inspector_asked.emit("load")
    room.parts.chats.load_tab.page().show_options()
    await until(lambda: all(sheet.is_complete for sheet in room.window.findChildren(OptionsSheet)))
    field = room.find("options.search")
    if isinstance(field, QLineEdit):
        field.setText(query)


def _open_menu(room: Room, name: str) -> None:
    """Open the menu of a button; a click would wait until it is closed."""
    button = room.find(name)
    menu: QMenu | None = button.menu() if isinstance(button, QPushButton | QToolButton) else None
    if menu is None:
        raise LookupError(f"{name} has no menu")
    menu.popup(button.mapToGlobal(button.rect().bottomLeft()))
