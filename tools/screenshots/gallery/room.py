"""A window to look at in every state: a scripted engine on a gaming PC, chats in a store of its own, whole pictures."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QPlainTextEdit, QWidget

from qwendesk.app.parts import Parts, build
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatTree
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Allocation
from qwendesk.engine.state import Phase
from qwendesk.meters.services import MeterSource
from qwendesk.services import Doubles
from qwendesk.widgets.actions import ActionId, installed
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.fakes.gaming_pc import CARD, ENGINE, OPTIONS, REPORT, GamingPc, estimated, reader_of
from tools.screenshots.gallery.looks import Look
from tools.screenshots.gallery.made_up_chats import earlier_chats
from tools.screenshots.stage import colours_shown, settle, until

_WORD = re.compile(r"\s*\S+\s*")


class HeldEngine(FakeEngineClient):
    """Never sends the last word of an answer once `holds_after` words are sent; -1 sends all."""

    def __init__(self, *, has_gpu: bool) -> None:
        super().__init__(report=REPORT)
        self.pid = ENGINE
        if has_gpu:
            self.devices = (CARD, *self.devices)
        else:
            self.report = msgspec.structs.replace(REPORT, allocations=(Allocation("CPU", 5 * GIB, GIB),))
        self.holds_after = -1

    async def pause(self, seconds: float, interrupt: asyncio.Event) -> None:
        if self.holds_after == 0:
            self._pauses.add(interrupt)
            await interrupt.wait()
            self._pauses.discard(interrupt)
            return
        self.holds_after -= 1
        await super().pause(seconds, interrupt)


class Room:
    """The window on a gaming PC with 64 GB of RAM, or on a PC with 8 GB and no GPU; and how its pictures are taken."""

    def __init__(self, folder: Path, looks: Sequence[Look], *, has_gpu: bool) -> None:
        self.folder, self.looks = folder, looks
        self.files = Path.home() / "files"
        """Where scenes write what the window reads, in a home folder that is thrown away."""
        self.files.mkdir(exist_ok=True)
        self.pc, self.client = GamingPc(has_card=has_gpu), HeldEngine(has_gpu=has_gpu)
        self.pc.engine, self.bench_client = self.client, FakeBenchClient()
        self.parts: Parts = build(
            self.client,
            decide=decide_by_default,
            doubles=Doubles(
                meters=MeterSource(reader=reader_of(self.pc), estimate_load=estimated, platform="win32"),
                make_client=FakeEngineClient,
                make_bench_client=lambda: self.bench_client,
            ),
        )
        ram_bytes = (64 if has_gpu else 8) * GIB
        self.parts.services.models.offers._ram_bytes = ram_bytes
        self.parts.services.models.first_start._free_bytes = lambda _folder: 500 * GIB
        self.window, self.page = self.parts.window, self.parts.window.chat_page
        self.thread = self.page.thread_view
        self.service = self.parts.chats.services.chat

    async def begin(self) -> None:
        self.window.resize(1280, 800)
        self.window.show()
        self.window.activateWindow()
        self.parts.services.settings.change({"offline": True})
        self.parts.chats.start()
        await self.parts.chats.opened()
        await self.parts.chats.services.chat_list.add_chats(earlier_chats())
        await self.parts.services.models.offers.update()
        await settle()

    async def prepare(self, *, needs_model: bool) -> None:
        """Bring the window to where a scene begins: the chat page, and a model if the scene needs one."""
        self.window.show_page("chat")
        if self.parts.chats.area.is_inspector_wanted:
            self.parts.chats.area.toggle_inspector()
        if needs_model and self.parts.engine.state.phase is not Phase.READY:
            await self.load()

    async def load(self, model: str = OPTIONS.model, mmproj: str = OPTIONS.mmproj) -> None:
        options = msgspec.structs.replace(OPTIONS, model=model, mmproj=mmproj)
        self.parts.tasks.start(self.parts.engine.load(options))
        await until(lambda: self.parts.engine.state.phase is not Phase.READY)
        await until(lambda: self.parts.engine.state.phase is Phase.READY)
        for _ in range(3):
            await self.parts.services.meters.service.sample()

    def open(self, chat_id: str, tree: ChatTree) -> None:
        """Open a chat that is in no list."""
        self.service.open(chat_id, tree, ChatSettings(model=OPTIONS.model))

    async def open_listed(self, number: int) -> None:
        """Open a chat of the list."""
        await self.parts.chats.services.chat_list.open(f"{number:x}" * 32)
        await settle()

    def find(self, name: str) -> QWidget:
        found = self.window.findChild(QWidget, name)
        if found is None:
            raise LookupError(f"nothing in the window is called {name}")
        return found

    def click(self, name: str) -> None:
        button = self.find(name)
        if not isinstance(button, QAbstractButton):
            raise TypeError(f"{name} is no button")
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def do(self, command: ActionId) -> None:
        """Run a command of the window."""
        installed(self.window)[command].trigger()

    def show_sidebar(self) -> None:
        """Show the list of chats, also in a narrow window, where it lies over the chat."""
        self.parts.chats.area.show_sidebar()

    async def ask(self, question: str, answer: ScriptedAnswer, *, held: bool = False) -> None:
        """Ask in the chat that is shown. A held answer never writes its last word."""
        words = len(_WORD.findall(answer.reasoning)) + len(_WORD.findall(answer.text))
        self.client.holds_after = words - 1 if held else -1
        self.client.answers = [answer]
        turns = len(self.parts.chat.conversation.turns)
        self.page.ask(question)
        await until(lambda: len(self.parts.chat.conversation.turns) > turns)
        await until(lambda: self.client.holds_after == 0 if held else not self.parts.chat.busy)
        await settle()

    async def end(self) -> None:
        """Stops an answer that is held."""
        self.client.holds_after = -1
        self.page.stop()
        await until(lambda: not self.parts.chat.busy)

    async def shoot(self, name: str, place: Callable[[], object] = lambda: None) -> None:
        """Take a picture in every look, once `place` has brought the window to what is looked at.

        Popups, dialogs and panels over the page that `place` opens are closed again.
        """
        for look in self.looks:
            look.apply(self.window)
            await settle()
            placing = place()
            if isinstance(placing, Awaitable):
                await placing
            if not isinstance(self.window.focusWidget(), QPlainTextEdit) and not self._popups():
                self.window.setFocus()  # no ring around a control that nobody chose
            await settle()
            await colours_shown(self.window)
            self._picture().save(str(self.folder / f"{name}-{look}.png"))
            print(f"  {name}-{look}.png", flush=True)
            for popup in self._popups():
                popup.close()
            self.parts.chats.area.uncover_page()
            self.window.resize(1280, 800)

    def _popups(self) -> list[QWidget]:
        """Return the other windows on screen, those that were opened last at the end."""
        return [each for each in QApplication.topLevelWidgets() if each is not self.window and each.isVisible()]

    def _picture(self) -> QPixmap:
        """Return the window with what lies over it, as it is on screen."""
        origin = self.window.mapToGlobal(QPoint())
        parts = [(self.window, QPoint()), *((each, each.mapToGlobal(QPoint()) - origin) for each in self._popups())]
        whole = QRect()
        for widget, place in parts:
            whole = whole.united(QRect(place, widget.size()))
        scale = self.window.devicePixelRatioF()
        picture = QPixmap(whole.size() * scale)
        picture.setDevicePixelRatio(scale)
        picture.fill(Qt.GlobalColor.gray)
        painter = QPainter(picture)
        for widget, place in parts:
            painter.drawPixmap(place - whole.topLeft(), widget.grab())
        painter.end()
        return picture

    def hover(self, turn_id: int, part: str = "message") -> None:
        QApplication.sendEvent(self.find(f"thread.{part}.{turn_id}"), QEvent(QEvent.Type.Enter))
