"""The conversation: a centred column of questions and answers that follows its end only while the reader is there.

Only what is near the viewport exists as widgets. Heights are guessed until they are measured; what lies at the top of
the view stays there while heights above it change.
"""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.core.conversation import Conversation, Turn
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.kit.buttons import IconButton, describe
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.text_pane import paint_growth_only
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.column import Column
from qwendesk.ui.thread.drag_scroll import DragScroll
from qwendesk.ui.thread.find_bar import FindBar
from qwendesk.ui.thread.focus_walk import FocusWalk
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.message_user import UserMessage
from qwendesk.ui.thread.row_maker import RowMaker
from qwendesk.ui.thread.row_places import RowPlaces
from qwendesk.ui.thread.rows import ReadPosition, Row, settled_height
from qwendesk.ui.thread.thumbnails import PictureShelf
from qwendesk.ui.thread.turn_intents import TurnIntents

COLUMN_WIDTH = 772
_NEAR_END = 24
_GAP, _TOP, _BOTTOM, _SIDE = 4, 20, 12, 24
_ABOVE = 10
"""Pixels that stay free above a row that is put at the top of the view."""
_AHEAD = 400
"""Pixels beyond the viewport within which rows are widgets."""
_SOON_MS = 40


class ThreadView(QScrollArea):
    """Shows one conversation. Knows no service: it is told what happens."""

    picture_opened = Signal(str)
    try_again = Signal(int)
    """The id of a failed turn whose question should be answered again."""

    def __init__(self, keeper: ThemeKeeper, shelf: PictureShelf, tasks: Tasks) -> None:
        super().__init__()
        self._keeper = keeper
        self._maker = RowMaker(self, keeper, shelf, tasks)
        self.intents = TurnIntents(self)
        self._rows: list[Row] = []
        self._live: set[int] = set()
        """The rows that are widgets."""
        self._column = Column(_GAP)
        self._places = RowPlaces(self._rows, self._column)
        self._following = True
        self._arranging = False
        self._kept = ReadPosition()
        self.setObjectName("thread.view")
        self.setAccessibleName(tr("Conversation"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._host = FocusWalk(self, keeper, self._live_widgets)
        self._host.setProperty("kind", "column")
        paint_growth_only(self._host)
        self.setWidget(self._host)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._look)
        self._soon = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._soon.timeout.connect(self.look_around)
        self._latest = IconButton(keeper, "latest", role="text", side=36)
        self._latest.setProperty("kind", "round")
        describe(self._latest, "thread.latest", tr("Jump to latest"), shortcut=COMMANDS["latest"].shortcut)
        self._latest.setParent(self)
        self._latest.clicked.connect(self.follow)
        self._latest.hide()
        self.find_bar = FindBar(keeper, self)
        self.drag = DragScroll(self)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.verticalScrollBar().setSingleStep(48)
        keeper.changed.connect(self._later.start)

    @property
    def is_following(self) -> bool:
        return self._following

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    def answer(self, turn_id: int) -> AssistantMessage | None:
        """A turn's answer while it is a widget: always while it is being made, afterwards when it is near."""
        index = self._places.index(turn_id, "answer")
        widget = self._rows[index].widget if index >= 0 else None
        return widget if isinstance(widget, AssistantMessage) else None

    def show_conversation(self, conversation: Conversation) -> None:
        """Replace everything. Its answers are final; one that is being made comes by `add_turn`."""
        for index in list(self._live):
            self._drop(index)
        self._rows.clear()
        self._column.truncate(0)
        self.find_bar.forget_hit()
        for turn in conversation.turns:
            self._add(turn, is_open=False)
        self.follow()
        self.find_bar.search_again()

    def replace_from(self, kept: int, turns: Sequence[Turn]) -> None:
        """Keep the first `kept` turns and show these after them. The reader stays where he is."""
        for index in [each for each in self._live if each >= 2 * kept]:
            self._drop(index)
        del self._rows[2 * kept :]
        self._column.truncate(2 * kept)
        for turn in turns:
            self._add(turn, is_open=False)
        self._arrange()
        self.find_bar.search_again()

    def add_turn(self, turn: Turn) -> None:
        """A new question; its answer is still empty."""
        self._add(turn, is_open=True)
        self.follow()

    def end_turn(self, turn: Turn) -> None:
        for part in ("question", "answer"):
            index = self._places.index(turn.id, part)
            if index >= 0:
                self._rows[index].turn = turn
                self._rows[index].is_open = False
        answer = self.answer(turn.id)
        if answer is not None:
            answer.end(turn.answer)
            answer.offer(turn, self.intents)
            self._arrange()

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._following = True
        self._arrange()

    def position(self) -> ReadPosition:
        """Where the reader is, to be kept and given to `show_position` when this chat is shown again."""
        return self._places.at(self.verticalScrollBar().value() - _TOP) if not self._following else ReadPosition()

    def show_position(self, position: ReadPosition) -> None:
        """Go where somebody was; to the end when that turn is not here any more."""
        if position.at_end or self._places.index(position.turn, position.part) < 0:
            self.follow()
            return
        self._following = False
        self._kept = position
        self._arrange()

    def step_turn(self, step: int) -> None:
        """Put the next (1) or the one before (-1) of the questions and answers at the top of the view."""
        if not self._rows:
            return
        top = self.verticalScrollBar().value()
        index = self._column.at(top - _TOP + 2 * _ABOVE)
        here = abs(self._column.top(index) + _TOP - _ABOVE - top) < 2 * _ABOVE
        target = index + step if step > 0 or here else index
        self.show_row(min(max(0, target), len(self._rows) - 1))

    def show_row(self, index: int) -> None:
        """Put a row at the top of the view."""
        row = self._rows[index]
        self.show_position(ReadPosition(row.turn.id, row.part, 0, -_ABOVE, at_end=False))
        if self.verticalScrollBar().value() >= self.verticalScrollBar().maximum():
            self._on_scrolled(self.verticalScrollBar().value())

    def show_match(self, index: int, number: int, words: str) -> None:
        """Bring one place with `words` into view, a third from the top."""
        row = self._rows[index]
        self.show_row(index)
        widget = self.row_widget(index)
        if isinstance(widget, AssistantMessage):
            section, offset = widget.answer_view.place_at(widget.answer_view.y_of_match(words, number))
            offset -= self.viewport().height() // 3
            self.show_position(ReadPosition(row.turn.id, row.part, section, offset, at_end=False, in_text=True))
        else:
            self.show_below(index, widget.mark_found(words, number))

    def show_below(self, index: int, offset: int) -> None:
        """Put a place of a row, in pixels from its top, a third below the top of the view."""
        row = self._rows[index]
        offset -= self.viewport().height() // 3
        self.show_position(ReadPosition(row.turn.id, row.part, 0, offset, at_end=False))

    def top_row(self) -> int:
        """The row at the top of the view; -1 in an empty chat."""
        return self._column.at(max(0, self.verticalScrollBar().value() - _TOP))

    def live_rows(self) -> list[int]:
        """The rows that are widgets now."""
        return sorted(self._live)

    def _add(self, turn: Turn, *, is_open: bool) -> None:
        for part in ("question", "answer"):
            row = Row(part, turn, is_open=is_open and part == "answer")
            self._rows.append(row)
            self._column.append(row.guess(self._width()))
            if row.is_open:
                self.row_widget(len(self._rows) - 1)

    def _width(self) -> int:
        """The column's width; it stays above the composer whether the scroll bar is there or not."""
        bar = self.verticalScrollBar().sizeHint().width()
        return max(80, min(COLUMN_WIDTH, self.width() - 2 * (_SIDE + bar)))

    def row_widget(self, index: int) -> UserMessage | AssistantMessage:
        """The widget of a row, made when there is none; it may be taken away when it is far and nobody uses it."""
        row = self._rows[index]
        if row.widget is None:
            self._live.add(index)
            if row.part == "question":
                row.widget = self._maker.question(row)
            else:
                row.widget = self._maker.answer(row, self._width(), self.viewport().height() + _AHEAD)
            row.widget.setParent(self._host)
            paint_growth_only(row.widget)
            row.widget.installEventFilter(self)
            row.widget.resize(self._width(), self._column.height(index))
            row.widget.show()
            if self.find_bar.has_marks:
                self.find_bar.mark(index)
        return row.widget

    def _drop(self, index: int) -> None:
        row = self._rows[index]
        widget = row.widget
        if widget is None:
            return
        if isinstance(widget, AssistantMessage) and widget.think_block is not None:
            row.thought_open = widget.think_block.is_open
        focus = QApplication.focusWidget()
        if focus is not None and widget.isAncestorOf(focus):
            self.setFocus()  # before it is hidden, or Qt walks on to wherever it likes
        row.widget = None
        self._live.discard(index)
        widget.removeEventFilter(self)
        widget.hide()
        widget.deleteLater()

    def _arrange(self, ahead: int = 0) -> None:
        """Widgets for the rows on screen, each in its place, and the reader where he was; those near come later."""
        if self._arranging:
            return
        self._arranging = True
        try:
            self._later.stop()
            for _ in range(3):
                self._go()
                if not self._lay_out(ahead):
                    break
            self._go()
            self._recycle()
        finally:
            self._arranging = False
        if self._following and self._latest.hasFocus():
            self._latest.clearFocus()  # hiding it would hand the focus on, and scroll to whoever got it
        bar = self.verticalScrollBar()
        self._latest.setVisible(not self._following and bar.value() < bar.maximum())
        if not self._following:
            self._latest.raise_()
        if not ahead:
            self._soon.start()

    def _look(self) -> None:
        self._arrange()

    def look_around(self) -> None:
        """Make what is a little beyond the screen, so that scrolling finds it there. Happens by itself, a bit later."""
        self._arrange(_AHEAD)

    def _lay_out(self, ahead: int) -> bool:
        """One pass; True when heights changed by it, so that other rows may be near now."""
        changed = False
        others = {index for index in self._live if ahead or self._rows[index].is_open}
        for index in self._from_anchor(ahead):
            changed |= self._fit(index)
            others.discard(index)
        for index in sorted(others):
            changed |= self._fit(index)
        left, width = max(0, (self.width() - self._width()) // 2), self._width()
        self._go()  # before rows grow: pixels are moved only while nothing that is seen waits for its paint
        for index in self._live:
            place = QRect(left, self._column.top(index) + _TOP, width, self._column.height(index))
            widget = self.row_widget(index)
            if widget.geometry() != place:
                widget.setGeometry(place)
        return changed

    def _fit(self, index: int) -> bool:
        """Measure one row, made if need be; True when its height is another one."""
        widget = self.row_widget(index)
        if isinstance(widget, AssistantMessage):
            view, port = widget.answer_view, self.viewport().height()
            begin = self._y_wanted() - _TOP - self._column.top(index) - view.y()
            view.show_range(begin - _AHEAD, begin + port + _AHEAD)
        return self._column.set_height(index, settled_height(widget, self._width())) != 0

    def _from_anchor(self, ahead: int) -> Iterator[int]:
        """The rows on screen, from the one that stays in its place; asked for while they are being measured."""
        count, port = len(self._rows), self.viewport().height()
        if not count:
            return
        anchor = count - 1 if self._following else self._places.index(self._kept.turn, self._kept.part)
        anchor = anchor if anchor >= 0 else self._column.at(max(0, self._y_wanted() - _TOP))
        for index in range(anchor, count):
            if index > anchor and self._column.top(index) + _TOP > self._y_wanted() + port + ahead:
                break
            yield index
        for index in range(anchor - 1, -1, -1):
            if self._column.bottom(index) + _TOP < self._y_wanted() - ahead:
                break
            yield index

    def _y_kept(self) -> int:
        y = self._places.y_of(self._kept)
        return self.verticalScrollBar().value() if y is None else y + _TOP

    def _y_wanted(self) -> int:
        """Where the scroll bar will be."""
        total = max(0, self._column.total + _TOP + _BOTTOM - self.viewport().height())
        return total if self._following else min(total, max(0, self._y_kept()))

    def _go(self) -> None:
        """Give the host its height and the scroll bar the place that is kept."""
        size = QSize(self.viewport().width(), max(self.viewport().height(), self._column.total + _TOP + _BOTTOM))
        if self._host.size() != size:
            self._host.resize(size)
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum() if self._following else self._y_kept())

    def _recycle(self) -> None:
        top = self.verticalScrollBar().value() - _TOP
        far = 3 * _AHEAD
        keep = set(self._column.between(top - far, top + self.viewport().height() + far))
        for index in list(self._live):
            if index not in keep and not self._rows[index].is_held:
                self._drop(index)

    def show_place(self, row: Row, y: int) -> None:
        """A place in an answer, in pixels from its text's top, at the top of the view."""
        if isinstance(row.widget, AssistantMessage):
            section, offset = row.widget.answer_view.place_at(y)
            self.show_position(ReadPosition(row.turn.id, row.part, section, offset - 12, at_end=False, in_text=True))

    def _live_widgets(self) -> list[QWidget]:
        return [self.row_widget(index) for index in sorted(self._live)]

    def _on_scrolled(self, value: int) -> None:
        if self._arranging:
            return
        self._following = value >= self.verticalScrollBar().maximum() - _NEAR_END
        self._kept = self._places.at(self.verticalScrollBar().value() - _TOP)
        self._arrange()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest and not self._arranging:
            self._later.start()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self._latest.size()
        self._latest.move((self.width() - size.width()) // 2, self.height() - size.height() - 12)
        self.find_bar.place()
        self._arrange()

    def wheelEvent(self, event: QWheelEvent) -> None:
        super().wheelEvent(event)
        event.accept()

    def sizeHint(self) -> QSize:
        return QSize(COLUMN_WIDTH, 400)
