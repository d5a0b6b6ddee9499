"""Writes a Markdown table into a text document."""

from collections.abc import Sequence

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor, QTextLength, QTextTable, QTextTableFormat

from qwendesk.ui.kit.theme import Theme
from qwendesk.ui.thread.formulas import FormulaShelf
from qwendesk.ui.thread.inline_writer import write_inline

_MOST_COLUMNS = 100
"""Columns beyond which a table's cells are left out: nobody reads them, and each costs a layout."""
_ALIGNMENTS = {
    "text-align:right": Qt.AlignmentFlag.AlignRight,
    "text-align:center": Qt.AlignmentFlag.AlignHCenter,
}
_GAP = 20
_Row = list[tuple[Token, str]]


def table_rows(tokens: Sequence[Token]) -> list[_Row]:
    """Each row's cells: the inline token and its alignment as Markdown's parser writes it."""
    rows: list[_Row] = []
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open") and len(rows[-1]) < _MOST_COLUMNS:
            rows[-1].append((tokens[index + 1], str(token.attrGet("style") or "")))
    return rows


def write_table(
    cursor: QTextCursor, rows: Sequence[_Row], theme: Theme, formulas: FormulaShelf | None, *, has_head: bool
) -> QTextTable:
    """Insert the rows, the first as the head. The table's frame has no lines; they are painted under its rows."""
    form = QTextTableFormat()
    form.setBorder(0)
    form.setCellSpacing(0)
    form.setCellPadding(0)
    form.setTopMargin(6 if has_head else 0)
    form.setBottomMargin(14)
    form.setHeaderRowCount(1 if has_head else 0)
    form.setWidth(QTextLength(QTextLength.Type.VariableLength, 0))
    table = cursor.insertTable(len(rows), max(1, *(len(row) for row in rows)), form)
    for y, row in enumerate(rows):
        for x, (inline, alignment) in enumerate(row):
            cell = table.cellAt(y, x)
            style = cell.format().toTableCellFormat()
            style.setTopPadding(6)
            style.setBottomPadding(6)
            style.setRightPadding(_GAP)
            cell.setFormat(style)
            text = QTextCharFormat()
            text.setFont(theme.font(14))
            text.setForeground(theme.color("text"))
            if y == 0 and has_head:
                text.setForeground(theme.color("text_dim"))
                text.setFontWeight(QFont.Weight.Medium)
            place = cell.firstCursorPosition()
            if alignment in _ALIGNMENTS:
                block = place.blockFormat()
                block.setAlignment(_ALIGNMENTS[alignment])
                place.setBlockFormat(block)
            write_inline(place, inline.children or [], text, theme, formulas)
    return table
