"""Writes Markdown tables into a text document."""

import math
from collections.abc import Sequence

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextCharFormat,
    QTextCursor,
    QTextLength,
    QTextTable,
    QTextTableFormat,
)

from qwendesk.chat.markdown_rules.tags import BREAK
from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.inline_writer import write_inline
from qwendesk.chat.view.answer.source_links import SourceLinks
from qwendesk.widgets.theme import Theme

# Average width per column in pixels below which a table scrolls instead of wrapping its cells.
MIN_COLUMN_WIDTH = 140
_SIZE = 14
_ALIGNMENTS = {
    "text-align:right": Qt.AlignmentFlag.AlignRight,
    "text-align:center": Qt.AlignmentFlag.AlignHCenter,
}
_GAP = 20
# Pixels added to the width of a column, so that rounding never wraps its text.
_MARGIN = 6
# Maximum number of characters of a cell that are measured.
_MAX_MEASURED_CHARACTERS = 1_000
_Row = list[tuple[Token, str]]


def table_rows(tokens: Sequence[Token]) -> list[_Row]:
    """Return the cells of each row: the inline token and its alignment as CSS."""
    rows: list[_Row] = []
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append((tokens[index + 1], str(token.attrGet("style") or "")))
    return rows


def natural_widths(rows: Sequence[_Row], lengths: Sequence[int], theme: Theme) -> list[int]:
    """Return the width that each column needs without wrapping, in pixels.

    `lengths` are the characters in the widest cell of each column, if `rows` are only a piece of the table.
    """
    metrics = QFontMetricsF(theme.font(_SIZE))
    if lengths:
        return [math.ceil(length * metrics.averageCharWidth()) + _GAP + _MARGIN for length in lengths]
    widths = [0.0] * max(len(row) for row in rows)
    bold = QFont(theme.font(_SIZE))
    bold.setWeight(QFont.Weight.Medium)
    for y, row in enumerate(rows):
        measure = QFontMetricsF(bold) if y == 0 else metrics
        for x, (inline, _alignment) in enumerate(row):
            for line in BREAK.split(inline.content[:_MAX_MEASURED_CHARACTERS]):
                widths[x] = max(widths[x], measure.horizontalAdvance(line))
    return [math.ceil(width) + _GAP + _MARGIN for width in widths]


def fit_widths(natural: Sequence[int], width: int) -> list[int]:
    """Return the widths of the columns in a pane. Their sum exceeds `width` only if the table has to scroll."""
    total, count = sum(natural), len(natural)
    if total <= width:
        return list(natural)
    room = width if count * MIN_COLUMN_WIDTH <= width else min(total, count * MIN_COLUMN_WIDTH)
    fitted = list(natural)
    left = sorted(range(count), key=lambda column: natural[column])
    while left:
        column = left.pop(0)
        fitted[column] = min(natural[column], room // (len(left) + 1))
        room -= fitted[column]
    return fitted


def set_widths(table: QTextTable, widths: Sequence[int]) -> None:
    """Set fixed column widths. Otherwise Qt would try several widths for every cell."""
    form = table.format().toTableFormat()
    if [round(each.rawValue()) for each in form.columnWidthConstraints()] != list(widths):
        form.setColumnWidthConstraints([QTextLength(QTextLength.Type.FixedLength, each) for each in widths])
        table.setFormat(form)


def write_table(
    cursor: QTextCursor,
    rows: Sequence[_Row],
    widths: Sequence[int],
    theme: Theme,
    formulas: FormulaCache | None,
    sources: SourceLinks | None,
    *,
    has_head: bool,
) -> QTextTable:
    """Insert a table with the rows; the first is the head. Its lines are painted by `frame_painter`.

    Without `widths` Qt chooses the widths of the columns.
    """
    form = QTextTableFormat()
    form.setBorder(0)
    form.setCellSpacing(0)
    form.setCellPadding(0)
    form.setTopMargin(6 if has_head else 0)
    form.setBottomMargin(14)
    form.setHeaderRowCount(1 if has_head else 0)
    form.setWidth(QTextLength(QTextLength.Type.VariableLength, 0))
    if widths:
        form.setColumnWidthConstraints([QTextLength(QTextLength.Type.FixedLength, each) for each in widths])
    table = cursor.insertTable(len(rows), max(1, *(len(row) for row in rows)), form)
    plain, head = QTextCharFormat(), QTextCharFormat()
    for text in (plain, head):
        text.setFont(theme.font(_SIZE))
        text.setForeground(theme.color("text"))
    head.setForeground(theme.color("text_dim"))
    head.setFontWeight(QFont.Weight.Medium)
    for y, row in enumerate(rows):
        for x, (inline, alignment) in enumerate(row):
            cell = table.cellAt(y, x)
            style = cell.format().toTableCellFormat()
            style.setTopPadding(6)
            style.setBottomPadding(6)
            style.setRightPadding(_GAP)
            cell.setFormat(style)
            place = cell.firstCursorPosition()
            if alignment in _ALIGNMENTS:
                block = place.blockFormat()
                block.setAlignment(_ALIGNMENTS[alignment])
                place.setBlockFormat(block)
            base = head if y == 0 and has_head else plain
            write_inline(place, inline.children or [], base, theme, formulas, sources)
    return table
