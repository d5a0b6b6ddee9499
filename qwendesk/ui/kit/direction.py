"""The direction of what people write, from its own letters."""

import unicodedata

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QPlainTextEdit

_LONGEST_LOOK = 200
"""Characters that are looked at for a first letter."""


def is_right_to_left(text: str) -> bool | None:
    """Whether the first letter belongs to a script such as Hebrew or Arabic; None without any letter."""
    kinds = map(unicodedata.bidirectional, text[:_LONGEST_LOOK])
    return next((kind != "L" for kind in kinds if kind in ("L", "R", "AL")), None)


def follow_letters(field: QPlainTextEdit) -> None:
    """Let the field's text begin at the side where its first letter does; Qt keeps every plain text at the left."""

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


def draw_line(painter: QPainter, room: QRectF, text: str) -> None:
    """One line in the middle of `room`'s height, begun at the side where its first letter does; what is too long ends
    in dots at the other side."""
    is_right = is_right_to_left(text)
    if is_right is not None:
        painter.setLayoutDirection(Qt.LayoutDirection.RightToLeft if is_right else Qt.LayoutDirection.LeftToRight)
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room.width()))
    painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading), shown)
