"""The conversation: a centred column of questions and answers. It follows new text only while it shows the end.

Only rows near the viewport have widgets. The heights of others are estimated. When heights above the viewport change,
the text at its top stays where it is.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.chat.view.answer.stack_geometry import StackGeometry
from qwendesk.chat.view.thread.drag_scroll import DragScroll
from qwendesk.chat.view.thread.find_bar import FindBar
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.rows import COLUMN_WIDTH, Row, RowFactory, RowPositions, ScrollAnchor, preferred_height
from qwendesk.chat.view.thread.turn_intents import TurnIntents
from qwendesk.core.conversation import Conversation, Turn
from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import IconButton, describe
from qwendesk.widgets.step_budget import StepBudget
from qwendesk.widgets.tab_order import focus_next, give_focus, lost_focus, tab_stops_in
from qwendesk.widgets.text_pane import repaint_only_growth
from qwendesk.widgets.theme_keeper import app_theme, current_theme

if TYPE_CHECKING:
    from qwendesk.chat.view.thread.assistant_message import AssistantMessage
    from qwendesk.chat.view.thread.user_message import UserMessage


class RowColumn(QWidget):
    """The widget inside the scroll area. Its rows change, so it gets the current ones at each key press."""

    def __init__(self, area: QScrollArea, rows: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # so that scrolling moves pixels without repainting
        self._area = area
        self._rows = rows

    def focusNextPrevChild(self, forward: bool) -> bool:
        here = QApplication.focusWidget()
        stops = self._stops()
        if here in stops:
            index = stops.index(here) + (1 if forward else -1)
            if 0 <= index < len(stops):
                give_focus(stops[index], forward=forward)
                return True
        if lost_focus(self.window()) is not None:
            return self.window().focusNextPrevChild(forward)
        return focus_next(self.window(), here, forward=forward)

    def tab_stops(self) -> list[QWidget]:
        """Return the controls that Tab can reach from outside: the visible ones, and the one with the focus."""
        here = QApplication.focusWidget()
        seen = QRect(0, -self.y(), self._area.viewport().width(), self._area.viewport().height())
        return [each for each in self._stops() if each is here or seen.intersects(self._place(each))]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), current_theme().color("window"))
        painter.end()

    def _stops(self) -> list[QWidget]:
        return [stop for row in self._rows() for stop in tab_stops_in(row)]

    def _place(self, widget: QWidget) -> QRect:
        return QRect(widget.mapTo(self, widget.rect().topLeft()), widget.size())


_GAP, _TOP, _BOTTOM, _SIDE, _NEAR_END = 4, 20, 12, 24, 24
# Pixels above a row that is scrolled to the top of the viewport.
_ABOVE = 10
# Pixels beyond the viewport within which rows have widgets.
_AHEAD = 400
_NEARBY_DELAY_MS = 40


class ThreadView(QScrollArea):
    """Shows one conversation. It uses no services: its owner calls its methods."""

    picture_opened = Signal(str, object)
    """Path of a picture, and its ClipFrame if it is a frame of a clip."""
    try_again = Signal(int)
    """Asks to answer the question of this failed turn again."""
    page_asked = Signal(str, str)
    """Text and language of HTML or SVG to show in the browser."""

    def __init__(self, previews: PreviewCache) -> None:
        super().__init__()
        self.budget = StepBudget(self)
        """The time budget that all deferrable work of this view shares."""
        self.intents = TurnIntents(self)
        self.intents.calls.previews = previews
        self.intents.calls.picture_opened.connect(lambda path: self.picture_opened.emit(path, None))
        self._row_factory = RowFactory(self, previews, self.budget, self.intents)
        self._row_factory.picture_opened.connect(self.picture_opened)
        self._row_factory.try_again.connect(self.try_again)
        self._row_factory.page_asked.connect(self.page_asked)
        self._row_factory.parsed.connect(self._on_parsed)
        self._row_factory.jumped.connect(self._on_jumped)
        self.highlighter = self._row_factory.highlighter
        self._rows: list[Row] = []
        self._rows_with_widgets: set[int] = set()
        """The rows that have widgets."""
        self._geometry = StackGeometry(_GAP)
        self._positions = RowPositions(self._rows, self._geometry)
        self._is_following, self._is_arranging = True, False
        self._anchor = ScrollAnchor()
        self._awaited_match: tuple[Row, int, str] | None = None
        self.setObjectName("thread.view")
        self.setAccessibleName(tr("Conversation"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._column = RowColumn(self, lambda: [self.row_widget(index) for index in self.live_rows()])
        self._column.setProperty("kind", "column")
        repaint_only_growth(self._column)
        self.setWidget(self._column)
        self._arrange_timer = QTimer(self, singleShot=True, interval=0)
        self._arrange_timer.timeout.connect(self._arrange)
        self._nearby_timer = QTimer(self, singleShot=True, interval=_NEARBY_DELAY_MS)
        self._nearby_timer.timeout.connect(self.create_nearby_rows)
        self._latest_button = IconButton("latest", role="text", side=36)
        self._latest_button.setProperty("kind", "round")
        describe(self._latest_button, "thread.latest", tr("Jump to latest"), shortcut=COMMANDS["latest"].shortcut)
        self._latest_button.setParent(self)
        self._latest_button.clicked.connect(self.follow)
        self._latest_button.hide()
        self.find_bar = FindBar(self, self.budget, self)
        self.drag = DragScroll(self)
        self._row_factory.dragged.connect(self.drag.moved)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.verticalScrollBar().setSingleStep(48)
        app_theme().changed.connect(self._arrange_timer.start)

    @property
    def is_following(self) -> bool:
        return self._is_following

    @property
    def is_busy(self) -> bool:
        """Whether anything near the viewport is still being parsed, drawn or copied."""
        return any(self._rows[index].is_busy for index in self._rows_with_widgets)

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    def answer(self, turn_id: int) -> "AssistantMessage | None":
        """Return the widget of a turn's answer, which may be None if it is complete and far from the viewport."""
        index = self._positions.index_of(turn_id, "answer")
        return self._rows[index].answer_widget if index >= 0 else None

    def show_conversation(self, conversation: Conversation) -> None:
        """Show another conversation, with complete answers. A turn being answered is then added by `add_turn`."""
        for index in list(self._rows_with_widgets):
            self._drop_widget(index)
        self._rows.clear()
        self._geometry.truncate(0)
        self.find_bar.forget_hit()
        for turn in conversation.turns:
            self._add(turn, is_generating=False)
        self.follow()
        self.find_bar.search_again()

    def replace_from(self, kept: int, turns: Sequence[Turn]) -> None:
        """Keep the first `kept` turns and replace the others. The reading position is kept."""
        for index in [each for each in self._rows_with_widgets if each >= 2 * kept]:
            self._drop_widget(index)
        del self._rows[2 * kept :]
        self._geometry.truncate(2 * kept)
        for turn in turns:
            self._add(turn, is_generating=False)
        self._arrange()
        self.find_bar.search_again()

    def add_turn(self, turn: Turn) -> None:
        """Add a turn whose answer is still empty."""
        self._add(turn, is_generating=True)
        self.follow()

    def end_turn(self, turn: Turn) -> None:
        for part in ("question", "answer"):
            index = self._positions.index_of(turn.id, part)
            if index >= 0:
                self._rows[index].turn = turn
                self._rows[index].is_generating = False
        answer = self.answer(turn.id)
        if answer is not None:
            answer.end(turn.answer)
            answer.add_actions(turn, self.intents)
            self._arrange()

    def follow(self) -> None:
        """Scroll to the end and follow it."""
        self._is_following = True
        self._arrange()

    def position(self) -> ScrollAnchor:
        """Return the reading position for `show_position`."""
        if self._is_following or self.is_busy:  # the wanted position may not be parsed yet
            return ScrollAnchor() if self._is_following else self._anchor
        return self._positions.anchor_at(self.verticalScrollBar().value() - _TOP)

    def show_position(self, position: ScrollAnchor) -> None:
        """Scroll to a reading position, or to the end if its turn is gone."""
        if position.at_end or self._positions.index_of(position.turn, position.part) < 0:
            self.follow()
            return
        self._is_following = False
        self._anchor = position
        self._arrange()

    def step_turn(self, step: int) -> None:
        """Scroll the next (1) or previous (-1) message to the top of the viewport."""
        if not self._rows:
            return
        top = self.verticalScrollBar().value()
        index = self._geometry.index_at(top - _TOP + 2 * _ABOVE)
        here = abs(self._geometry.top(index) + _TOP - _ABOVE - top) < 2 * _ABOVE
        target = index + step if step > 0 or here else index
        self.show_row(min(max(0, target), len(self._rows) - 1))

    def show_row(self, index: int) -> None:
        """Scroll a row to the top of the viewport."""
        row = self._rows[index]
        self.show_position(ScrollAnchor(row.turn.id, row.part, 0, -_ABOVE, at_end=False))
        if self.verticalScrollBar().value() >= self.verticalScrollBar().maximum():
            self._on_scrolled(self.verticalScrollBar().value())

    def show_match(self, index: int, number: int, query: str) -> None:
        """Scroll to a match, a third below the top of the viewport; in a long answer as soon as it is parsed."""
        self.budget.begin()
        row = self._rows[index]
        self.row_widget(index)
        self._awaited_match = None
        if (widget := row.answer_widget) is not None:
            if not widget.answer_view.is_parsed:
                self._awaited_match = (row, number, query)
            section, offset = widget.answer_view.place_at(widget.answer_view.y_of_match(query, number))
            offset -= self.viewport().height() // 3
            self.show_position(ScrollAnchor(row.turn.id, row.part, section, offset, at_end=False, in_text=True))
        elif (question := row.question_widget) is not None:
            self.show_below(index, question.mark_found(query, number))

    def _on_parsed(self, row: Row) -> None:
        """Scroll to the match that was requested before the answer was parsed."""
        if self._awaited_match is not None and self._awaited_match[0] is row:
            _, number, query = self._awaited_match
            self.show_match(self._positions.index_of(row.turn.id, row.part), number, query)

    def show_below(self, index: int, offset: int) -> None:
        """Scroll to a position in a row, in pixels from its top, a third below the top of the viewport."""
        row = self._rows[index]
        offset -= self.viewport().height() // 3
        self.show_position(ScrollAnchor(row.turn.id, row.part, 0, offset, at_end=False))

    def top_row(self) -> int:
        """Return the row at the top of the viewport; -1 in an empty chat."""
        return self._geometry.index_at(max(0, self.verticalScrollBar().value() - _TOP))

    def live_rows(self) -> list[int]:
        """Return the rows that have widgets."""
        return sorted(self._rows_with_widgets)

    def _add(self, turn: Turn, *, is_generating: bool) -> None:
        for part in ("question", "answer"):
            row = Row(part, turn, is_generating=is_generating and part == "answer")
            self._rows.append(row)
            self._geometry.append(row.estimate_height(self._width()))
            if row.is_generating:
                self.row_widget(len(self._rows) - 1)

    def _width(self) -> int:
        """Return the width of the column, which does not depend on the scroll bar."""
        bar = self.verticalScrollBar().sizeHint().width()
        return max(80, min(COLUMN_WIDTH, self.width() - 2 * (_SIDE + bar)))

    def row_widget(self, index: int) -> "UserMessage | AssistantMessage":
        """Return the widget of a row, creating it if necessary. It may be dropped when it is far away and unused."""
        row = self._rows[index]
        if row.widget is None:
            self._rows_with_widgets.add(index)
            if row.part == "question":
                row.widget = self._row_factory.question(row)
            else:
                row.widget = self._row_factory.answer(row, self._width(), self.viewport().height() + _AHEAD)
            row.widget.setParent(self._column)
            repaint_only_growth(row.widget)
            row.widget.installEventFilter(self)
            row.widget.resize(self._width(), self._geometry.height(index))
            row.widget.show()
            if self.find_bar.has_marks:
                self.find_bar.mark(index)
        return row.widget

    def _drop_widget(self, index: int) -> None:
        row = self._rows[index]
        widget = row.widget
        if widget is None:
            return
        answer = row.answer_widget
        if answer is not None and answer.think_block is not None:
            row.is_thinking_expanded = answer.think_block.is_open
        focus = QApplication.focusWidget()
        if focus is not None and widget.isAncestorOf(focus):
            self.setFocus()  # before it is hidden; otherwise Qt chooses the next widget with the focus
        row.widget = None
        self._rows_with_widgets.discard(index)
        widget.removeEventFilter(self)
        widget.hide()
        widget.deleteLater()

    def _arrange(self, ahead: int = 0) -> None:
        """Create and place the widgets of visible rows, keeping the reading position. Rows nearby follow later."""
        if self._is_arranging:
            return
        self.budget.begin()
        self._is_arranging = True
        try:
            self._arrange_timer.stop()
            for _ in range(3):
                self._apply_scroll()
                if not self._lay_out(ahead):
                    break
            self._apply_scroll()
            self._drop_far_widgets()
        finally:
            self._is_arranging = False
        if self._is_following and self._latest_button.hasFocus():
            self._latest_button.clearFocus()  # hiding it would move the focus and scroll there
        bar = self.verticalScrollBar()
        self._latest_button.setVisible(not self._is_following and bar.value() < bar.maximum())
        if not self._is_following:
            self._latest_button.raise_()
        if not ahead:
            self._nearby_timer.start()

    def create_nearby_rows(self) -> None:
        """Create the widgets just beyond the viewport. Called automatically a little later."""
        self._arrange(_AHEAD)

    def _lay_out(self, ahead: int) -> bool:
        """Measure and place the rows. Return True if heights changed, so that other rows may be visible now."""
        changed = False
        others = {index for index in self._rows_with_widgets if ahead or self._rows[index].is_generating}
        for index in self._from_anchor(ahead):
            changed |= self._measure(index)
            others.discard(index)
        for index in sorted(others):
            changed |= self._measure(index)
        left, width = max(0, (self.width() - self._width()) // 2), self._width()
        self._apply_scroll()  # before rows grow, because Qt moves pixels only while nothing visible needs painting
        for index in self._rows_with_widgets:
            place = QRect(left, self._geometry.top(index) + _TOP, width, self._geometry.height(index))
            widget = self.row_widget(index)
            if widget.geometry() != place:
                widget.setGeometry(place)
        return changed

    def _measure(self, index: int) -> bool:
        """Measure a row, creating its widget if necessary. Return True if its height changed."""
        widget = self.row_widget(index)
        answer = self._rows[index].answer_widget
        if answer is not None:
            view, port = answer.answer_view, self.viewport().height()
            begin = self._wanted_y() - _TOP - self._geometry.top(index) - view.y()
            view.show_range(begin - _AHEAD, begin + port + _AHEAD)
        return self._geometry.set_height(index, preferred_height(widget, self._width())) != 0

    def _from_anchor(self, ahead: int) -> Iterator[int]:
        """Yield the visible rows, starting from the anchor. Rows are measured between the iterations."""
        count, port = len(self._rows), self.viewport().height()
        if not count:
            return
        anchor = count - 1 if self._is_following else self._positions.index_of(self._anchor.turn, self._anchor.part)
        anchor = anchor if anchor >= 0 else self._geometry.index_at(max(0, self._wanted_y() - _TOP))
        for index in range(anchor, count):
            if index > anchor and self._geometry.top(index) + _TOP > self._wanted_y() + port + ahead:
                break
            yield index
        for index in range(anchor - 1, -1, -1):
            if self._geometry.bottom(index) + _TOP < self._wanted_y() - ahead:
                break
            yield index

    def _anchor_y(self) -> int:
        y = self._positions.y_of(self._anchor)
        return self.verticalScrollBar().value() if y is None else y + _TOP

    def _wanted_y(self) -> int:
        """Return the wanted position of the scroll bar."""
        total = max(0, self._geometry.total + _TOP + _BOTTOM - self.viewport().height())
        return total if self._is_following else min(total, max(0, self._anchor_y()))

    def _apply_scroll(self) -> None:
        """Set the height of the column and the position of the scroll bar."""
        size = QSize(self.viewport().width(), max(self.viewport().height(), self._geometry.total + _TOP + _BOTTOM))
        if self._column.size() != size:
            self._column.resize(size)
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum() if self._is_following else self._anchor_y())

    def _drop_far_widgets(self) -> None:
        top = self.verticalScrollBar().value() - _TOP
        far = 3 * _AHEAD
        keep = set(self._geometry.indexes_between(top - far, top + self.viewport().height() + far))
        for index in list(self._rows_with_widgets):
            if index not in keep and not self._rows[index].is_in_use:
                self._drop_widget(index)

    def _on_jumped(self, row: Row, y: int) -> None:
        """Scroll to a position in an answer, in pixels from its top."""
        if row.answer_widget is not None:
            section, offset = row.answer_widget.answer_view.place_at(y)
            self.show_position(ScrollAnchor(row.turn.id, row.part, section, offset - 12, at_end=False, in_text=True))

    def _on_scrolled(self, value: int) -> None:
        if self._is_arranging:
            return
        self._awaited_match = None
        self._is_following = value >= self.verticalScrollBar().maximum() - _NEAR_END
        self._anchor = self._positions.anchor_at(self.verticalScrollBar().value() - _TOP)
        self._arrange()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest and not self._is_arranging:
            self._arrange_timer.start()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._latest_button.size()
        self._latest_button.move((self.width() - size.width()) // 2, self.height() - size.height() - 12)
        self.find_bar.place()
        self._arrange()

    def wheelEvent(self, event: QWheelEvent) -> None:
        super().wheelEvent(event)
        event.accept()

    def sizeHint(self) -> QSize:
        return QSize(COLUMN_WIDTH, 400)
