"""A tour of the window without hands: one question with thinking, then one about a picture, as a person would ask.

For `make run` without a display, for the README's screenshot, and for the test of a real window.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw
from PySide6.QtWidgets import QWidget

from qwendesk.engine.state import Phase
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.chat.chat_page import ChatPage
from qwendesk.ui.composer.intake import Intake
from qwendesk.ui.kit.text import tr

QUESTION = "What is VRAM spill?"
PICTURE_QUESTION = "What is in this picture?"
_PICTURE_SIDE = 256
_RED, _WHITE = (214, 36, 36), (246, 246, 246)


class DemoTour:
    """Drives the chat page and prints what streams. `run` says whether both questions were answered."""

    def __init__(
        self, page: ChatPage, engine: EngineBridge, chat: ChatBridge, write: Callable[[str], None] | None = None
    ) -> None:
        self._page = page
        self._engine = engine
        self._chat = chat
        self._write = write or _to_stdout
        self._changed = asyncio.Event()
        self._kind = ""
        chat.wrote.connect(self._on_wrote)
        for signal in (engine.changed, chat.turn_ended, page.composer.attachments.changed):
            signal.connect(self._changed.set)

    async def run(self) -> bool:
        self._write(tr("Loading the built-in demo model. It knows only a few topics: choose a real model for more.\n"))
        await self._until(lambda: self._engine.state.phase is Phase.READY or self._engine.state.failure is not None)
        failure = self._engine.state.failure
        if failure is not None:
            self._write(f"{failure.title}: {failure.sentence}\n" + "\n".join(failure.engine_lines) + "\n")
            return False
        answered = await self._ask(QUESTION)
        with tempfile.TemporaryDirectory() as folder:
            picture = draw_picture(Path(folder) / "picture.png")
            self._page.take(Intake(files=(picture,)))
            await self._until(lambda: bool(self._page.composer.attachments.paths))
            return await self._ask(PICTURE_QUESTION) and answered

    def save_screenshot(self, window: QWidget, path: Path) -> None:
        """The window as it is now. Raises OSError when the file cannot be written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if not window.grab().save(str(path)):
            raise OSError(f"the screenshot cannot be saved as {path}")

    async def _ask(self, question: str) -> bool:
        """Type and send as a person does. True when an answer came without an error."""
        composer = self._page.composer
        pictures = tr(" (with a picture)") if composer.attachments.paths else ""
        self._write(f"\n> {question}{pictures}\n")
        before = len(self._chat.conversation.turns)
        composer.text.setPlainText(question)
        composer.text.submitted.emit()
        await self._until(lambda: len(self._chat.conversation.turns) > before and not self._chat.busy)
        answer = self._chat.conversation.turns[-1].answer
        self._kind = ""
        self._write(f"\n{answer.error}\n" if answer.error else "\n")
        await asyncio.sleep(0.1)  # the thread's layout settles in Qt's own time, for the screenshot
        return bool(answer.text) and not answer.error

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._changed.clear()
            await self._changed.wait()

    def _on_wrote(self, _turn_id: int, kind: str, text: str) -> None:
        if kind != self._kind:
            heading = tr("Thought: ") if kind == "reasoning" else tr("Answer: ")
            self._write(("\n" if self._kind else "") + heading)
            self._kind = kind
        self._write(text)


def draw_picture(path: Path) -> Path:
    """A red circle on white, saved as PNG: a picture that the demo can name."""
    image = Image.new("RGB", (_PICTURE_SIDE, _PICTURE_SIDE), _WHITE)
    margin = _PICTURE_SIDE // 7
    ImageDraw.Draw(image).ellipse((margin, margin, _PICTURE_SIDE - margin, _PICTURE_SIDE - margin), fill=_RED)
    image.save(path)
    return path


def _to_stdout(text: str) -> None:
    if sys.stdout is None:
        return  # a program of Windows without a console
    sys.stdout.write(text)
    sys.stdout.flush()
