"""The code inside one card of an answer. While it streams, only its last lines are written again."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextBlockFormat, QTextCharFormat, QTextCursor, QTextFrame

from qwendesk.ui.kit.theme import Theme
from qwendesk.ui.thread.highlight import Run, highlight, language_name

_SETTLE_AT = 800
"""Characters of unsettled code from which its beginning is coloured for good."""
_LINE_HEIGHT = 128.0


class CodeSection:
    """Writes code into a frame; `text` is all of it, for the Copy button."""

    def __init__(self, info: str, theme: Theme) -> None:
        self.language = language_name(info)
        self.text = ""
        self.info = info
        self._theme = theme
        self._frame: QTextFrame | None = None
        self._cursor = QTextCursor()
        self._formats: dict[str, QTextCharFormat] = {}
        self._settled_text = 0
        self._settled_position = 0

    @property
    def frame(self) -> QTextFrame | None:
        return self._frame

    def begin(self, cursor: QTextCursor, frame: QTextFrame) -> None:
        """Take the empty frame that `cursor` is in."""
        self._frame = frame
        self._cursor = QTextCursor(cursor)
        form = QTextBlockFormat()
        form.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        form.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        self._cursor.setBlockFormat(form)
        self._cursor.setBlockCharFormat(self._format("code_text"))
        self._settled_position = self._cursor.position()

    def move(self, by: int) -> None:
        """Text above it became longer by so many characters."""
        self._settled_position += by

    def update(self, text: str) -> None:
        """Show `text`, which begins with everything that was shown before."""
        self.text = text
        shown = text.removesuffix("\n")
        open_text = shown[self._settled_text :]
        if self._frame is None:
            return
        self._cursor.beginEditBlock()
        self._cursor.setPosition(self._settled_position)
        self._cursor.setPosition(self._frame.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
        self._cursor.removeSelectedText()
        while len(open_text) > _SETTLE_AT:
            coloured = highlight(open_text[: 2 * _SETTLE_AT], self.language)
            if not coloured.settled_length:
                break
            self._insert(coloured.settled)
            self._settled_text += coloured.settled_length
            self._settled_position = self._cursor.position()
            open_text = open_text[coloured.settled_length :]
        coloured = highlight(open_text, self.language)
        self._insert(coloured.settled + coloured.rest)
        self._cursor.endEditBlock()

    def _insert(self, runs: Sequence[Run]) -> None:
        for run in runs:
            self._cursor.insertText(run.text, self._format(run.role))

    def _format(self, role: str) -> QTextCharFormat:
        if role not in self._formats:
            self._formats[role] = self._new_format(role)
        return self._formats[role]

    def _new_format(self, role: str) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(self._theme.mono_font(13))
        form.setForeground(self._theme.color(role))
        return form
