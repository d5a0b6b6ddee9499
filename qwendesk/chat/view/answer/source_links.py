"""Citations in answers as links: the [1] of a place that a search in this chat has found."""

from collections.abc import Awaitable, Callable, Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QWidget

from qwendesk.chat.service import ChatService
from qwendesk.core.citations import Citation, Source, citations_of, mentions
from qwendesk.core.messages import ToolStep
from qwendesk.core.translation import join_list, tr
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme import Theme

# Prefix of links to the place of a citation.
SOURCE = "#source-"


class SourceIntents(QObject):
    """Knows what answers can cite, and has the user's requests to see it."""

    opened = Signal(int, int)
    """Turn id and number: the user wants to see the place with this number."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.place_of: Callable[[int, int], str] = lambda _turn_id, _number: ""
        """Returns what a number means in the answer of a turn, such as "notes.txt, lines 1-9"; "" for nothing."""


class SourceLinks:
    """The citations of one answer. A number that the model made up stays plain text."""

    def __init__(self, turn_id: int, intents: SourceIntents) -> None:
        self._turn_id, self._intents = turn_id, intents

    def write(self, cursor: QTextCursor, text: str, form: QTextCharFormat, theme: Theme) -> None:
        """Insert a text, with citations as links."""
        done = 0
        for start, end, number in mentions(text):
            place = self._intents.place_of(self._turn_id, number)
            if not place:
                continue
            cursor.insertText(text[done:start], form)
            cursor.insertText(text[start:end], _link(form, number, place, theme))
            done = end
        cursor.insertText(text[done:], form)

    def open(self, address: str) -> None:
        """Ask for the place to which a link leads; ignore links of other kinds."""
        if address.startswith(SOURCE):
            self._intents.opened.emit(self._turn_id, int(address.removeprefix(SOURCE)))


def _link(form: QTextCharFormat, number: int, place: str, theme: Theme) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    changed.setAnchor(True)
    changed.setAnchorHref(f"{SOURCE}{number}")
    changed.setToolTip(tr("{0}: click to see it", place))
    changed.setForeground(theme.color("text_link"))
    return changed


# Returns the page that a citation is on as the content of an image file. Raises QwenDeskError.
ReadPage = Callable[[Source], Awaitable[bytes]]
# Returns the text around a citation in a file of these folders.
ReadSource = Callable[[Citation, Sequence[str]], Awaitable[Source]]


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
        return join_list((citation.path, place_text(citation))) if citation is not None else ""

    async def _open(self, turn_id: int, number: int) -> None:
        citation = self._citation(turn_id, number)
        if citation is not None:
            source = await self._read(citation, self._chat.settings.tool_folders)
            # Imported only now, because few answers cite files.
            from qwendesk.chat.view.answer.source_dialog import SourceDialog  # noqa: PLC0415

            SourceDialog(source, self._read_page, self._parent.window()).open()


async def _as_found(citation: Citation, _folders: Sequence[str]) -> Source:
    return Source(citation, citation.found, citation.first, citation.first)


def place_text(citation: Citation) -> str:
    """Return where in its file a citation is, such as "page 3, lines 10-24"."""
    lines = _lines_text(citation)
    match citation.unit:
        case "page":
            return tr("page {0}, {1}", citation.at, lines)
        case "slide":
            return tr("slide {0}, {1}", citation.at, lines)
        case "sheet":
            return tr("sheet {0}, {1}", citation.at, lines)
        case "chapter":
            return tr("chapter {0}, {1}", citation.at, lines)
        case "":
            return lines


def _lines_text(citation: Citation) -> str:
    first, last = citation.first, citation.last
    match citation.lines:
        case "rows":
            return tr("row {0}", first) if first == last else tr("rows {0}-{1}", first, last)
        case "paragraphs":
            return tr("paragraph {0}", first) if first == last else tr("paragraphs {0}-{1}", first, last)
        case _:
            return tr("line {0}", first) if first == last else tr("lines {0}-{1}", first, last)
