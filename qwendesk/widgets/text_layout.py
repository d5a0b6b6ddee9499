"""How a text is laid out: its direction, its height in lines, and labels that wrap or elide it."""

import math
import unicodedata

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QSizePolicy

# The first letter is searched for in this many characters.
_LONGEST_LOOK = 200


def is_right_to_left(text: str) -> bool | None:
    """Return whether the first letter belongs to a right-to-left script such as Hebrew; None if there is no letter."""
    kinds = map(unicodedata.bidirectional, text[:_LONGEST_LOOK])
    return next((kind != "L" for kind in kinds if kind in ("L", "R", "AL")), None)


def align_by_first_letter(field: QPlainTextEdit) -> None:
    """Align the field's text by its first letter. Qt always aligns plain text to the left."""

    def follow() -> None:
        is_right = is_right_to_left(field.toPlainText())
        if is_right is None:
            is_right = field.layoutDirection() == Qt.LayoutDirection.RightToLeft
        wanted = Qt.AlignmentFlag.AlignRight if is_right else Qt.AlignmentFlag.AlignLeft
        option = field.document().defaultTextOption()
        if option.alignment() != wanted:
            option.setAlignment(wanted)
            field.document().setDefaultTextOption(option)

    field.textChanged.connect(follow)
    follow()


def draw_line(
    painter: QPainter, room: QRectF, text: str, elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight
) -> None:
    """Draw one line of text, centred vertically in `room` and aligned by its first letter, and elided if too long."""
    is_right = is_right_to_left(text)
    if is_right is not None:
        painter.setLayoutDirection(Qt.LayoutDirection.RightToLeft if is_right else Qt.LayoutDirection.LeftToRight)
    shown = painter.fontMetrics().elidedText(text, elide, int(room.width()))
    painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading), shown)


def count_lines(field: QPlainTextEdit, most: int) -> int:
    """Return the number of lines on the screen, but at most `most` + 1; a wrapped line counts several times."""
    layout, lines, block = field.document().documentLayout(), 0, field.document().firstBlock()
    while block.isValid() and lines <= most:
        layout.blockBoundingRect(block)  # wraps the block now: a pasted one is otherwise wrapped only when painted
        lines += block.layout().lineCount()
        block = block.next()
    return min(lines, most + 1)


def fit_height(field: QPlainTextEdit, *, least: int = 1, most: int, extra: int) -> None:
    """Make a field as tall as its lines, from `least` to `most`, plus `extra` pixels. It scrolls only above `most`."""
    field.ensurePolished()  # the stylesheet sets the font, before the field is shown only if asked
    lines = count_lines(field, most)
    line_height = field.document().firstBlock().layout().lineAt(0).height()
    field.setFixedHeight(math.ceil(max(least, min(most, lines)) * line_height) + extra)
    is_full = lines >= most
    policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    field.setVerticalScrollBarPolicy(policy)


class WrappingLabel(QLabel):
    """A label that uses one line if there is enough space, and wraps otherwise.

    A plain QLabel with word wrap requests several lines even if one is enough.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setWordWrap(True)

    def sizeHint(self) -> QSize:
        self.ensurePolished()
        padding = self.width() - self.contentsRect().width()
        indent = self.fontMetrics().horizontalAdvance("x") if padding else 0
        words = self.fontMetrics().horizontalAdvance(self.text()) + padding + indent + 2 * self.margin() + 2
        return QSize(words, self.heightForWidth(words))


class ElidedLabel(QLabel):
    """A label that elides the middle of its text, for names of files and folders. `text` returns the complete text.

    With `by_part`, the last parts between middle dots are left out first.
    """

    def __init__(self, name: str, *, kind: str = "", by_part: bool = False) -> None:
        super().__init__()
        self._by_part = by_part
        self.setObjectName(name)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        if kind:
            self.setProperty("kind", kind)

    @property
    def shown(self) -> str:
        """The text as it is drawn, elided if necessary."""
        room, text = self.contentsRect().width(), self.text()
        shown = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, room)
        while self._by_part and " · " in text and shown != text:
            text = text.rpartition(" · ")[0]
            shown = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, room)
        return shown

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self.shown
        if shown == self.text():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        self.style().drawItemText(
            painter, self.contentsRect(), self.alignment(), self.palette(), self.isEnabled(), shown,
            self.foregroundRole(),
        )  # fmt: skip
