"""Citations in answers as links: the [1] of a place that a search in this chat has found."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor

from qwendesk.core.citations import mentions
from qwendesk.core.translation import tr
from qwendesk.widgets.theme import Theme

SOURCE = "#source-"
"""Prefix of links to the place of a citation."""


class SourceLinks(QObject):
    """Knows the places that can be cited. A number that the model made up stays plain text."""

    opened = Signal(int)
    """The user wants to see the place with this number."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.place_of: Callable[[int], str] = lambda _number: ""
        """Returns what a number stands for, such as "notes.txt, lines 1-9"; "" if nothing in this chat has it."""

    def write(self, cursor: QTextCursor, text: str, form: QTextCharFormat, theme: Theme) -> None:
        """Insert a text, with citations as links."""
        done = 0
        for start, end, number in mentions(text):
            place = self.place_of(number)
            if not place:
                continue
            cursor.insertText(text[done:start], form)
            cursor.insertText(text[start:end], _link(form, number, place, theme))
            done = end
        cursor.insertText(text[done:], form)

    def open(self, address: str) -> None:
        """Ask for the place to which a link leads; ignore links of other kinds."""
        if address.startswith(SOURCE):
            self.opened.emit(int(address.removeprefix(SOURCE)))


def _link(form: QTextCharFormat, number: int, place: str, theme: Theme) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    changed.setAnchor(True)
    changed.setAnchorHref(f"{SOURCE}{number}")
    changed.setToolTip(tr("{0}: click to see it", place))
    changed.setForeground(theme.color("text_link"))
    return changed
