"""The code in one card of an answer, coloured once the highlighter has returned, and saving it as a file."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextBlockFormat, QTextCharFormat, QTextCursor, QTextFrame
from PySide6.QtWidgets import QWidget

from qwendesk.chat.view.answer.highlight_protocol import PLAIN, ColourRun, is_highlightable
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import tr
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme import Theme

_LINE_HEIGHT = 128.0


class CodeCard:
    """Writes code into a frame. `text` is all of it, for the Copy button.

    Colours change the format of existing text but never its font, so nothing moves and selections are kept.
    """

    def __init__(self, info: str, theme: Theme, highlighter: Highlighter | None) -> None:
        self.language = language_name(info)
        self.text = ""
        self.info = info
        self._theme = theme
        self._highlighter = highlighter
        self._frame: QTextFrame | None = None
        self._cursor = QTextCursor()
        self._formats: dict[str, QTextCharFormat] = {}
        self._shown = ""
        self._is_open = False
        self._highlighted = ""
        """The code that is completely highlighted."""
        self._settled = 0
        """Number of characters whose colours are final and need no further request."""
        self._runs: tuple[ColourRun, ...] = ()
        """Colours of the text after the settled characters, as far as they are painted."""

    @property
    def frame(self) -> QTextFrame | None:
        return self._frame

    def begin(self, cursor: QTextCursor, frame: QTextFrame) -> None:
        """Write into the empty frame that contains `cursor`."""
        self._frame = frame
        self._cursor = QTextCursor(cursor)
        form = QTextBlockFormat()
        form.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        form.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        self._cursor.setBlockFormat(form)
        self._cursor.setBlockCharFormat(self._format(PLAIN))

    def update(self, text: str, *, is_open: bool = False) -> None:
        """Show `text`. While it `is_open`, only complete lines are highlighted, each of them once."""
        self.text, self._is_open = text, is_open
        if self._frame is None:
            return
        before, self._shown = self._shown, text.removesuffix("\n")
        kept = len(before) if self._shown.startswith(before) else _common(before, self._shown)
        if kept < len(before):
            self._drop_runs(kept)
        if kept < max(len(before), len(self._shown)):
            self._cursor.setPosition(self._position(kept))
            self._cursor.setPosition(self._frame.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
            self._cursor.insertText(self._shown[kept:], self._format(PLAIN))
        self.show_colours()

    def show_colours(self) -> None:
        """Show the known colours, and request the missing ones."""
        if self._highlighter is None or self._frame is None or self._cursor.isNull():
            return
        code = self.text[: self.text.rfind("\n") + 1] if self._is_open else self.text
        if not is_highlightable(code):
            self._highlighter.forget(self)
            if self._settled or self._runs:
                self._highlighted, self._settled, self._runs = "", 0, ()
                self._paint(((0, len(self._shown), PLAIN),))
            return
        if code == self._highlighted:
            return
        rest = code[self._settled :]
        found = self._highlighter.colours(self, rest, self.language)
        if found is not None:
            self._show_runs(found.runs)
            if found.length == len(rest):
                self._highlighted = code
                self._settle(found.settled_length)

    def close(self) -> None:
        """Stop using the frame, which is about to be removed."""
        self._frame = None
        if self._highlighter is not None:
            self._highlighter.forget(self)

    def _show_runs(self, runs: tuple[ColourRun, ...]) -> None:
        """Apply the runs that differ from the current ones."""
        same = _common(self._runs, runs)
        start = self._settled + _length(runs[:same])
        spans = [(start, self._settled + _length(self._runs), PLAIN)]
        for run in runs[same:]:
            if run.role != PLAIN:
                spans.append((start, start + run.length, run.role))
            start += run.length
        self._paint(spans)
        self._runs = runs

    def _settle(self, length: int) -> None:
        """Mark the first `length` characters of the runs as final. Later requests start after them."""
        covered = 0
        while covered < length:
            covered, self._runs = covered + self._runs[0].length, self._runs[1:]
        self._settled += length

    def _drop_runs(self, kept: int) -> None:
        """Remove the colours that may be wrong if only the first `kept` characters remain."""
        self._highlighted = ""
        if kept < self._settled:
            self._settled, self._runs = 0, ()
        while self._runs and self._settled + _length(self._runs) > kept:
            self._runs = self._runs[:-1]
        self._paint(((self._settled + _length(self._runs), kept, PLAIN),))

    def _paint(self, spans: Sequence[tuple[int, int, str]]) -> None:
        """Apply formats by role to spans of the code, given as first and last character."""
        self._cursor.beginEditBlock()
        at, position = 0, self._position(0)
        for start, stop, role in spans:
            end = min(stop, len(self._shown))
            if start >= end:
                continue
            if start < at:
                at, position = 0, self._position(0)
            position += _units(self._shown[at:start])
            self._cursor.setPosition(position)
            position += _units(self._shown[start:end])
            self._cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self._cursor.setCharFormat(self._format(role))
            at = end
        self._cursor.endEditBlock()

    def _position(self, character: int) -> int:
        """Return the position in the document of a character of the code."""
        assert self._frame is not None
        return self._frame.firstPosition() + _units(self._shown[:character])

    def _format(self, role: str) -> QTextCharFormat:
        if role not in self._formats:
            self._formats[role] = self._new_format(role)
        return self._formats[role]

    def _new_format(self, role: str) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(self._theme.mono_font(13))
        form.setForeground(self._theme.color(role))
        return form


def language_name(info: str) -> str:
    """Return the language in the info string of a fence: "python" for `python title="x"`; "" if there is none."""
    words = info.split()
    return words[0].strip("{}.,") if words else ""


def _common(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common beginning of two sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def _length(runs: Sequence[ColourRun]) -> int:
    return sum(run.length for run in runs)


def _units(text: str) -> int:
    """Return the length of `text` in a text document, which counts UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


