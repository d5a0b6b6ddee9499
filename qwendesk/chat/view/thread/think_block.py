"""The model's thinking: a header, the last words while it is thinking, and the complete text when it is opened."""

import time

from PySide6.QtCore import QRect, QSize, Qt, QTimer
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.chat.view.answer.text_search import mark_found
from qwendesk.core.translation import tr
from qwendesk.core.units import show_duration
from qwendesk.widgets.buttons import ChevronButton, describe
from qwendesk.widgets.display_texts import thought_text
from qwendesk.widgets.kit import button
from qwendesk.widgets.text_pane import TextPane, reading_line_format
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Horizontal margin of the text in pixels, aligned with the icon of the header.
_INSET = 14


class ThinkBlock(QWidget):
    """Shows the end of the thinking while it streams. What the user opens stays open when the answer starts."""

    def __init__(self, turn_id: int) -> None:
        super().__init__()
        self.text = ""
        self._shown_text = ""
        self._began_at = time.monotonic()
        self._seconds: float | None = None
        self._tokens = 0
        self._ticker = QTimer(self, interval=1000)
        self._ticker.timeout.connect(self._update_header)

        self._header = ChevronButton(kind="thought", icon_name="thought", size=18)
        self._header.setCheckable(True)
        describe(self._header, f"thread.think.{turn_id}", tr("Thinking"), tr("Show or hide thinking"))
        self._header.setCursor(Qt.CursorShape.PointingHandCursor)
        self._header.toggled.connect(self._on_toggled)
        self._preview = _LastWords()
        self._body = TextPane()
        self._body.setObjectName(f"thread.think.text.{turn_id}")
        self._body.setAccessibleName(tr("Thinking text"))
        self._body_box = QWidget()
        box = QVBoxLayout(self._body_box)
        box.setContentsMargins(_INSET, 6, _INSET, 14)
        box.addWidget(self._body)
        # The header may be scrolled away by then.
        hide = button(tr("Hide thinking"), f"thread.think.hide.{turn_id}", kind="link")
        hide.clicked.connect(lambda: self.set_open(opened=False))
        box.addWidget(hide, 0, Qt.AlignmentFlag.AlignLeft)

        self._frame = QFrame()
        self._frame.setProperty("kind", "thought")
        inside = QVBoxLayout(self._frame)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addWidget(self._header)
        inside.addWidget(self._preview)
        inside.addWidget(self._body_box)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 0, 0, 0)
        around.addWidget(self._frame)
        app_theme().follow(self, self._on_theme)
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

    def mark_found(self, query: str) -> int:
        """Highlight `query` in the open text. Return how far below the top the first match is."""
        place = mark_found(self._body, current_theme(), query, 0)
        return self._header.sizeHint().height() + (place.top() if place is not None else 0)

    def append(self, text: str) -> None:
        self.text += text
        if self.is_open:
            self._show_text()
        elif self.is_thinking:
            self._preview.show_end_of(self.text)

    def end_thinking(self, seconds: float | None = None, tokens: int = 0) -> None:
        """End the thinking. Later calls only update the figures in the header."""
        self._seconds = seconds if seconds is not None else time.monotonic() - self._began_at
        self._tokens = tokens
        self._ticker.stop()
        self._arrange()
        self._update_header()

    def _on_toggled(self, _opened: bool) -> None:
        self._arrange()
        self._update_header()

    def _arrange(self) -> None:
        self._preview.setVisible(self.is_thinking and not self.is_open)
        self._body_box.setVisible(self.is_open)
        if self.is_open:
            self._show_text()

    def _show_text(self) -> None:
        """Add the new text to the opened block."""
        theme = current_theme()
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
        cursor.setBlockFormat(reading_line_format())  # for this block; later ones inherit it
        new = self.text[len(self._shown_text) :]
        cursor.insertText(new.lstrip() if not self._shown_text else new, form)
        self._shown_text = self.text
        self._body.fit_height()

    def _update_header(self) -> None:
        if self._seconds is None:
            elapsed = int(time.monotonic() - self._began_at)
            text = tr("Thinking… {0}", show_duration(elapsed) if elapsed >= 10 else tr("{0} s", elapsed))
        else:
            text = thought_text(self._seconds, self._tokens)
        self._header.setText(text)
        self._header.show_chevron("down" if self.is_open else "right")
        self._header.setAccessibleName(text)

    def _on_theme(self) -> None:
        self._preview.updateGeometry()
        self._shown_text = ""
        if self.is_open:
            self._show_text()


class _LastWords(QWidget):
    """The end of a growing text on two dimmed lines. It isn't a label, because that is laid out again for each word."""

    _MARGINS = (_INSET, 0, _INSET, 12)

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_end_of(self, text: str) -> None:
        self._text = " ".join(text[-1200:].split())
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(current_theme().font(13))
        return QSize(200, 2 * (metrics.lineSpacing() + 2) + self._MARGINS[3])

    def paintEvent(self, _event: QPaintEvent) -> None:
        left, top, right, bottom = self._MARGINS
        area = self.rect().adjusted(left, top, -right, -bottom)
        painter = QPainter(self)
        painter.setFont(current_theme().font(13))
        painter.setPen(current_theme().color("text_dim"))
        metrics = painter.fontMetrics()
        for row, line in enumerate(_last_two_lines(self._text, metrics, area.width())):
            height = metrics.lineSpacing() + 2
            place = QRect(area.left(), area.top() + row * height, area.width(), height)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, line)
        painter.end()


def _last_two_lines(text: str, metrics: QFontMetrics, width: int) -> list[str]:
    """Return the last two lines of `text` wrapped at `width`."""
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
