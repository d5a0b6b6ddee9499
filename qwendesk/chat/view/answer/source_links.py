"""Citations in answers as links: the [1] of a place that a search in this chat has found."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor

from qwendesk.core.citations import mentions
from qwendesk.core.translation import tr
from qwendesk.widgets.theme import Theme

SOURCE = "#source-"
"""Prefix of links to the place of a citation."""


class SourceIntents(QObject):
    """Knows what answers can cite, and has the user's requests to see it."""

    opened = Signal(int, int)
    """Turn id and number: the user wants to see the place with this number."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.place_of: Callable[[int, int], str] = lambda _turn_id, _number: ""
        """Returns what a number means in the answer of a turn, such as "notes.txt, lines 1-9"; "" for nothing."""


class SourceLinks:
    """The citations of one answer. A number that the model made up stays plain text."""

    def __init__(self, turn_id: int, intents: SourceIntents) -> None:
        self._turn_id, self._intents = turn_id, intents

    def write(self, cursor: QTextCursor, text: str, form: QTextCharFormat, theme: Theme) -> None:
        """Insert a text, with citations as links."""
        done = 0
        for start, end, number in mentions(text):
            place = self._intents.place_of(self._turn_id, number)
            if not place:
                continue
            cursor.insertText(text[done:start], form)
            cursor.insertText(text[start:end], _link(form, number, place, theme))
            done = end
        cursor.insertText(text[done:], form)

    def open(self, address: str) -> None:
        """Ask for the place to which a link leads; ignore links of other kinds."""
        if address.startswith(SOURCE):
            self._intents.opened.emit(self._turn_id, int(address.removeprefix(SOURCE)))


def _link(form: QTextCharFormat, number: int, place: str, theme: Theme) -> QTextCharFormat:
    changed = QTextCharFormat(form)
    changed.setAnchor(True)
    changed.setAnchorHref(f"{SOURCE}{number}")
    changed.setToolTip(tr("{0}: click to see it", place))
    changed.setForeground(theme.color("text_link"))
    return changed
