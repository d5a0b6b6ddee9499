"""The model's thought: one header row, the last words while it thinks, all of it when opened."""

import time

from PySide6.QtCore import QRect, QSize, Qt, QTimer
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.units import show_duration
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.labels import thought_text
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import TextPane, airy_lines
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.find_marks import mark_found

_INSET = 14
"""Pixels left and right of the thought's words: they begin where the drawing of the header does."""


class ThinkBlock(QWidget):
    """Streams a thought; folds when the answer starts. Opened and closed by click or keyboard."""

    def __init__(self, keeper: ThemeKeeper, turn_id: int) -> None:
        super().__init__()
        self._keeper = keeper
        self.text = ""
        self._shown_text = ""
        self._began_at = time.monotonic()
        self._seconds: float | None = None
        self._tokens = 0
        self._ticker = QTimer(self, interval=1000)
        self._ticker.timeout.connect(self._update_header)

        self._header = TextButton(keeper, kind="thought", icon_name="thought", size=18)
        self._header.setCheckable(True)
        describe(self._header, f"thread.think.{turn_id}", tr("Thought"), tr("Show or hide the thought"))
        self._header.setCursor(Qt.CursorShape.PointingHandCursor)
        self._header.toggled.connect(self._on_toggled)
        self._preview = _LastWords(keeper)
        self._body = TextPane()
        self._body.setObjectName(f"thread.think.text.{turn_id}")
        self._body.setAccessibleName(tr("Text of the thought"))
        self._body_box = QWidget()
        box = QVBoxLayout(self._body_box)
        box.setContentsMargins(_INSET, 0, _INSET, 14)
        box.addWidget(self._body)

        self._frame = QFrame()
        self._frame.setProperty("kind", "thought")
        inside = QVBoxLayout(self._frame)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addWidget(self._header)
        inside.addWidget(self._preview)
        inside.addWidget(self._body_box)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addWidget(self._frame)
        self._row.addStretch(0)
        keeper.changed.connect(self._on_theme)
        self._ticker.start()
        self._arrange()
        self._update_header()

    @property
    def is_thinking(self) -> bool:
        return self._seconds is None

    @property
    def is_open(self) -> bool:
        return self._header.isChecked()

    def set_open(self, *, opened: bool) -> None:
        self._header.setChecked(opened)

    def mark_found(self, words: str) -> int:
        """Mark places with `words` in the open thought; returns how far below the top the first one is."""
        place = mark_found(self._body, self._keeper.theme, words, 0)
        return self._header.sizeHint().height() + (place.top() if place is not None else 0)

    def append(self, text: str) -> None:
        self.text += text
        if self.is_open:
            self._show_text()
        elif self.is_thinking:
            self._preview.show_end_of(self.text)

    def end_thinking(self, seconds: float | None = None, tokens: int = 0) -> None:
        """The answer starts, or all ended. Folds once; numbers may come later again and only change the header."""
        first = self.is_thinking
        self._seconds = seconds if seconds is not None else time.monotonic() - self._began_at
        self._tokens = tokens
        self._ticker.stop()
        if first:
            self._header.setChecked(False)
        self._arrange()
        self._update_header()

    def _on_toggled(self, _opened: bool) -> None:
        self._arrange()
        self._update_header()

    def _arrange(self) -> None:
        wide = self.is_open or self.is_thinking
        self._preview.setVisible(self.is_thinking and not self.is_open)
        self._body_box.setVisible(self.is_open)
        self._row.setStretch(0, 1 if wide else 0)
        self._row.setStretch(1, 0 if wide else 1)
        if self.is_open:
            self._show_text()

    def _show_text(self) -> None:
        """Bring the opened text up to date: only what is new is added."""
        theme = self._keeper.theme
        document = self._body.document()
        if not self._shown_text or not self.text.startswith(self._shown_text):
            document.setDefaultFont(theme.font(13))
            self._body.clear()
            self._body.setTextColor(theme.color("text_dim"))
            self._shown_text = ""
        cursor = QTextCursor(document)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        form = cursor.charFormat()
        form.setForeground(theme.color("text_dim"))
        form.setFont(theme.font(13))
        cursor.setBlockFormat(airy_lines())  # of the block that goes on; those that follow take it over
        new = self.text[len(self._shown_text) :]
        cursor.insertText(new.lstrip() if not self._shown_text else new, form)
        self._shown_text = self.text
        self._body.fit_height()

    def _update_header(self) -> None:
        arrow = "▾" if self.is_open else "▸"
        if self._seconds is None:
            elapsed = int(time.monotonic() - self._began_at)
            text = tr("Thinking… {0}", show_duration(elapsed) if elapsed >= 10 else f"{elapsed} s")
        else:
            text = thought_text(self._seconds, self._tokens)
        self._header.setText(f" {text}  {arrow}")
        self._header.setAccessibleName(text)

    def _on_theme(self) -> None:
        self._preview.updateGeometry()
        self._shown_text = ""
        if self.is_open:
            self._show_text()


class _LastWords(QWidget):
    """The end of a growing text on two dimmed lines. Painted, because a label would be measured on every word."""

    _MARGINS = (_INSET, 0, _INSET, 12)

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_end_of(self, text: str) -> None:
        self._text = " ".join(text[-1200:].split())
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(self._keeper.theme.font(13))
        return QSize(200, 2 * (metrics.lineSpacing() + 2) + self._MARGINS[3])

    def paintEvent(self, _event: QPaintEvent) -> None:
        left, top, right, bottom = self._MARGINS
        area = self.rect().adjusted(left, top, -right, -bottom)
        painter = QPainter(self)
        painter.setFont(self._keeper.theme.font(13))
        painter.setPen(self._keeper.theme.color("text_dim"))
        metrics = painter.fontMetrics()
        for row, line in enumerate(_last_two_lines(self._text, metrics, area.width())):
            height = metrics.lineSpacing() + 2
            place = QRect(area.left(), area.top() + row * height, area.width(), height)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, line)
        painter.end()


def _last_two_lines(text: str, metrics: QFontMetrics, width: int) -> list[str]:
    """`text` wrapped at `width`; its last two lines."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if metrics.horizontalAdvance(longer) > width and line:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line][-2:]
