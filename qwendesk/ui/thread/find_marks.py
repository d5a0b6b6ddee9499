"""Marks found words in a text on screen."""

from PySide6.QtCore import QRect
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QTextEdit

from qwendesk.ui.kit.theme import Theme


def mark_found(pane: QTextEdit, theme: Theme, words: str, current: int) -> QRect | None:
    """Mark all places with `words`, number `current` more than the others; returns where that one is.

    "" removes the marks. What is selected stays selected.
    """
    marks: list[QTextEdit.ExtraSelection] = []
    place: QRect | None = None
    cursor = pane.document().find(words) if words else QTextCursor()
    while not cursor.isNull():
        is_current = len(marks) == current
        mark = QTextEdit.ExtraSelection()
        mark.cursor = cursor
        mark.format.setBackground(theme.color("accent" if is_current else "found"))
        mark.format.setForeground(theme.color("window" if is_current else "text"))
        if is_current:
            place = pane.cursorRect(cursor)
        marks.append(mark)
        cursor = pane.document().find(words, cursor)
    pane.setExtraSelections(marks)
    return place
