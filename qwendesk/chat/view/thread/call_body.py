"""What an opened row of a tool call shows: arguments, and the result as text, as a table or as a difference."""

from PySide6.QtGui import QTextCharFormat, QTextCursor, QTextFrameFormat, QTextLength, QTextTableFormat

from qwendesk.chat.view.thread.call_texts import ResultTable, arguments_text, change_text, result_text, table_of
from qwendesk.core.messages import CallRecord
from qwendesk.core.translation import tr_n
from qwendesk.widgets.text_pane import TextPane
from qwendesk.widgets.theme_keeper import current_theme

_ROLES = {"+": "text_good", "-": "text_bad"}
"""Colours of the lines of a difference by their first character, after the two lines of its head."""
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
