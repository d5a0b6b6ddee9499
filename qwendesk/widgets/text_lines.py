"""The height of a plain text field in lines, for fields that are as tall as their text."""

import math

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit


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
    lines = count_lines(field, most)
    line_height = field.document().firstBlock().layout().lineAt(0).height()
    field.setFixedHeight(math.ceil(max(least, min(most, lines)) * line_height) + extra)
    is_full = lines >= most
    policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    field.setVerticalScrollBarPolicy(policy)
