"""Find in chat: one line over the conversation that looks through all of it, drawn or not."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QLabel, QLineEdit, QWidget
from shiboken6 import isValid

from qwendesk.ui.kit.buttons import IconButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.find_text import Match, count_markdown, count_plain, may_contain
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.rows import Part, Row

if TYPE_CHECKING:
    from qwendesk.ui.thread.thread_view import ThreadView

_ROWS_AT_ONCE = 8
"""Rows that are read before the window may do something else."""
_MOST = 10_000


class FindBar(QFrame):
    """Hidden until `open`; Enter and Shift+Enter walk through what was found, Esc closes."""

    def __init__(self, keeper: ThemeKeeper, thread: "ThreadView") -> None:
        super().__init__(thread)
        self._thread = thread
        self._matches: list[Match] = []
        self._current = -1
        self._hit: tuple[int, Part, str] | None = None
        """Turn, part and words that a search in all chats led to: marked while the bar itself is not in use."""
        self._next_row = 0
        self._before: QWidget | None = None
        """Who had the focus when it was opened."""
        self._slow = QTimer(self, singleShot=True, interval=0)
        self._slow.timeout.connect(self._search_some)
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
            ("up", "previous", tr("The place before"), "Shift+Return", lambda: self.step(-1)),
            ("down", "next", tr("The next place"), "Return", lambda: self.step(1)),
            ("close", "close", tr("Close"), "Esc", self.close_bar),
        ):
            button = IconButton(keeper, icon, size=16, side=28)
            describe(button, f"thread.find.{name}", text, shortcut=shortcut)
            button.clicked.connect(run)
            row.addWidget(button)
        for control in (self.text, *self.findChildren(IconButton)):
            control.installEventFilter(self)
        self.text.textChanged.connect(self.search_again)
        keeper.changed.connect(self._mark_all)
        self.hide()

    @property
    def matches(self) -> list[Match]:
        """All places found so far."""
        return list(self._matches)

    @property
    def has_marks(self) -> bool:
        """Whether a new row is to be marked."""
        return self.isVisible() or self._hit is not None

    def show_hit(self, turn_id: int, part: Part, words: str, *, in_thought: bool) -> None:
        """Go to a message that was found from outside, and mark the words in it until something else is looked for."""
        rows = self._thread.rows
        index = next((i for i, row in enumerate(rows) if row.turn.id == turn_id and row.part == part), -1)
        if index < 0:
            return
        if self.isVisible():
            self.close_bar()
        self._thread.show_row(index)
        widget = self._thread.row_widget(index)
        if in_thought and isinstance(widget, AssistantMessage):
            self._thread.show_below(index, widget.mark_thought(words))
            return
        self._hit = (turn_id, part, words)
        is_there = count_markdown if part == "answer" else count_plain
        if is_there(_source(rows[index]), words):
            self._thread.show_match(index, 0, words)
        self._mark_all()

    def forget_hit(self) -> None:
        """What led here is not looked for any more."""
        if self._hit is not None:
            self._hit = None
            self._mark_all()

    @property
    def is_searching(self) -> bool:
        return self._slow.isActive()

    def open(self) -> None:
        """Show it, with its words selected, ready to type."""
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
        """Hide it and the marks; the reader stays where the last place was."""
        self._slow.stop()
        self._matches, self._current = [], -1
        self._mark_all()
        self.hide()
        before, self._before = self._before, None
        if before is not None and isValid(before) and before.isVisible():
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            self._thread.setFocus()

    def place(self) -> None:
        width = min(420, max(260, self._thread.width() - 48))
        self.setGeometry(max(8, self._thread.width() - width - 24), 12, width, self.sizeHint().height())

    def search_again(self) -> None:
        """Look for the words from the start; nothing while it is hidden."""
        if self.isHidden():
            return
        self._matches, self._current, self._next_row = [], -1, 0
        self._slow.stop()
        if self.text.text():
            self._search_some()
        else:
            self._mark_all()
            self._say()

    def step(self, step: int) -> None:
        """Go to the next (1) place or the one before (-1), around the ends."""
        if self._matches:
            self._current = (self._current + step) % len(self._matches)
            self._show()

    def mark(self, row: int) -> None:
        """Mark the places in one row's widget, if it has one."""
        widget = self._thread.rows[row].widget
        words = "" if self.isHidden() or not self._matches else self.text.text()
        current = self._matches[self._current] if self._current >= 0 else None
        number = current.number if current is not None and current.row == row else -1
        turn, part = self._thread.rows[row].turn.id, self._thread.rows[row].part
        if self._hit is not None and self._hit[:2] == (turn, part):
            words, number = self._hit[2], 0
        if isinstance(widget, AssistantMessage):
            widget.answer_view.mark_found(words, number)
        elif widget is not None:
            widget.mark_found(words, number)

    def _search_some(self) -> None:
        words, rows = self.text.text(), self._thread.rows
        first = not self._matches
        read = 0
        while self._next_row < len(rows) and read < _ROWS_AT_ONCE and len(self._matches) < _MOST:
            index, self._next_row = self._next_row, self._next_row + 1
            source = _source(rows[index])
            if not may_contain(source, words):
                continue
            read += 1
            is_answer = rows[index].part == "answer"
            count = count_markdown(source, words) if is_answer else count_plain(source, words)
            self._matches += [Match(index, number) for number in range(count)]
        if self._next_row < len(rows) and len(self._matches) < _MOST:
            self._slow.start()
        if first and self._matches:
            self._current = self._first_from_view()
            self._show()
        self._say()

    def _first_from_view(self) -> int:
        """The first place at or below the top of the view, or the first of all."""
        top = self._thread.top_row()
        return next((i for i, match in enumerate(self._matches) if match.row >= top), 0)

    def _show(self) -> None:
        match = self._matches[self._current]
        self._thread.show_match(match.row, match.number, self.text.text())
        self._mark_all()
        self._say()

    def _mark_all(self) -> None:
        for index in self._thread.live_rows():
            self.mark(index)

    def _say(self) -> None:
        if not self.text.text():
            self.count.setText("")
        elif not self._matches:
            self.count.setText(tr("Searching…") if self.is_searching else tr("Not found"))
        else:
            more = "+" if self.is_searching or len(self._matches) >= _MOST else ""
            self.count.setText(tr("{0} of {1}", self._current + 1, f"{len(self._matches):,}{more}"))
        self.count.setAccessibleName(self.count.text())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if event.type() is QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
            event.accept()  # the window's own Esc, which stops an answer, waits
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
