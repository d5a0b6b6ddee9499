"""A window to look at in every state: a scripted engine on a gaming PC, chats in a store of its own, whole pictures."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image, ImageDraw
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QWidget

from qwendesk.app.meters_part import MeterSource
from qwendesk.app.parts import Parts, build
from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.chats import ChatSettings, ChatSummary
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.units import GIB
from qwendesk.engine.state import Phase
from qwendesk.ui.kit.theme_keeper import ThemeChoice, ThemeKeeper
from qwendesk.ui.thread.highlight import warm_up
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.fakes.gaming_pc import CARD, ENGINE, OPTIONS, REPORT, GamingPc, looking_at, priced
from tools.screenshots.stage import settle, until

Look = tuple[ThemeChoice, int, int]
"""Theme, and the window's size in logical pixels."""
_WORD = re.compile(r"\s*\S+\s*")


class HeldEngine(FakeEngineClient):
    """Stops before the last word of an answer, for ever, while `holds`."""

    def __init__(self) -> None:
        super().__init__(report=REPORT)
        self.pid = ENGINE
        self.devices = (CARD, *self.devices)  # type: ignore[assignment]  # the fake names one device
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
    """The window, and how its pictures are taken."""

    def __init__(self, keeper: ThemeKeeper, folder: Path, looks: Sequence[Look], scale: str) -> None:
        self.keeper, self.folder, self.looks, self.scale = keeper, folder, looks, scale
        self.pc, self.client = GamingPc(), HeldEngine()
        self.pc.engine = self.client
        self.parts: Parts = build(
            self.client,
            keeper,
            decide=lambda options, _devices: options,
            meter_source=MeterSource(looking=looking_at(self.pc), price_of=priced, platform="win32"),
            make_client=FakeEngineClient,
        )
        self.parts.models.offers_service._ram_bytes = lambda: 64 * GIB
        self.window, self.page = self.parts.window, self.parts.window.chat_page
        self.thread = self.page.thread_view
        self.service = self.parts.chats._chats.chat

    async def begin(self, chats: Sequence[tuple[ChatSummary, ChatTree]]) -> None:
        self.window.resize(1280, 800)
        self.window.show()
        self.parts.settings.change({"offline": True})
        self.parts.chats.start()
        await self.parts.chats.opened()
        await self.parts.chats.service.add_as_is(chats)
        await asyncio.to_thread(warm_up)
        await settle()

    async def load(self) -> None:
        self.parts.engine.load(OPTIONS)
        await until(lambda: self.parts.engine.state.phase is not Phase.READY)
        await until(lambda: self.parts.engine.state.phase is Phase.READY)
        for _ in range(3):
            await self.parts.meters.bridge.look()

    def open(self, chat_id: str, tree: ChatTree) -> None:
        """A chat that is in no list."""
        self.service.open(chat_id, tree, ChatSettings(model=OPTIONS.model))

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
        """The window in every look, once `place` has put the reader where he should be."""
        for theme, width, height in self.looks:
            self.keeper.choose(theme)
            self.window.resize(width, height)
            await settle()
            place()
            if not isinstance(self.window.focusWidget(), QPlainTextEdit):
                self.window.setFocus()
            await settle()
            await self.save(f"{name}-{theme}-{width}{self.scale}")
            self.window.resize(1280, 800)

    async def save(self, name: str) -> None:
        """The window and what lies over it."""
        pixels = self.window.grab()
        for each in QApplication.topLevelWidgets():
            if each is not self.window and each.isVisible() and each.window() is each:
                shot = each.grab()
                shot.save(str(self.folder / f"{name}+{each.objectName() or 'popup'}.png"))
        pixels.save(str(self.folder / f"{name}.png"))
        print(f"  {name}.png", flush=True)

    def hover(self, turn_id: int, part: str = "message") -> None:
        widget = self.window.findChild(QWidget, f"thread.{part}.{turn_id}")
        if widget is None:
            raise LookupError(f"thread.{part}.{turn_id}")
        QApplication.sendEvent(widget, QEvent(QEvent.Type.Enter))


def picture(path: Path, kind: str, size: tuple[int, int]) -> ImagePart:
    """A drawn picture file: "plane", "chart" or "tall"."""
    image = Image.new("RGB", size)
    draw = ImageDraw.Draw(image)
    width, height = size
    for y in range(height):
        share = y / height
        color = (120 + int(100 * share), 180 + int(30 * share), 250 - int(150 * share))
        draw.line([(0, y), (width, y)], fill=color)
    if kind == "chart":
        image.paste((250, 250, 250), (0, 0, width, height))
        for n in range(8):
            top = height - (n * 37 % 11 + 2) * height // 14
            draw.rectangle([n * width // 8 + 12, top, (n + 1) * width // 8 - 12, height - 20], fill=(90, 110, 220))
    else:
        draw.polygon([(0, height), (width, height // 2), (width, height)], fill=(190, 150, 90))
        draw.ellipse([width * 0.4, height * 0.3, width * 0.65, height * 0.42], fill=(235, 70, 60))
    image.save(path)
    return ImagePart(str(path), "0" * 64)


def tree(*turns: tuple[Message, Message | None, dict[str, object]], key: str = "n") -> ChatTree:
    """A chat of these questions and answers; the mapping changes the answer's node."""
    nodes: dict[str, ChatNode] = {}
    parent = ""
    for number, (question, answer, changes) in enumerate(turns):
        asked = ChatNode(id=f"{key}q{number}", parent_id=parent, message=question)
        nodes[asked.id] = asked
        parent = asked.id
        if answer is not None:
            made = answered(f"{key}a{number}", parent, answer, **changes)
            nodes[made.id] = made
            parent = made.id
    return ChatTree(nodes)


def answered(id: str, parent: str, answer: Message, **changes: object) -> ChatNode:
    stats = AnswerStats(
        prompt_tokens=1240, reused_tokens=1204, reread_tokens=36, reasoning_tokens=431 if answer.reasoning else 0,
        answer_tokens=880, ttft_s=0.21, prefill_s=0.2, decode_s=11.7,
    )  # fmt: skip
    reason: StopReason = "eos"
    values: dict[str, object] = {
        "id": id, "parent_id": parent, "message": answer, "stop_reason": reason, "stats": stats,
        "thought_s": 6.2 if answer.reasoning else 0.0, "model": "Qwen3.5-35B-A3B", "options_json": "{}",
    }  # fmt: skip
    return ChatNode(**{**values, **changes})  # type: ignore[arg-type]


def says(text: str, reasoning: str = "") -> Message:
    return text_message("assistant", text, reasoning=reasoning)


def asks(text: str, *pictures: ImagePart) -> Message:
    return Message("user", (*pictures, TextPart(text)))
