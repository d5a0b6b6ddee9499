"""Qt's application, and what the system asks of it: to open files, or to quit."""

import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

if TYPE_CHECKING:
    from qwendesk.app.window.file_opener import FileOpener


def use_plain_imports() -> None:
    """Remove the function that PySide6 puts in place of Python's own for imports.

    It reads the source of each module that is imported later, to find `from __feature__ import`, which changes Qt's
    names. QwenDesk doesn't use that, and reading takes a tenth of the window's start.
    """
    builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)


class Application(QApplication):
    """The application. What the system asks before the window is there waits for `give_to`.

    Both arrive as events of the application. An event filter would see each event of each widget, which takes time.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(list(arguments))
        self._opening: FileOpener | None = None
        self._files: list[Path] = []
        self._quits = False

    def give_to(self, opening: "FileOpener | None") -> None:
        """From now on, open files with the window's `opening`, first those that have come before; None ends that."""
        self._opening = opening
        self._pass_on()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FileOpen and isinstance(event, QFileOpenEvent) and event.file():
            # macOS opens files so.
            self._files.append(Path(event.file()))
        elif event.type() == QEvent.Type.Quit:
            # Quit in the system menu of macOS. Qt would close the window, which may only hide it.
            self._quits = True
        else:
            return super().event(event)
        self._pass_on()
        return True

    def _pass_on(self) -> None:
        if self._opening is None:
            return
        files, self._files = self._files, []
        quits, self._quits = self._quits, False
        if files:
            self._opening.open(files)
        if quits:
            self._opening.quit_asked.emit()
