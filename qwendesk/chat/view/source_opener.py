"""Tells the thread what its citations stand for, and shows the place when the user clicks one."""

from collections.abc import Awaitable, Callable, Sequence

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from qwendesk.chat.citation_texts import place_text
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.source_dialog import ReadPage, SourceDialog
from qwendesk.chat.view.thread.source_links import SourceIntents
from qwendesk.core.citations import Citation, Source, citations_of
from qwendesk.core.messages import ToolStep
from qwendesk.widgets.tasks import window_tasks

ReadSource = Callable[[Citation, Sequence[str]], Awaitable[Source]]
"""Returns the text around a citation in a file of these folders."""


class SourceOpener(QObject):
    """Without `set_reader`, what the search found is shown instead of the file."""

    def __init__(self, intents: SourceIntents, chat: ChatService, parent: QWidget) -> None:
        super().__init__(intents)
        self._chat, self._parent, self._tasks = chat, parent, window_tasks()
        self._read: ReadSource = _as_found
        self._read_page: ReadPage | None = None
        intents.place_of = self._place_of
        intents.opened.connect(lambda turn_id, number: self._tasks.start(self._open(turn_id, number), self))

    def set_reader(self, read: ReadSource, read_page: ReadPage) -> None:
        self._read, self._read_page = read, read_page

    def _citation(self, turn_id: int, number: int) -> Citation | None:
        """Return what a number means in an answer: a place that was found in it or before it."""
        steps: list[ToolStep] = []
        for turn in self._chat.conversation.turns:
            steps += turn.answer.steps
            if turn.id == turn_id:
                break
        return citations_of(steps).get(number)

    def _place_of(self, turn_id: int, number: int) -> str:
        citation = self._citation(turn_id, number)
        return f"{citation.path}, {place_text(citation)}" if citation is not None else ""

    async def _open(self, turn_id: int, number: int) -> None:
        citation = self._citation(turn_id, number)
        if citation is not None:
            source = await self._read(citation, self._chat.settings.tool_folders)
            SourceDialog(source, self._read_page, self._parent.window()).open()


async def _as_found(citation: Citation, _folders: Sequence[str]) -> Source:
    return Source(citation, citation.found, citation.first, citation.first)
