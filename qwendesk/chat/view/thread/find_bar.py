"""Find in chat: a search bar over the conversation. It searches the whole conversation, not only the drawn rows."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QLabel, QLineEdit, QWidget
from shiboken6 import isValid

from qwendesk.chat.view.answer.text_search import Match, count_in_text, count_markdown, iter_counts, may_contain
from qwendesk.chat.view.thread.rows import Part, Row
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, describe
from qwendesk.widgets.step_budget import StepBudget, StepwiseWork
from qwendesk.widgets.theme_keeper import app_theme

_MAX_MATCHES = 10_000


class SearchedThread(Protocol):
    """A conversation that can be searched."""

    @property
    def rows(self) -> Sequence[Row]: ...

    def row_widget(self, index: int) -> QWidget:
        """Return the widget of a row, creating it if necessary."""

    def top_row(self) -> int:
        """Return the row at the top of the viewport; -1 in an empty chat."""

    def live_rows(self) -> list[int]:
        """Return the rows that have widgets."""

    def show_row(self, index: int) -> None:
        """Scroll a row to the top of the viewport."""

    def show_below(self, index: int, offset: int) -> None:
        """Scroll to a position in a row, in pixels from its top."""

    def show_match(self, index: int, number: int, query: str) -> None:
        """Scroll to one match of `query`."""


class FindBar(QFrame):
    """A search bar, hidden until `open`. Enter and Shift+Enter go through the matches, Esc closes it."""

    def __init__(self, thread: SearchedThread, budget: StepBudget, parent: QWidget) -> None:
        """`parent` is the widget below the bar. It gets the focus on closing if the previous widget is gone."""
        super().__init__(parent)
        self._thread = thread
        self._parent = parent
        self._matches: list[Match] = []
        self._current = -1
        self._hit: tuple[int, Part, str] | None = None
        """Turn, part and words of a match of the search in all chats. It is highlighted even if the bar is closed."""
        self._has_searched_all = False
        self._before: QWidget | None = None
        """The widget that had the focus before the bar was opened."""
        self._searching = StepwiseWork(self, budget)
        self.setProperty("kind", "popover")
        self.setObjectName("thread.find")
        self.text = QLineEdit()
        self.text.setPlaceholderText(tr("Find in this chat"))
        describe(self.text, "thread.find.text", tr("Find in this chat"), shortcut="Ctrl+F")
        self.count = QLabel()
        self.count.setProperty("kind", "small")
        self.count.setObjectName("thread.find.count")
        self.count.setMinimumWidth(84)
        self.count.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 6, 6, 6)
        row.setSpacing(4)
        row.addWidget(self.text, 1)
        row.addWidget(self.count)
        for icon, name, text, shortcut, run in (
            ("up", "previous", tr("Previous match"), "Shift+Return", lambda: self.step(-1)),
            ("down", "next", tr("Next match"), "Return", lambda: self.step(1)),
            ("close", "close", tr("Close"), "Esc", self.close_bar),
        ):
            button = IconButton(icon, size=16, side=28)
            describe(button, f"thread.find.{name}", text, shortcut=shortcut)
            button.clicked.connect(run)
            row.addWidget(button)
        for control in (self.text, *self.findChildren(IconButton)):
            control.installEventFilter(self)
        self.text.textChanged.connect(self.search_again)
        app_theme().changed.connect(self._mark_all)
        self.hide()

    @property
    def matches(self) -> list[Match]:
        """The matches found so far."""
        return list(self._matches)

    @property
    def has_marks(self) -> bool:
        """Whether matches must be highlighted in a new row."""
        return self.isVisible() or self._hit is not None

    def show_hit(self, turn_id: int, part: Part, query: str, *, in_thought: bool) -> None:
        """Go to a message found by the search in all chats, and highlight the words until the next search."""
        rows = self._thread.rows
        index = next((i for i, row in enumerate(rows) if row.turn.id == turn_id and row.part == part), -1)
        if index < 0:
            return
        if self.isVisible():
            self.close_bar()
        self._thread.show_row(index)
        self._thread.row_widget(index)
        answer = rows[index].answer_widget
        if in_thought and answer is not None:
            self._thread.show_below(index, answer.mark_thinking(query))
            return
        self._hit = (turn_id, part, query)
        is_there = count_markdown if part == "answer" else count_in_text
        if is_there(_source(rows[index]), query):
            self._thread.show_match(index, 0, query)
        self._mark_all()

    def forget_hit(self) -> None:
        """Remove the highlights of `show_hit`."""
        if self._hit is not None:
            self._hit = None
            self._mark_all()

    @property
    def is_searching(self) -> bool:
        return self._searching.is_active

    def open(self) -> None:
        """Show the bar with its text selected."""
        self._hit = None
        if self.isHidden():
            self._before = QApplication.focusWidget()
        self.show()
        self.place()
        self.raise_()
        self.text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.text.selectAll()
        self.search_again()

    def close_bar(self) -> None:
        """Hide the bar and the highlights, and return the focus. The conversation isn't scrolled."""
        self._searching.stop()
        self._matches, self._current = [], -1
        self._mark_all()
        self.hide()
        before, self._before = self._before, None
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self._parent.setFocus()

    def place(self) -> None:
        width = min(420, max(260, self._parent.width() - 48))
        self.setGeometry(max(8, self._parent.width() - width - 24), 12, width, self.sizeHint().height())

    def search_again(self) -> None:
        """Search again from the start, if the bar is visible."""
        if self.isHidden():
            return
        self._matches, self._current, self._has_searched_all = [], -1, False
        self._searching.stop()
        if self.text.text():
            self._searching.start(self._search)
            self._show_count()
        else:
            self._mark_all()
            self._show_count()

    def step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match, wrapping around."""
        if self._matches:
            self._current = (self._current + step) % len(self._matches)
            self._show()

    def mark(self, row: int) -> None:
        """Highlight the matches in one row if it has a widget."""
        answer, question = self._thread.rows[row].answer_widget, self._thread.rows[row].question_widget
        query = "" if self.isHidden() or not self._matches else self.text.text()
        current = self._matches[self._current] if self._current >= 0 else None
        number = current.number if current is not None and current.row == row else -1
        turn, part = self._thread.rows[row].turn.id, self._thread.rows[row].part
        if self._hit is not None and self._hit[:2] == (turn, part):
            query, number = self._hit[2], 0
        if answer is not None:
            answer.answer_view.mark_found(query, number)
        elif question is not None:
            question.mark_found(query, number)

    def _search(self) -> Iterator[None]:
        """Search row by row, one slice of a long answer per step."""
        query, rows = self.text.text(), self._thread.rows
        for index, row in enumerate(rows):
            source = _source(row)
            is_possible = False
            for is_possible in may_contain(source, query):
                if is_possible:
                    break
                yield
            if not is_possible:
                continue
            number = 0
            for count in iter_counts(source, query) if row.part == "answer" else (count_in_text(source, query),):
                first = not self._matches
                self._matches += [Match(index, number + each) for each in range(count)]
                number += count
                if first and self._matches:
                    yield
                    self._current = self._first_from_view()
                    self._show()
                yield
                if len(self._matches) >= _MAX_MATCHES:
                    break
            if len(self._matches) >= _MAX_MATCHES:
                break
            self._show_count()
        self._has_searched_all = True
        self._show_count()

    def _first_from_view(self) -> int:
        """Return the first match at or below the top of the viewport, or the first of all."""
        top = self._thread.top_row()
        return next((i for i, match in enumerate(self._matches) if match.row >= top), 0)

    def _show(self) -> None:
        match = self._matches[self._current]
        self._thread.show_match(match.row, match.number, self.text.text())
        self._mark_all()
        self._show_count()

    def _mark_all(self) -> None:
        for index in self._thread.live_rows():
            self.mark(index)

    def _show_count(self) -> None:
        if not self.text.text():
            self.count.setText("")
        elif not self._matches:
            self.count.setText(tr("Searching…") if not self._has_searched_all else tr("Not found"))
        else:
            more = "+" if not self._has_searched_all or len(self._matches) >= _MAX_MATCHES else ""
            self.count.setText(tr("{0} of {1}", self._current + 1, f"{show_count(len(self._matches))}{more}"))
        self.count.setAccessibleName(self.count.text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if event.type() is QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
            event.accept()  # so that Esc doesn't also stop the answer
            return True
        if event.type() is QEvent.Type.KeyPress:
            if watched is self.text and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.step(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close_bar()
                return True
        return super().eventFilter(watched, event)


def _source(row: Row) -> str:
    return row.turn.question.text.strip() if row.part == "question" else row.turn.answer.text