_SUFFIXES: Final = {
    "python": "py", "py": "py", "bash": "sh", "sh": "sh", "shell": "sh", "zsh": "sh", "powershell": "ps1",
    "javascript": "js", "js": "js", "typescript": "ts", "ts": "ts", "tsx": "tsx", "jsx": "jsx", "html": "html",
    "css": "css", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "xml": "xml", "sql": "sql",
    "c": "c", "cpp": "cpp", "c++": "cpp", "csharp": "cs", "cs": "cs", "c#": "cs", "java": "java", "kotlin": "kt",
    "rust": "rs", "go": "go", "ruby": "rb", "php": "php", "swift": "swift", "lua": "lua", "r": "r", "markdown": "md",
    "md": "md", "latex": "tex", "tex": "tex", "csv": "csv", "ini": "ini", "diff": "diff", "dockerfile": "dockerfile",
}  # fmt: skip


def suggested_name(language: str) -> str:
    """Return a file name such as "code.py" for Python; "code.txt" for an unknown language."""
    return f"code.{_SUFFIXES.get(language.lower(), 'txt')}"


def ask_to_save_code(parent: QWidget, text: str, language: str) -> None:
    """Open the system's save dialog, and write the file once a location is chosen."""

    def save(path: str) -> None:
        window_tasks().start(write_code(Path(path), text))

    ask_where_to_save(parent, "thread.savecode", tr("Save the code as a file"), suggested_name(language), save)


async def write_code(path: Path, text: str) -> None:
    """Write `text` with a newline after its last line. Raise BadRequest if the file cannot be written."""
    content = text if text.endswith("\n") else text + "\n"
    try:
        # As the model wrote it: with Windows' line ends, a shell script would not run.
        await asyncio.to_thread(path.write_text, content, encoding="utf-8", newline="\n")
    except OSError as error:
        sentence = tr("Couldn't save {0}: {1}. Choose another location.", path, error.strerror or error)
        raise BadRequest(tr("Not saved"), sentence) from error
