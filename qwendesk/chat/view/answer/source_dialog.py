"""Citations: tells the thread what they stand for, and shows the place in its file when the user clicks one."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QRect, QSize, Qt, QTimer, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QShowEvent,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QScrollArea,
    QStackedWidget,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from qwendesk.chat.view.answer.source_links import ReadPage, place_text
from qwendesk.core.citations import Source
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import join_sentences, tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import paragraph
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_WIDTH, _HEIGHT = 760, 620


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
        column.addWidget(paragraph(citation.path, "heading", name="source.file"))
        column.addWidget(paragraph(place, "dim", name="source.place"))
        if note := _note(source):
            column.addWidget(paragraph(note, "small", name="source.note"))
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
        return join_sentences(source.obstacle, tr("This is what the search found."))
    if not source.cited:
        return tr("The file has changed since: the lines that the search found are no longer in it.")
    if source.cited != source.citation.first:
        return tr("The file has changed since: the lines are in another place now.")
    return ""


class PageView(QScrollArea):
    def __init__(self, content: bytes) -> None:
        """`content` is that of an image file."""
        super().__init__()
        self._pixmap = QPixmap()
        self._pixmap.loadFromData(content)
        self._label = QLabel()
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._label.setObjectName("source.picture.page")
        self.setObjectName("source.picture")
        self.setAccessibleName(tr("Page"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)
        self.setWidget(self._label)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        ratio = self.devicePixelRatioF()
        width = min(round(self.viewport().width() * ratio), self._pixmap.width())
        if width > 0:
            drawn = self._pixmap.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
            drawn.setDevicePixelRatio(ratio)
            self._label.setPixmap(drawn)


# Pixels on each side of the numbers.
_GAP = 10


class NumberedText(QPlainTextEdit):
    """Shows `lines`, numbered from `first`. Those from number `marked` to `last` are marked and scrolled to."""

    def __init__(self, lines: Sequence[str], first: int, marked: int, last: int, *, is_code: bool) -> None:
        super().__init__()
        self._first, self._marked, self._last, self._is_code = first, marked, last, is_code
        self._numbers = _Numbers(self)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setPlainText("\n".join(lines))
        self.updateRequest.connect(lambda _rect, _dy: self._numbers.update())
        app_theme().follow(self, self._show_theme)
        self._show_theme()

    def number_width(self) -> int:
        """Return how much room the numbers need, in pixels."""
        last = self._first + self.blockCount() - 1
        return self.fontMetrics().horizontalAdvance(str(last)) + 2 * _GAP

    def paint_numbers(self, painter: QPainter, area: QRect) -> None:
        theme = current_theme()
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        height = self.fontMetrics().height()
        while block.isValid() and top <= area.bottom():
            number = self._first + block.blockNumber()
            is_marked = self._marked <= number <= self._last
            painter.setPen(theme.color("text_link" if is_marked else "text_dim"))
            place = QRect(0, round(top), self._numbers.width() - _GAP, height)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight, str(number))
            top += self.blockBoundingRect(block).height()
            block = block.next()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inside = self.contentsRect()
        self._numbers.setGeometry(inside.left(), inside.top(), self.number_width(), inside.height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self, self._scroll_to_marked)  # once it has its final size

    def _scroll_to_marked(self) -> None:
        if not self._marked:
            return
        cursor = self.textCursor()
        cursor.setPosition(self._cursor_of_marked().selectionStart())
        self.setTextCursor(cursor)
        self.centerCursor()

    def _cursor_of_marked(self) -> QTextCursor:
        """Return a cursor that has the marked lines selected."""
        cursor = QTextCursor(self.document())
        start = self.document().findBlockByNumber(self._marked - self._first)
        end = self.document().findBlockByNumber(min(self._last - self._first, self.blockCount() - 1))
        cursor.setPosition(start.position())
        cursor.setPosition(end.position() + end.length() - 1, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _show_theme(self) -> None:
        theme = current_theme()
        self.setFont(theme.mono_font(12) if self._is_code else theme.font(13))
        self.setViewportMargins(self.number_width(), 0, 0, 0)
        marks = []
        for number in range(self._marked, self._last + 1) if self._marked else ():
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(self.document().findBlockByNumber(number - self._first))
            mark.format.setBackground(theme.color("found"))
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection.value, True)
            marks.append(mark)
        self.setExtraSelections(marks)


class _Numbers(QWidget):
    def __init__(self, text: NumberedText) -> None:
        super().__init__(text)
        self._text = text

    def sizeHint(self) -> QSize:
        return QSize(self._text.number_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._text.paint_numbers(painter, event.rect())
        painter.end()
