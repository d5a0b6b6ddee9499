"""The pages and windows around the chat: engine, settings, help, menus, palette, shortcuts, questions."""

from functools import partial

from PySide6.QtWidgets import QLineEdit

from qwendesk.engines.view.engines_presenter import ask_when
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle


async def engine(room: Room) -> None:
    room.window.show_page("engine")
    await room.shoot(f"engine{'' if room.pc.has_card else '-no-gpu'}")


async def settings(room: Room) -> None:
    room.window.show_page("settings")
    await room.shoot("settings")
    for part in ("folders", "privacy"):
        await room.shoot(f"settings-{part}", partial(room.parts.navigation.settings_asked.emit, part))
    search = room.window.findChild(QLineEdit, "settings.search")
    if search is None:
        raise LookupError("settings.search")
    search.setText("language")
    await settle()
    await room.shoot("settings-search")
    search.clear()


async def menus(room: Room) -> None:
    """The menus and popups that belong to no page."""
    await room.open_listed(0)
    await room.shoot("menu", lambda: room.do("menu"))
    await room.shoot("palette", lambda: room.do("palette"))

    def search(text: str) -> None:
        room.do("palette")
        for field in room.window.findChildren(QLineEdit, "palette.query"):
            field.setText(text)

    await room.shoot("palette-search", lambda: search("the"))
    await room.shoot("palette-nothing", lambda: search("zebra"))
    await room.shoot("shortcuts", lambda: room.do("shortcuts"))
    await room.shoot("theme-menu", lambda: room.click("rail.theme"))
    await room.shoot("meter-history", lambda: room.click("meter.memory"))


async def help_window(room: Room) -> None:
    await room.shoot("help", lambda: room.do("guide"))


async def questions(room: Room) -> None:
    """Dialogs with one question."""
    await room.shoot("question-when", lambda: ask_when(room.window, lambda _answer: None))
    room.parts.navigation.settings_asked.emit("privacy")
    await settle()
    await room.shoot("question-delete-all", lambda: room.click("settings.privacy.delete"))


async def spill(room: Room) -> None:
    """A game takes video memory, and the model spills."""
    room.pc.game = 3 << 30
    await room.open_listed(0)
    for _ in range(4):
        await room.parts.services.meters.service.sample()
    await room.shoot("spill")
    room.pc.game = 0
    for _ in range(4):
        await room.parts.services.meters.service.sample()


async def two_gpus(room: Room) -> None:
    """A second card of the same kind: each has its own bar."""
    room.pc.has_second_card = True
    await room.open_listed(0)
    await room.parts.services.meters.service.sample()
    await room.shoot("two-gpus")
    room.pc.has_second_card = False
    await room.parts.services.meters.service.sample()
