"""Writes Markdown blocks at the end of a QTextDocument in the theme's colours.

A text document can't draw rounded code cards, quote bars and rules. Their frames have the property KIND, and
`frame_painter` paints them.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec
from markdown_it.token import Token
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrame,
    QTextFrameFormat,
    QTextList,
    QTextListFormat,
    QTextTable,
)

from qwendesk.chat.view.answer.code_card import CodeCard
from qwendesk.chat.view.answer.formulas import FormulaCache, FormulaPainter
from qwendesk.chat.view.answer.highlighter import Highlighter
from qwendesk.chat.view.answer.inline_writer import FOOTNOTE, FOOTNOTE_REF, centre_formula, write_formula, write_inline
from qwendesk.chat.view.answer.markdown_blocks import MarkdownBlock
from qwendesk.chat.view.answer.source_links import SourceLinks
from qwendesk.chat.view.answer.table_writer import fit_widths, natural_widths, table_rows, write_table
from qwendesk.core.translation import tr
from qwendesk.widgets.theme import Theme

# Property of a frame: "code", "quote", "rule" or "table".
KIND: Final = QTextFormat.Property.UserProperty.value
LANGUAGE: Final = KIND + 1
# Property of a code frame: it continues the card of the section above.
IS_CONTINUATION: Final = KIND + 2
# Property of a code frame: it continues in the section below.
HAS_CONTINUATION: Final = KIND + 3
# Property of the first block of a list item: "disc", "circle", "square", "done" or "open".
MARKER: Final = KIND + 20
CARD_GAP: Final = 8
# Pixels below a card. Larger than CARD_GAP, because a line has less space above its text than below.
CARD_BELOW: Final = 12
CARD_HEADER: Final = 30
CARD_PADDING: Final = 12
INDENT: Final = 24
_BODY: Final = 14
_HEADINGS: Final = {"h1": 21, "h2": 18, "h3": 16, "h4": 15, "h5": 14, "h6": 14}
_LINE_HEIGHT: Final = 128.0
_QUOTE_INDENT: Final = 16
# Pixels that Qt leaves between a list number and the text, plus one.
_AFTER_NUMBER: Final = 6


class Mark(msgspec.Struct, frozen=True):
    """A position in the document to which `rewind` returns."""

    position: int
    fresh: bool


class _Place(msgspec.Struct, frozen=True):
    """The place of a block: its depth in lists, and the list to which the first line of an item belongs."""

    depth: int = 0
    qt_list: QTextList | None = None
    tight: bool = False
    marker: str = ""
    """The marker that is painted before the block; see MARKER."""
    left: int = 0
    """Additional left margin in pixels for long list numbers."""


class MarkdownWriter:
    """Appends blocks to a document. `mark` and `rewind` allow the open block to be rewritten."""

    def __init__(
        self,
        document: QTextDocument,
        theme: Theme,
        formulas: FormulaCache | None,
        highlighter: Highlighter | None = None,
        sources: SourceLinks | None = None,
    ) -> None:
        self.document = document
        self._formulas, self._highlighter, self._sources = formulas, highlighter, sources
        self._is_open = False
        self._formula_painter = FormulaPainter(document)
        self._is_continuation = self._has_continuation = False
        self._columns: tuple[int, ...] = ()
        self.width = 0
        """The document's width in pixels; 0 if unknown."""
        self.table: tuple[QTextTable, list[int]] | None = None
        """The table written last and the natural widths of its columns; None if the last block is no table."""
        self.theme = theme
        self.code_card: CodeCard | None = None
        """The code card written last; None if the last block is no code."""
        self._code_cards: list[CodeCard] = []
        document.setUndoRedoEnabled(False)
        document.setDocumentMargin(0)
        document.setIndentWidth(INDENT)
        document.setDefaultFont(theme.font(_BODY))
        self._cursor = QTextCursor(document)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._fresh = True
        self._spacer()

    def mark(self) -> Mark:
        return Mark(self._cursor.position(), self._fresh)

    def rewind(self, mark: Mark) -> None:
        """Remove everything written since `mark` was made."""
        self.code_card = None
        self._cursor.setPosition(mark.position)
        self._cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        self._cursor.removeSelectedText()
        self._fresh = mark.fresh
        if mark.fresh:
            self._spacer()

    def write(self, block: MarkdownBlock, *, is_open: bool = False) -> None:
        self.code_card = None
        self._is_open, self.table = is_open, None
        self._is_continuation, self._has_continuation, self._columns = (
            block.is_continuation,
            block.has_continuation,
            block.columns,
        )
        self._cursor.beginEditBlock()
        self._write(block.tokens, 0, len(block.tokens), _Place())
        self._cursor.endEditBlock()

    def take_code_cards(self) -> list[CodeCard]:
        """Return the code cards written since the last call."""
        sections, self._code_cards = self._code_cards, []
        return sections

    def body_format(self, size: int = _BODY) -> QTextCharFormat:
        text = QTextCharFormat()
        text.setFont(self.theme.font(size))
        text.setForeground(self.theme.color("text"))
        return text

    def _write(self, tokens: Sequence[Token], start: int, end: int, place: _Place) -> None:
        index = start
        while index < end:
            token = tokens[index]
            close = _closing(tokens, index)
            match token.type:
                case "paragraph_open":
                    self._paragraph(tokens[index + 1], place)
                    place = msgspec.structs.replace(place, qt_list=None, marker="")
                case "heading_open":
                    self._heading(token, tokens[index + 1], place)
                case "bullet_list_open" | "ordered_list_open":
                    self._list(tokens, index, close, place)
                case "footnote_open":
                    self._footnote(token, tokens[index + 2])
                case "blockquote_open":
                    self._quote(tokens, index + 1, close)
                case "fence" | "code_block":
                    self._code(token, place)
                case "table_open":
                    self._table(tokens[index:close], is_block=index == 0)
                case "hr":
                    self._rule()
                case "math_block" | "math_block_eqno" | "math_block_label" | "amsmath":
                    self._formula(token, place)
                case _:
                    pass
            index = close + 1

    def _block(self, *, top: int, bottom: int, place: _Place) -> None:
        form = QTextBlockFormat()
        form.setTopMargin(top)
        form.setBottomMargin(bottom)
        form.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        if place.depth and place.qt_list is None:
            form.setIndent(place.depth)
        form.setLeftMargin(place.left)
        if place.marker:
            form.setProperty(MARKER, place.marker)
        if self._fresh:
            self._cursor.setBlockFormat(form)
            self._cursor.setBlockCharFormat(self.body_format())
            self._fresh = False
        else:
            self._cursor.insertBlock(form, self.body_format())
        if place.qt_list is not None:
            place.qt_list.add(self._cursor.block())

    def _spacer(self) -> None:
        """Hide the empty block that Qt requires after a frame. The next block replaces it."""
        form = QTextBlockFormat()
        form.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        tiny = QTextCharFormat()
        font = QFont(self.theme.font(_BODY))
        font.setPixelSize(1)
        tiny.setFont(font)
        self._cursor.setBlockFormat(form)
        self._cursor.setBlockCharFormat(tiny)
        self._fresh = True

    def _paragraph(self, inline: Token, place: _Place) -> None:
        top, bottom = (2, 2) if place.tight else (6, 6)
        self._block(top=top, bottom=bottom, place=place)
        self._write_inline(_words(inline), self.body_format())

    def _write_inline(self, tokens: Sequence[Token], form: QTextCharFormat) -> None:
        write_inline(self._cursor, tokens, form, self.theme, self._formulas, self._sources)

    def _heading(self, opening: Token, inline: Token, place: _Place) -> None:
        self._block(top=16, bottom=6, place=place)
        form = self.body_format(_HEADINGS.get(opening.tag, _BODY))
        form.setFontWeight(QFont.Weight.Bold)
        self._cursor.setBlockCharFormat(form)
        self._write_inline(inline.children or [], form)

    def _list(self, tokens: Sequence[Token], start: int, end: int, place: _Place) -> None:
        form = QTextListFormat()
        form.setIndent(place.depth + 1)
        if tokens[start].type == "ordered_list_open":
            form.setStyle(QTextListFormat.Style.ListDecimal)
            first_number = tokens[start].attrGet("start")
            form.setStart(1 if first_number is None else int(first_number))
            place = msgspec.structs.replace(place, left=place.left + self._room_for(form.start(), tokens, start, end))
        else:
            form.setStyle(QTextListFormat.Style.ListStyleUndefined)  # its bullets are painted by `frame_painter`
        qt_list: QTextList | None = None
        index = start + 1
        while index < end:
            close = _closing(tokens, index)
            first = tokens[index + 1]
            marker = _marker(tokens, start, index, place.depth)
            inner = _Place(depth=place.depth + 1, tight=first.hidden, marker=marker, left=place.left)
            if first.type != "paragraph_open":
                self._block(top=2, bottom=2, place=inner)
            if qt_list is None:
                qt_list = self._new_list(form, tokens, index, close, inner)
            else:
                self._write(tokens, index + 1, close, msgspec.structs.replace(inner, qt_list=qt_list))
            index = close + 1

    def _room_for(self, first: int, tokens: Sequence[Token], start: int, end: int) -> int:
        """Return the pixels that the longest number of a list needs beyond the indent."""
        level = tokens[start].level + 1
        count = sum(each.type == "list_item_open" and each.level == level for each in tokens[start:end])
        number = QFontMetricsF(self.body_format().font()).horizontalAdvance(f"{first + count - 1}.")
        return max(0, math.ceil(number) + _AFTER_NUMBER - INDENT)

    def _new_list(
        self, form: QTextListFormat, tokens: Sequence[Token], start: int, end: int, place: _Place
    ) -> QTextList:
        """Write the first item of a list. A QTextList exists only once it has a block."""
        if tokens[start + 1].type == "paragraph_open":
            self._block(
                top=2 if place.tight else 6,
                bottom=2 if place.tight else 6,
                place=msgspec.structs.replace(place, depth=0),
            )
            qt_list = self._cursor.createList(form)
            self._write_inline(_words(tokens[start + 2]), self.body_format())
            self._write(tokens, start + 4, end, place)
        else:
            qt_list = self._cursor.createList(form)
            self._write(tokens, start + 1, end, place)
        return qt_list

    def _quote(self, tokens: Sequence[Token], start: int, end: int) -> None:
        form = QTextFrameFormat()
        form.setProperty(KIND, "quote")
        form.setLeftMargin(_QUOTE_INDENT)
        form.setTopMargin(4)
        form.setBottomMargin(4)
        frame = self._enter_frame(form)
        self._write(tokens, start, end, _Place())
        self._leave_frame(frame)

    def _code(self, token: Token, place: _Place) -> None:
        form = QTextFrameFormat()
        form.setProperty(KIND, "code")
        form.setLeftMargin(place.depth * INDENT + CARD_PADDING)
        form.setRightMargin(CARD_PADDING)
        form.setTopMargin(0 if self._is_continuation else CARD_GAP + CARD_HEADER + CARD_PADDING - 2)
        form.setBottomMargin(0 if self._has_continuation else CARD_BELOW + CARD_PADDING - 4)
        form.setProperty(IS_CONTINUATION, self._is_continuation)
        form.setProperty(HAS_CONTINUATION, self._has_continuation)
        card = CodeCard(token.info if token.type == "fence" else "", self.theme, self._highlighter)
        form.setProperty(LANGUAGE, card.language)
        frame = self._enter_frame(form)
        card.begin(self._cursor, frame)
        card.update(token.content, is_open=self._is_open)
        self._leave_frame(frame)
        self._code_cards.append(card)
        if not place.depth:
            self.code_card = card

    def _formula(self, token: Token, place: _Place) -> None:
        """Write a displayed formula, centred, or its source until it is drawn."""
        self._block(top=8, bottom=8, place=place)
        drawn = self._formulas is not None and self._formulas.get(token.content, displayed=True) is not None
        if drawn:
            centre_formula(self._cursor)
        write_formula(self._cursor, token, self.body_format(), self.theme, self._formulas, displayed=True)

    def _footnote(self, opening: Token, inline: Token) -> None:
        """Write the text of a footnote, small, with a link back to its reference."""
        name = str(opening.meta.get("name", ""))
        self._block(top=4, bottom=4, place=_Place())
        form = self.body_format(13)
        form.setForeground(self.theme.color("text_dim"))
        link = QTextCharFormat(form)
        link.setAnchor(True)
        link.setForeground(self.theme.color("text_link"))
        link.setAnchorNames([FOOTNOTE[1:] + name])
        link.setAnchorHref(FOOTNOTE_REF + name)
        link.setToolTip(tr("Back to the text"))
        self._cursor.insertText(f"{name} ↩", link)
        self._cursor.insertText("  ", form)
        self._write_inline(inline.children or [], form)

    def _rule(self) -> None:
        form = QTextFrameFormat()
        form.setProperty(KIND, "rule")
        form.setTopMargin(10)
        form.setBottomMargin(10)
        frame = self._enter_frame(form)
        self._spacer()
        self._leave_frame(frame)

    def _table(self, tokens: Sequence[Token], *, is_block: bool) -> None:
        """Write a table. In a list or quote, Qt chooses the widths, because there is less room."""
        rows = table_rows(tokens)
        natural = natural_widths(rows, self._columns, self.theme) if is_block and self.width else []
        if self._is_continuation:
            rows = rows[1:]
        if rows:
            widths = fit_widths(natural, self.width)
            has_head = not self._is_continuation
            table = write_table(
                self._cursor, rows, widths, self.theme, self._formulas, self._sources, has_head=has_head
            )
            self.table = (table, natural) if natural else None
            self._leave_frame(table)

    def _enter_frame(self, form: QTextFrameFormat) -> QTextFrame:
        frame = self._cursor.insertFrame(form)
        self._fresh = True
        return frame

    def _leave_frame(self, frame: QTextFrame) -> None:
        self._cursor.setPosition(frame.lastPosition() + 1)
        self._spacer()


def _closing(tokens: Sequence[Token], index: int) -> int:
    """Return the index of the token that closes the one at `index`, or `index` if it opens nothing."""
    if tokens[index].nesting != 1:
        return index
    level = tokens[index].level
    for at in range(index + 1, len(tokens)):
        if tokens[at].nesting == -1 and tokens[at].level == level:
            return at
    return len(tokens)


def _words(inline: Token) -> list[Token]:
    """Return the inline tokens of a paragraph, without the check box of a task."""
    children = inline.children or []
    is_task = len(children) > 1 and children[0].type == "html_inline" and "checkbox" in children[0].content
    if not is_task:
        return children
    return [children[1].copy(content=children[1].content.lstrip()), *children[2:]]


def _marker(tokens: Sequence[Token], opening: int, item: int, depth: int) -> str:
    """Return the marker of a list item; "" for a numbered item, whose number Qt draws."""
    if "task-list-item" in str(tokens[item].attrGet("class") or ""):
        children = tokens[item + 2].children or []
        return "done" if children and 'checked="checked"' in children[0].content else "open"
    return "" if tokens[opening].type == "ordered_list_open" else ("disc", "circle", "square")[min(depth, 2)]
