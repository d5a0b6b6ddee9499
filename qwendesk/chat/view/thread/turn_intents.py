"""The user's requests for messages and tool calls in the thread, which the chat page handles."""

from collections.abc import Callable, Mapping

import msgspec
from PySide6.QtCore import QObject, Signal

from qwendesk.chat.view.answer.source_links import SourceIntents
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.core.stats import AnswerStats
from qwendesk.core.tool_context import ToolLook

# Characters of the name of a tool that is not known.
_MOST_NAME = 60

# Property of a message's widget while it is being edited, because no other object has the typed text.
EDITED = "edited"


class CallIntents(QObject):
    """The requests of a whole thread. Rows of calls emit the signals."""

    stop = Signal(str)
    """The id of a call that runs."""
    retry = Signal(int, int)
    """Turn id, and the number of a call in its answer."""
    undo = Signal(str)
    redo = Signal(str)
    """The id of a call that changed a file."""
    folder_opened = Signal(str)
    """Path of a folder to show in the system's program for files."""
    difference = Signal(object)
    """A CallRow that is to show what has changed in its file since."""
    edit_shown = Signal(object)
    """A CallRow that needs to know how its file is now."""
    picture_opened = Signal(str)
    """Path of a picture in a result, to show at full size."""
    edits_changed = Signal()
    """Files may have changed: rows ask again how theirs are."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.looks: Mapping[str, ToolLook] = {}
        """The tools by the names by which the model calls them."""
        self.previews = PreviewCache()
        """Of the pictures in results."""

    def look(self, tool: str) -> ToolLook:
        """Return how a tool looks. One that is not known is shown by its name, which may be any text."""
        return self.looks.get(tool) or ToolLook(_on_one_line(tool))


def _on_one_line(name: str) -> str:
    shown = " ".join("".join(character if character.isprintable() else " " for character in name).split())
    return shown if len(shown) <= _MOST_NAME else f"{shown[:_MOST_NAME]}…"


class EditDraft(msgspec.Struct, frozen=True):
    """An unfinished edit of a message."""

    text: str
    thought: str = ""


class BranchLink(msgspec.Struct, frozen=True):
    """A branch of this chat: its id, and its title to show."""

    chat_id: str
    title: str


class TurnIntents(QObject):
    """The requests of a whole thread. Messages emit the signals, and the chat page handles them."""

    question_edited = Signal(int, str)
    """Turn id, and the edited question."""
    answer_edited = Signal(int, str, str)
    """Turn id, edited answer and edited thinking."""
    edit_begun = Signal(int)
    """Turn id: the user is editing its question."""
    edit_ended = Signal()
    """The edited question was sent or discarded."""
    regenerate = Signal(int)
    regenerate_varied = Signal(int)
    """With other sampling values for this answer, because the shown one repeated itself."""
    other_template = Signal(int)
    """With another built-in chat template, because the model has none of its own."""
    resume = Signal(int)
    continue_thinking = Signal(int)
    branch = Signal(int)
    branch_opened = Signal(str)
    """The chat id of a branch that was made at a message."""
    delete = Signal(int, str)
    """Turn id, and "question" or "answer"."""
    version = Signal(int, str, int)
    """Turn id, part, and -1 (previous version) or 1 (next)."""
    busy_changed = Signal()
    """An answer started or ended. Actions that change the chat are disabled in between."""

    why_asked = Signal(object)
    """The user wants to know why an answer was as fast as it was; carries the Answer."""

    turns_changed = Signal()
    """Turns were replaced or removed. Another answer may be the last one."""
    branches_changed = Signal()
    """Branches of this chat were added, renamed or deleted."""
    edits_changed = Signal()
    """An edit changed, was accepted or was discarded."""
    edits_restored = Signal()
    """`edits` were restored. The messages open their editors."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.is_last: Callable[[int], bool] = lambda _turn_id: False
        """Returns True for the conversation's last turn, the only one that can be continued."""
        self.is_busy: Callable[[], bool] = lambda: False
        """Returns True while an answer is generated and nothing can be changed."""
        self.asks_first: Callable[[], bool] = lambda: False
        """Returns True while the user is asked before an answer begins, because it would stop a measurement."""
        self.continue_reason: Callable[[], str] = str
        """Returns why the loaded model can't continue an answer; "" if it can."""
        self.template_notice: Callable[[], str] = str
        """Returns what to know of the loaded model's chat template; "" if it has one of its own."""
        self.speed_reason: Callable[[AnswerStats], str] = lambda _stats: ""
        """Returns why an answer was as fast as it was; "" if that isn't known any more, or not yet."""
        self.edits: dict[str, EditDraft] = {}
        """Unfinished edits by message id."""
        self.calls = CallIntents(self)
        """The requests for single tool calls."""
        self.sources = SourceIntents(self)
        """The sources that answers can cite, and the requests to see them."""
        self.branches: Mapping[str, tuple[BranchLink, ...]] = {}
        """The branches made at a message, by message id."""

    def show_branches(self, branches: Mapping[str, tuple[BranchLink, ...]]) -> None:
        """Show these branches below the messages they were made at."""
        if branches != self.branches:
            self.branches = branches
            self.branches_changed.emit()

    def keep_edit(self, node_id: str, edit: EditDraft) -> None:
        if node_id:
            self.edits[node_id] = edit
            self.edits_changed.emit()

    def drop_edit(self, node_id: str) -> None:
        if self.edits.pop(node_id, None) is not None:
            self.edits_changed.emit()

    def restore(self, edits: Mapping[str, EditDraft]) -> None:
        """Restore unfinished edits. Edits that were started since take precedence."""
        self.edits = {**edits, **self.edits}
        self.edits_restored.emit()
