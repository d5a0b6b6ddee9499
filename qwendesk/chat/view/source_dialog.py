"""The dialog that shows what a citation stands for: its file around the place, with the cited lines marked."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.chat.citation_texts import place_text
from qwendesk.chat.view.numbered_text import NumberedText
from qwendesk.chat.view.page_view import PageView
from qwendesk.core.citations import Source
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks

_WIDTH, _HEIGHT = 760, 620
ReadPage = Callable[[Source], Awaitable[bytes]]
"""Returns the page that a citation is on as the content of an image file. Raises QwenDeskError."""


class SourceDialog(Dialog):
    """Closes with Esc, and deletes itself."""

    def __init__(self, source: Source, read_page: ReadPage | None, parent: QWidget) -> None:
        super().__init__(parent)
        self._source, self._read_page, self._tasks = source, read_page, window_tasks()
        self._page: PageView | None = None
        citation = source.citation
        self.setObjectName("source")
        self.setWindowTitle(tr("Source [{0}]", citation.number))
        self.setAccessibleName(self.windowTitle())
        self.setModal(True)
        self.resize(min(_WIDTH, parent.width() - 40), min(_HEIGHT, parent.height() - 40))
        place = place_text(citation) + (f" ({source.part})" if source.part else "")
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(6)
        column.addWidget(_label("source.file", citation.path, "heading"))
        column.addWidget(_label("source.place", place, "dim"))
        if note := _note(source):
            column.addWidget(_label("source.note", note, "small"))
        column.addSpacing(6)
        n_cited = len(citation.found)
        last = source.cited + n_cited - 1 if source.cited else 0
        self.text = NumberedText(
            source.lines, source.first, source.cited, last, is_code=citation.lines == "lines" and not citation.unit
        )
        self.text.setObjectName("source.text")
        self.text.setAccessibleName(tr("Text of {0}", citation.path))
        self._middle = QStackedWidget()
        self._middle.addWidget(self.text)
        column.addWidget(self._middle, 1)
        column.addSpacing(6)
        column.addLayout(self._buttons())
        self.finished.connect(self.deleteLater)

    async def _show_other(self) -> None:
        """Show the drawn page instead of its text, or the other way round."""
        if self._page is None:
            assert self._read_page is not None
            self._switch.setEnabled(False)
            try:
                content = await self._read_page(self._source)
            except QwenDeskError:
                self._allow_switching()
                raise
            self._allow_switching()
            self._page = PageView(content)
            self._middle.addWidget(self._page)
        shows_text = self._middle.currentWidget() is self.text
        self._middle.setCurrentWidget(self._page if shows_text else self.text)
        self._switch.setText(tr("Show text") if shows_text else tr("Show page"))

    def _allow_switching(self) -> None:
        self._switch.setEnabled(True)
        self._switch.setFocus()  # it lost the focus when it was disabled

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        file = Path(self._source.file)
        if self._source.has_page and self._read_page is not None:
            self._switch = TextButton(tr("Show page"))
            describe(self._switch, "source.page", tr("Show page"), tr("Show the page as it looks, or its text"))
            self._switch.clicked.connect(lambda: self._tasks.start(self._show_other(), self))
            row.addWidget(self._switch)
        if self._source.is_document:
            document = TextButton(tr("Open document"))
            describe(document, "source.open", tr("Open document"), tr("Open the file in the program for its kind"))
            document.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(file))))
            row.addWidget(document)
        if self._source.file:
            folder = TextButton(tr("Show in folder"))
            describe(folder, "source.folder", tr("Show in folder"), str(file))
            folder.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(file.parent))))
            row.addWidget(folder)
        close = TextButton(tr("Close"), kind="primary")
        describe(close, "source.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.reject)
        row.addStretch(1)
        row.addWidget(close)
        return row


def _note(source: Source) -> str:
    """Return why the file is not shown as the search found it; "" if it is."""
    if source.obstacle:
        return f"{source.obstacle} {tr('This is what the search found.')}"
    if not source.cited:
        return tr("The file has changed since: the lines that the search found are no longer in it.")
    if source.cited != source.citation.first:
        return tr("The file has changed since: the lines are in another place now.")
    return ""


def _label(name: str, text: str, kind: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label
