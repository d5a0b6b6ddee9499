"""Helpers that wait for the colours of code, and read them."""

import itertools

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.answer.highlight_protocol import Highlighted
from qwendesk.chat.view.answer.highlighter import Highlighter


def wait_for_colours(highlighter: Highlighter, app: QApplication) -> None:
    """Return when no code waits for its colours."""
    # Under Wine, what is written to a process waits for another event before it is sent.
    waker = QTimer(interval=20)
    waker.start()
    while highlighter.is_busy:
        app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    waker.stop()


def drawn_colours(document: QTextDocument) -> list[tuple[str, str]]:
    """Return every visible character of a document with its colour."""
    found: list[tuple[str, str]] = []
    block = document.begin()
    while block.isValid():
        parts = block.begin()
        while not parts.atEnd():
            part = parts.fragment()
            colour = part.charFormat().foreground().color().name()
            found += [(letter, colour) for letter in part.text() if not letter.isspace()]
            parts += 1
        block = block.next()
    return found


def roles(code: str, result: Highlighted) -> list[tuple[str, str]]:
    """Return every visible character of `code` with its role."""
    each = itertools.chain.from_iterable([run.role] * run.length for run in result.runs)
    return [(letter, role) for letter, role in zip(code, each, strict=True) if not letter.isspace()]


class Shown:
    """Stands in for a code card: what it last got."""

    def __init__(self, highlighter: Highlighter, code: str, language: str) -> None:
        self._highlighter, self._code, self._language = highlighter, code, language
        self.result: Highlighted | None = None
        self.times_told = 0
        self._ask()

    def show(self, code: str) -> None:
        self._code = code
        self._ask()

    def show_colours(self) -> None:
        self.times_told += 1
        self._ask()

    def _ask(self) -> None:
        self.result = self._highlighter.colours(self, self._code, self._language)

    @property
    def is_plain(self) -> bool:
        return self.result is not None and {run.role for run in self.result.runs} <= {"code_text"}
