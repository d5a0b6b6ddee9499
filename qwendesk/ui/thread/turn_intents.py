"""What people want with one message of the thread, on its way to whoever can do it."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal


class TurnIntents(QObject):
    """One for a whole thread: its messages emit, the page listens."""

    question_edited = Signal(int, str)
    """Turn, and the question in its new words."""
    answer_edited = Signal(int, str, str)
    """Turn, answer, thought."""
    regenerate = Signal(int)
    resume = Signal(int)
    branch = Signal(int)
    delete = Signal(int, str)
    """Turn, "question" or "answer"."""
    version = Signal(int, str, int)
    """Turn, part, -1 or 1."""
    busy_changed = Signal()
    """An answer began or ended: what cannot be done meanwhile is disabled."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_last: Callable[[int], bool] = lambda _turn_id: False
        """Whether a turn is the conversation's last: only that one can go on."""
        self.is_busy: Callable[[], bool] = lambda: False
        """While an answer is made, nothing can be changed."""
