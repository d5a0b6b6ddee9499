"""The part of the history of changed files that the chat uses."""

from typing import Protocol

from qwendesk.core.file_edits import EditStatus


class UndoableEdits(Protocol):
    """Changes that tools made of files, by the id of their call. Methods raise QwenDeskError for what can't be done."""

    async def status(self, call_id: str) -> EditStatus:
        """Return how the file of a change is now."""

    async def undo(self, call_id: str) -> None:
        """Make the file as it was before the change."""

    async def redo(self, call_id: str) -> None:
        """Make a change again that was undone."""

    async def difference(self, call_id: str) -> str:
        """Return what has changed in the file since the change was made; "" for nothing."""
