"""A document in a question: a chip that opens a viewer with its text."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QGuiApplication, QKeySequence, QPainter, QPaintEvent, QPen, QShortcut
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from qwendesk.core.messages import DocumentPart
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.display_texts import document_facts
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Maximum number of characters shown. More would make the viewer slow.
_MAX_SHOWN_CHARACTERS = 2_000_000
_MAX_NAME_LENGTH = 32
# Minimum width of a chip in logical pixels.
_MIN_WIDTH = 120


class DocumentBadge(QToolButton):
    """An icon of a sheet with the file's extension. A click requests the viewer."""

    def __init__(self, document: DocumentPart) -> None:
        super().__init__()
        self._ending = document.name.rpartition(".")[2][:4].upper() if "." in document.name else ""
        self.setFixedSize(34, 40)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Open {0}", document.name))
        self.setToolTip(tr("{0}: click to open", document.name))
        app_theme().changed.connect(self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("focus" if self.hasFocus() else "border"), 1))
        painter.setBrush(theme.color("chip_plain"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        font = theme.font(10)
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(theme.color("text_dim"))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._ending or tr("TXT"))
        painter.end()


class DocumentChip(TextButton):
    """A chip such as "report.pdf · 12 pages · 3,412 tokens". A click opens the text.

    If there is little space, the name is elided.
    """

    def __init__(self, document: DocumentPart, number: int) -> None:
        facts = document_facts(document)
        self._short_name, self._facts = _short(document.name), f" · {facts}" if facts else ""
        words = self._short_name + self._facts
        super().__init__(_label(words), kind="document", icon_name="document")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._document = document
        name = tr("Document {0}", words)
        describe(self, f"thread.document.{number}", name, tr("{0}: click to open", document.name))
        self.clicked.connect(self._open)

    @property
    def shown(self) -> str:
        """The text as it is drawn, with an elided name if necessary."""
        missing = self.sizeHint().width() - self.width()
        if missing <= 0:
            return self.text()
        metrics = self.fontMetrics()
        room = metrics.horizontalAdvance(self._short_name) - missing
        return _label(metrics.elidedText(self._short_name, Qt.TextElideMode.ElideMiddle, room) + self._facts)

    def minimumSizeHint(self) -> QSize:
        return QSize(_MIN_WIDTH, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = self.shown
        painter = QStylePainter(self)
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        painter.end()

    def _open(self) -> None:
        DocumentViewer(self._document, self.window()).open()


class DocumentViewer(Dialog):
    """The text of a document as the model receives it. Esc closes the viewer."""

    def __init__(self, document: DocumentPart, parent: QWidget) -> None:
        super().__init__(parent)
        self._document = document
        self.setObjectName("document.viewer")
        self.setWindowTitle(document.name)
        self.setAccessibleName(tr("Document {0}", document.name))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(min(900, round(parent.window().width() * 0.8)), round(parent.window().height() * 0.8))
        self._text = QPlainTextEdit()
        self._text.setProperty("kind", "details")
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        describe(self._text, "document.text", tr("Text of {0}", document.name))
        if document.language:
            self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._text.setPlainText(document.text[:_MAX_SHOWN_CHARACTERS])
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 16)
        column.setSpacing(10)
        column.addLayout(self._head())
        column.addWidget(self._text, 1)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.close)
        self._text.setFocus()

    def _head(self) -> QHBoxLayout:
        title = QLabel(self._document.name)
        title.setProperty("kind", "heading")
        title.setTextFormat(Qt.TextFormat.PlainText)
        facts = [document_facts(self._document)]
        if len(self._document.text) > _MAX_SHOWN_CHARACTERS:
            facts.append(tr("first {0} characters shown", show_count(_MAX_SHOWN_CHARACTERS)))
        about = QLabel(" · ".join(fact for fact in facts if fact))
        about.setProperty("kind", "small")
        copy = IconButton("copy", size=16)
        describe(copy, "document.copy", tr("Copy all text"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._document.text))
        close = IconButton("close", size=16)
        describe(close, "document.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(title)
        row.addWidget(about, 1)
        row.addWidget(copy)
        row.addWidget(close)
        return row


def _label(words: str) -> str:
    """Return the text of a chip's button, in which "&" would mark a shortcut."""
    return words.replace("&", "&&")


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME_LENGTH else name[: _MAX_NAME_LENGTH - 13] + "…" + name[-12:]
