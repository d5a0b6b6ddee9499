"""An automatic tour of the window: a question with thinking, one that needs a tool, and one about a picture.

Used by `make run` without a display, for the README's screenshot, and in the test of a real window.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QWidget

from qwendesk.chat.chat_state import ChatEvent, TextAdded, TurnEnded
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.core.translation import tr
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.widgets.bind import bind, follow

QUESTION = "What is VRAM spill?"
TOOL, TOOL_QUESTION = "calculate", "What is 128 * 46?"
PICTURE_QUESTION = "What is in this picture?"
_PICTURE_SIDE = 256
_RED, _WHITE = (214, 36, 36), (246, 246, 246)


class DemoTour:
    """Operates the chat page as a user would, and prints the streamed text.

    `run` returns whether all questions were answered.
    """

    def __init__(
        self, page: ChatPage, engine: EngineService, chat: ChatService, write: Callable[[str], None] | None = None
    ) -> None:
        self._page = page
        self._engine = engine
        self._chat = chat
        self._write = write or _to_stdout
        self._changed = asyncio.Event()
        self._kind = ""
        follow(page, chat.subscribe, self._on_chat_event)
        bind(page, engine.observed, lambda _state: self._changed.set())
        page.composer.attachments.changed.connect(self._changed.set)

    async def run(self) -> bool:
        self._write(tr("Loading the built-in demo model. It knows only a few topics: choose a real model for more.\n"))
        await self._until(lambda: self._engine.state.phase is Phase.READY or self._engine.state.failure is not None)
        failure = self._engine.state.failure
        if failure is not None:
            self._write(f"{failure.title}: {failure.sentence}\n" + "\n".join(failure.engine_lines) + "\n")
            return False
        answered = await self._ask(QUESTION)
        self._turn_on(TOOL)
        answered = await self._ask(TOOL_QUESTION) and answered
        self._turn_on()
        # Windows deletes no file that is open, and the picture may just be copied, or be looked at by a virus scanner.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            picture = draw_picture(Path(folder) / "picture.png")
            self._page.attachments.attach(PastedContent(files=(picture,)))
            await self._until(lambda: bool(self._page.composer.attachments.paths))
            return await self._ask(PICTURE_QUESTION) and answered

    def save_screenshot(self, window: QWidget, path: Path) -> None:
        """Save an image of the window to `path`. Raises OSError if the file cannot be written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if not window.grab().save(str(path)):
            raise OSError(f"the screenshot cannot be saved as {path}")

    async def _ask(self, question: str) -> bool:
        """Type a question and send it as a user would. Return True if it was answered without an error."""
        composer = self._page.composer
        asked = tr("{0} (with a picture)", question) if composer.attachments.paths else question
        self._write(f"\n> {asked}\n")
        before = len(self._chat.conversation.turns)
        composer.text.setPlainText(question)
        composer.text.submitted.emit()
        await self._until(lambda: len(self._chat.conversation.turns) > before and not self._chat.busy)
        answer = self._chat.conversation.turns[-1].answer
        self._kind = ""
        self._write(f"\n{answer.error}\n" if answer.error else "\n")
        for record in (record for step in answer.steps for record in step.calls):
            call, came_back = record.call, record.error or record.result
            self._write(tr("Called: {0} {1} → {2}", call.name, call.arguments_json, came_back) + "\n")
        await asyncio.sleep(0.1)  # for the screenshot: Qt needs time to finish the layout of the chat
        return bool(answer.text) and not answer.error

    def _turn_on(self, *tools: str) -> None:
        """Choose these tools, and no others, as in the menu of the message field."""
        self._page.composer.tools.choice.chosen.emit(tools)

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._changed.clear()
            await self._changed.wait()

    def _on_chat_event(self, event: ChatEvent) -> None:
        if isinstance(event, TextAdded):
            self._write_text(event.kind, event.text)
        elif isinstance(event, TurnEnded):
            self._changed.set()

    def _write_text(self, kind: str, text: str) -> None:
        if kind != self._kind:
            heading = tr("Thought:") if kind == "reasoning" else tr("Answer:")
            self._write(("\n" if self._kind else "") + heading + " ")
            self._kind = kind
        self._write(text)


def draw_picture(path: Path) -> Path:
    """Draw a red circle on white, which the demo model can name, save it as PNG, and return `path`."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (_PICTURE_SIDE, _PICTURE_SIDE), _WHITE)
    margin = _PICTURE_SIDE // 7
    ImageDraw.Draw(image).ellipse((margin, margin, _PICTURE_SIDE - margin, _PICTURE_SIDE - margin), fill=_RED)
    image.save(path)
    return path


def _to_stdout(text: str) -> None:
    if sys.stdout is None:
        return  # a Windows program without a console
    sys.stdout.write(text)
    sys.stdout.flush()
