"""The statistics below an answer: its speed, and on a click all figures with a way to why it was this fast."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFocusEvent
from PySide6.QtWidgets import QToolButton, QToolTip, QWidget

from qwendesk.core.conversation import Answer
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.display_texts import stats_text, stats_tooltip
from qwendesk.widgets.kit import STRETCH, button, column, paragraph, row
from qwendesk.widgets.popups import Popover

# Width in pixels without the text: the frame, the stylesheet's padding and the style's own margin.
_EXTRA_WIDTH = 14
# Width in pixels of the details, and their distance from the chip.
_WIDTH, _GAP = 360, 4


class StatsChip(QToolButton):
    """A button such as "112 tok/s · 0.2 s". The keyboard focus shows all figures as a tooltip, a click as a popover."""

    why_asked = Signal()

    def __init__(self, turn_id: int) -> None:
        super().__init__()
        self.setObjectName(f"thread.stats.{turn_id}")
        self.setProperty("kind", "stats")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Statistics for this answer"))
        self.clicked.connect(self._show_details)
        self._statistics, self._is_explainable = "", False
        self.speed_reason: Callable[[], str] = str
        """Returns why the answer was as fast as it was; "" if that isn't known."""

    def show_answer(self, answer: Answer) -> None:
        tokens = answer.stats.reasoning_tokens + answer.stats.answer_tokens
        text = stats_text(answer) or tr_n("{0} token", "{0} tokens", tokens)
        self.setText(text)
        self._statistics = stats_tooltip(answer)
        self._is_explainable = answer.stats.timing.engine_s > 0
        self._update_tooltip()
        if answer.stats.cache_note:
            self.setText(f"{text} · {tr('prompt re-read')}")

    def sizeHint(self) -> QSize:
        """Return a size hardly wider than the text, so that the text is aligned with the answer."""
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + _EXTRA_WIDTH, super().sizeHint().height())

    def enterEvent(self, event: QEnterEvent) -> None:
        self._update_tooltip()
        super().enterEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._update_tooltip()
            QToolTip.showText(self.mapToGlobal(QPoint(0, self.height())), self.toolTip(), self)

    def leaveEvent(self, event: QEvent) -> None:
        QToolTip.hideText()
        super().leaveEvent(event)

    def _update_tooltip(self) -> None:
        """Add the reason of the speed, which is found after the answer has ended."""
        tip = "\n".join(text for text in (self._statistics, self.speed_reason()) if text)
        self.setToolTip(tip)
        self.setAccessibleDescription(tip)

    def _show_details(self) -> None:
        self._update_tooltip()
        QToolTip.hideText()
        details = AnswerDetails(self._statistics, self.speed_reason(), self, can_explain=self._is_explainable)
        details.why_asked.connect(self.why_asked)
        details.show_at(self)


class AnswerDetails(Popover):
    """All figures of an answer, the reason of its speed, and a link to the rest of the explanation."""

    why_asked = Signal()

    def __init__(self, statistics: str, reason: str, parent: QWidget, *, can_explain: bool) -> None:
        super().__init__(parent)
        self.setObjectName("thread.details")
        self.setAccessibleName(tr("Statistics for this answer"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAttribute(Qt.WidgetAttribute.WA_NoMouseReplay)  # a click on the chip only closes it
        self._column = column(spacing=8, margins=(16, 12, 16, 12))
        self._column.addWidget(paragraph(statistics, name="thread.details.figures", selectable=True))
        if reason:
            self._column.addWidget(paragraph(reason, "dim", name="thread.details.reason", selectable=True))
        if can_explain:
            why = button(tr("Why this speed?"), "thread.details.why", kind="link", tip=tr("Open the Engine page"))
            why.clicked.connect(self.close)
            why.clicked.connect(self.why_asked)
            self._column.addLayout(row(why, STRETCH))
        self.setLayout(self._column)
        self.setFixedWidth(_WIDTH)

    def show_at(self, chip: QWidget) -> None:
        """Show it below `chip`, or above it if the window ends there."""
        self.ensurePolished()
        self.setFixedHeight(self.heightForWidth(_WIDTH))  # with the frame, which the layout alone leaves out
        place = chip.mapToGlobal(QPoint(chip.width() - _WIDTH, chip.height() + _GAP))
        window = chip.window()
        if place.y() + self.height() > window.mapToGlobal(QPoint(0, window.height())).y():
            place.setY(chip.mapToGlobal(QPoint(0, -_GAP)).y() - self.height())
        self.move(place)
        self.show()
        self.focusNextPrevChild(True)
