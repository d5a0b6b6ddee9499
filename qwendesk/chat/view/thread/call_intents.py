"""How tools look in the thread, and the user's requests for single calls, which `CallActions` handles."""

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.view.thread.thumbnails import PreviewCache
from qwendesk.core.tool_context import ToolLook

_MOST_NAME = 60
"""Characters of the name of a tool that is not known."""


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

    def __init__(self, parent: QObject | None = None) -> None:
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
