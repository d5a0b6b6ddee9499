"""What people want with one message of the thread, on its way to whoever can do it."""

from collections.abc import Callable, Mapping

import msgspec
from PySide6.QtCore import QObject, Signal


class EditDraft(msgspec.Struct, frozen=True):
    """What stands in the editor of a message, not taken yet."""

    text: str
    thought: str = ""


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

    edits_changed = Signal()
    """Something was typed in a message that is being changed, or the change was taken or left."""
    edits_restored = Signal()
    """`edits` were kept from before: the messages they belong to open their editors."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_last: Callable[[int], bool] = lambda _turn_id: False
        """Whether a turn is the conversation's last: only that one can go on."""
        self.is_busy: Callable[[], bool] = lambda: False
        """While an answer is made, nothing can be changed."""
        self.edits: dict[str, EditDraft] = {}
        """By the id of the message that is being changed."""

    def keep_edit(self, node_id: str, edit: EditDraft) -> None:
        if node_id:
            self.edits[node_id] = edit
            self.edits_changed.emit()

    def drop_edit(self, node_id: str) -> None:
        if self.edits.pop(node_id, None) is not None:
            self.edits_changed.emit()

    def restore(self, edits: Mapping[str, EditDraft]) -> None:
        """Take over what was kept; what is typed by now is newer."""
        self.edits = {**edits, **self.edits}
        self.edits_restored.emit()
