"""A document in a question: a chip with what it is, which opens its text for reading."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QGuiApplication, QKeySequence, QPainter, QPaintEvent, QPen, QShortcut
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from qwendesk.core.messages import DocumentPart
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.labels import document_text
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_MOST_SHOWN = 2_000_000
"""Characters: more would make the view slow, and nobody reads so far in it."""
_LONGEST_NAME = 32


class DocumentBadge(QToolButton):
    """A sheet with the file's ending on it; a click asks to read it."""

    def __init__(self, keeper: ThemeKeeper, document: DocumentPart) -> None:
        super().__init__()
        self._keeper = keeper
        self._ending = document.name.rpartition(".")[2][:4].upper() if "." in document.name else ""
        self.setFixedSize(34, 40)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Read {0}", document.name))
        self.setToolTip(tr("{0}: click to read it", document.name))
        keeper.changed.connect(self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._keeper.theme
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
    """ "report.pdf · 12 pages · 3,412 tokens"; a click opens the text."""

    def __init__(self, keeper: ThemeKeeper, document: DocumentPart, number: int) -> None:
        parts = (_short(document.name), document_text(document, with_tokens=True))
        words = " · ".join(part for part in parts if part)
        super().__init__(keeper, " " + words.replace("&", "&&"), kind="document", icon_name="document")
        self._keeper = keeper
        self._document = document
        name = tr("Document {0}", words)
        describe(self, f"thread.document.{number}", name, tr("{0}: click to read it", document.name))
        self.clicked.connect(self._open)

    def _open(self) -> None:
        DocumentViewer(self._keeper, self._document, self.window()).open()


class DocumentViewer(QDialog):
    """The text of a document as the model gets it. Read-only; Esc closes it."""

    def __init__(self, keeper: ThemeKeeper, document: DocumentPart, parent: QWidget) -> None:
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
        self._text.setFont(keeper.theme.mono_font(12))
        self._text.setPlainText(document.text[:_MOST_SHOWN])
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 16)
        column.setSpacing(10)
        column.addLayout(self._head(keeper))
        column.addWidget(self._text, 1)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.close)
        self._text.setFocus()

    def _head(self, keeper: ThemeKeeper) -> QHBoxLayout:
        title = QLabel(self._document.name)
        title.setProperty("kind", "heading")
        title.setTextFormat(Qt.TextFormat.PlainText)
        facts = [document_text(self._document, with_tokens=True)]
        if len(self._document.text) > _MOST_SHOWN:
            facts.append(tr("the first {0} characters are shown", f"{_MOST_SHOWN:,}"))
        about = QLabel(" · ".join(fact for fact in facts if fact))
        about.setProperty("kind", "small")
        copy = IconButton(keeper, "copy", size=16)
        describe(copy, "document.copy", tr("Copy the whole text"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._document.text))
        close = IconButton(keeper, "close", size=16)
        describe(close, "document.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(title)
        row.addWidget(about, 1)
        row.addWidget(copy)
        row.addWidget(close)
        return row


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 13] + "…" + name[-12:]
