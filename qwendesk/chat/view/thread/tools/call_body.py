"""The content of an opened row of a tool call: arguments, and the result as text, table, difference or pictures."""

import difflib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QSize
from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextFrameFormat, QTextLength, QTextTableFormat
from PySide6.QtWidgets import QWidget

from qwendesk.chat.view.thread.pictures.thumbnails import Thumbnail
from qwendesk.chat.view.thread.turn_intents import CallIntents
from qwendesk.core.citations import SEARCH, citations_in
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import CallRecord, ImagePart
from qwendesk.core.tool_context import MOST_CHARACTERS, Decision
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_elapsed
from qwendesk.widgets.drag_and_drop import make_draggable
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_pane import TextPane
from qwendesk.widgets.theme_keeper import current_theme

# Characters of the arguments in the header.
_MOST_SHORT = 60
# Characters of a result that is shown in the header as it is.
_MOST_RESULT = 48
# Characters of arguments, and of a result, that are opened. An imported chat may have longer ones.
_MOST_OPENED = 2 * MOST_CHARACTERS
# Of a table.
_MOST_COLUMNS, _MOST_LINES = 12, 200


class ResultTable(msgspec.Struct, frozen=True):
    """A result that is a table."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    n_more: int = 0
    """Number of lines that are left out."""


def decision_text(decision: Decision) -> str:
    """Return the words of a button."""
    match decision:
        case "once":
            return tr("Allow")
        case "chat":
            return tr("Allow in this chat")
        case "always":
            return tr("Always in this folder")
        case "refuse":
            return tr("Refuse")


def short_arguments(arguments_json: str) -> str:
    """Return the values of the arguments on one line. The JSON may be incomplete."""
    line = " ".join(", ".join(_shown_values(decoded(arguments_json))).split())
    return line if len(line) <= _MOST_SHORT else f"{line[:_MOST_SHORT]}…"


def _shown_values(arguments: dict[str, Any]) -> Iterator[str]:
    """Yield the values; of a change of a file only the file, and the lines that are read as a range."""
    is_change = {"path", "old", "new"} <= arguments.keys()
    first, last = arguments.get("first_line"), arguments.get("last_line")
    for name, value in arguments.items():
        if is_change and name in ("old", "new"):
            continue
        if name == "first_line" and last is not None:
            yield tr("lines {0}-{1}", as_text(first), as_text(last))
        elif name != "last_line" or first is None:
            yield as_text(value)


def outcome_text(record: CallRecord, progress: str = "") -> str:
    """Return what came of a call in a few words; of one that runs how far it is, if its tool tells that."""
    if not record.is_done:
        return progress or tr("Running…") if record.began_s else tr("Preparing…")
    if record.error:
        return tr("Refused") if record.consent == "refused" else tr("Failed")
    n_places = len(citations_in(record.result)) if record.call.name == SEARCH else 0
    if n_places:
        return tr_n("{0} place", "{0} places", n_places)
    lines = record.result.splitlines()
    is_short = len(lines) == 1 and len(lines[0]) <= _MOST_RESULT
    return lines[0] if is_short else tr_n("{0} line", "{0} lines", len(lines))


def time_text(record: CallRecord) -> str:
    """Return how long a call took; "" if it did not run to its end."""
    if not record.is_done or (record.error and not record.elapsed_s):
        return ""
    return show_elapsed(record.elapsed_s)


def arguments_text(record: CallRecord) -> str:
    """Return the arguments, each on its line; only the beginning of long ones."""
    arguments = decoded(record.call.arguments_json)
    lines = (f"{name}: {as_text(value)}" if name else as_text(value) for name, value in arguments.items())
    return _beginning("\n".join(lines))


def result_text(record: CallRecord) -> str:
    """Return the error or the result; only the beginning of a long one."""
    return _beginning(record.error or record.result)


def _beginning(text: str) -> str:
    return text if len(text) <= _MOST_OPENED else f"{text[:_MOST_OPENED]}…"


def change_text(record: CallRecord) -> str:
    """Return the change that a call asks for as a difference; "" if its arguments are not those of a change.

    One that is longer than any that was allowed is none either: comparing it could take minutes.
    """
    if len(record.call.arguments_json) > _MOST_OPENED:
        return ""
    arguments = decoded(record.call.arguments_json)
    before, after, name = (arguments.get(key) for key in ("old", "new", "path"))
    if not (isinstance(before, str) and isinstance(after, str) and isinstance(name, str)):
        return ""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=1, lineterm="")
    return "\n".join(line for line in lines if not line.startswith("@@"))


def table_of(result: str) -> ResultTable | None:
    """Return a result as a table: a list of JSON objects with the same simple values, or a Markdown table."""
    return _json_table(result) or _markdown_table(result)


def _json_table(result: str) -> ResultTable | None:
    if not result.lstrip().startswith("["):
        return None
    try:
        found = decode_json(result)
    except msgspec.DecodeError:
        return None
    rows = found if isinstance(found, list) else []
    if not rows or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        return None
    is_simple = all(isinstance(value, str | int | float | bool | None) for row in rows for value in row.values())
    return _table(tuple(rows[0]), [tuple(map(as_text, row.values())) for row in rows]) if is_simple else None


def _markdown_table(result: str) -> ResultTable | None:
    lines = [line.strip() for line in result.strip().splitlines()]
    if len(lines) < 3 or not all(line.startswith("|") and line.endswith("|") and len(line) > 1 for line in lines):
        return None
    rows = [tuple(cell.strip() for cell in line[1:-1].split("|")) for line in lines]
    is_ruled = all(cell and set(cell) <= set(":-") for cell in rows[1])
    same_width = all(len(row) == len(rows[0]) for row in rows)
    return _table(rows[0], rows[2:]) if is_ruled and same_width else None


def _table(columns: tuple[str, ...], lines: list[tuple[str, ...]]) -> ResultTable | None:
    if not 0 < len(columns) <= _MOST_COLUMNS:
        return None
    return ResultTable(columns, tuple(lines[:_MOST_LINES]), max(0, len(lines) - _MOST_LINES))


def decoded(arguments_json: str) -> dict[str, Any]:
    """Return the arguments by name; under "" what is no JSON object."""
    try:
        arguments = decode_json(arguments_json or "{}")
    except msgspec.DecodeError:
        return {"": arguments_json}
    return arguments if isinstance(arguments, dict) else {"": arguments}


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Colours of the lines of a difference by their first character, after the two lines of its head.
_ROLES = {"+": "text_good", "-": "text_bad"}
_CELL_PADDING = 4


class CallBody(TextPane):
    """Everything is written as plain text: what tools give is data, in which nothing is a link or a picture."""

    def show_record(self, record: CallRecord, *, is_change: bool, is_code: bool) -> None:
        """Show a call. `is_change`: its arguments are a change of a file. `is_code`: they and the result are code."""
        change = change_text(record) if is_change else ""
        if change:
            self.show_difference(change, record.error)
            return
        cursor = self._begin(is_code=is_code)
        arguments, result, table = arguments_text(record), result_text(record), None
        cursor.insertText(arguments, self._format("text_dim"))
        if arguments and result:
            cursor.insertText("\n\n", self._format("text_dim"))
        if not record.error:
            table = table_of(record.result)
        if table is not None:
            self._insert_table(cursor, table)
        else:
            cursor.insertText(result, self._format("text_bad" if record.error else "text"))
        self.fit_height()

    def show_difference(self, text: str, error: str = "") -> None:
        """Show a difference in the colours that its lines usually have, and below it an `error`."""
        cursor = self._begin(is_code=True)
        for number, line in enumerate(text.split("\n")):
            role = _ROLES.get(line[:1], "text_dim") if number > 1 else "text_dim"
            cursor.insertText(("\n" if number else "") + line, self._format(role))
        if error:
            cursor.insertText(f"\n\n{error}", self._format("text_bad"))
        self.fit_height()

    def show_details(self, text: str) -> None:
        """Show all that a call would do, in the type in which similar letters look most different."""
        self._begin(is_code=True).insertText(text, self._format("text"))
        self.fit_height()

    def show_text(self, text: str) -> None:
        self._begin(is_code=False).insertText(text, self._format("text_dim"))
        self.fit_height()

    def _begin(self, *, is_code: bool) -> QTextCursor:
        theme = current_theme()
        self.clear()
        self.document().setDefaultFont(theme.mono_font(12) if is_code else theme.font(13))
        return QTextCursor(self.document())

    def _format(self, role: str) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setForeground(current_theme().color(role))
        return form

    def _insert_table(self, cursor: QTextCursor, table: ResultTable) -> None:
        form = QTextTableFormat()
        form.setHeaderRowCount(1)
        form.setCellPadding(_CELL_PADDING)
        form.setCellSpacing(0)
        form.setBorder(1)
        form.setBorderCollapse(True)
        form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        form.setBorderBrush(current_theme().color("border"))
        form.setColumnWidthConstraints([QTextLength() for _ in table.columns])
        shown = cursor.insertTable(1 + len(table.lines), len(table.columns), form)
        head = self._format("text")
        head.setFontWeight(600)
        for row, cells in enumerate((table.columns, *table.lines)):
            for column, text in enumerate(cells):
                place = shown.cellAt(row, column).firstCursorPosition()
                place.insertText(text, self._format("text") if row else head)
        if table.n_more:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(tr_n("{0} more line", "{0} more lines", table.n_more), self._format("text_dim"))


_LARGEST = QSize(180, 140)


class CallPictures(QWidget):
    """Hidden while there are none."""

    def __init__(self, name: str, intents: CallIntents) -> None:
        super().__init__()
        self._name, self._intents = name, intents
        self._shown: Sequence[ImagePart] = ()
        self._row = FlowLayout(self)
        self.hide()

    def show_images(self, images: Sequence[ImagePart]) -> None:
        """Show these pictures. A call gets them once, when it is done."""
        if images == self._shown:
            return
        self._shown = images
        previews = self._intents.previews
        for number, image in enumerate(images, 1):
            path = Path(image.path)
            if image.data:  # of an incognito chat: there is no file
                previews.incognito_images.keep(image)
            thumbnail = Thumbnail(path, _LARGEST)
            thumbnail.setObjectName(f"{self._name}.{number}")
            thumbnail.opened.connect(self._intents.picture_opened)
            make_draggable(thumbnail, partial(previews.mime, path))
            self._row.addWidget(thumbnail)
            window_tasks().start(thumbnail.fill(previews), thumbnail)
        self.show()
