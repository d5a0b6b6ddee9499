"""The direction of what people write: each paragraph as its own letters run."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit


def follow_letters(field: QPlainTextEdit) -> None:
    """Paragraphs of Hebrew or Arabic begin at the right, others at the left, whatever the window's direction is."""
    option = field.document().defaultTextOption()
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    field.document().setDefaultTextOption(option)
