"""Finds words in the visible text of an answer, without Markdown's marks."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QRect
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QTextEdit

from qwendesk.widgets.theme import Theme

if TYPE_CHECKING:
    from markdown_it.token import Token

    from qwendesk.chat.view.answer.markdown_blocks import MarkdownBlock

_SYNTAX_MARKS = str.maketrans("", "", "*_`~\\[]")
# Number of characters of Markdown that are searched at a time, up to the end of a line.
_SLICE = 16_000
_ADDRESS = re.compile(r"\]\([^()\s]*\)")
_ADDRESS_OR_TAG = re.compile(rf"{_ADDRESS.pattern}|</?(?:sub|sup|kbd)>", re.IGNORECASE)


class Match(msgspec.Struct, frozen=True):
    """A match: the row of the conversation, and its number in that row, counted from 0."""

    row: int
    number: int


def may_contain(source: str, query: str) -> Iterator[bool]:
    """Yield for each slice of the Markdown `source` whether it may contain `query`.

    This is much faster than counting matches, and it can be interrupted. No match spans two lines.
    """
    needle = query.translate(_SYNTAX_MARKS).casefold()
    hidden = _ADDRESS if "<" in query else _ADDRESS_OR_TAG
    start = 0
    while query and start < len(source):
        end = source.find("\n", start + _SLICE) + 1 or len(source)
        yield needle in hidden.sub("", source[start:end]).translate(_SYNTAX_MARKS).casefold()
        start = end


def count_in_text(text: str, query: str) -> int:
    return text.casefold().count(query.casefold()) if query else 0


def count_markdown(source: str, query: str) -> int:
    """Return the number of matches of `query` in the visible text of this Markdown."""
    return sum(iter_counts(source, query))


def iter_counts(source: str, query: str) -> Iterator[int]:
    """Yield the numbers of matches block by block, so that counting in a long text can be interrupted."""
    # Imported only now, because the window is drawn without a search.
    from qwendesk.chat.view.answer.markdown_stream import MarkdownStream, slices  # noqa: PLC0415

    stream = MarkdownStream()
    for part in slices(source):
        for block in stream.iter_finished(part):
            yield count_in_text(visible_text(block), query)
        yield 0
    for block in stream.iter_remaining():
        yield count_in_text(visible_text(block), query)


def visible_text(block: "MarkdownBlock") -> str:
    """Return the visible text of a block. Only the first piece of a table contributes its head."""
    texts = []
    is_hidden = False
    for token in block.tokens:
        if token.type in ("thead_open", "thead_close"):
            is_hidden = token.nesting == 1 and block.is_continuation
        elif token.type == "inline" and not is_hidden:
            texts.append("".join(_drawn(child) for child in token.children or []))
        elif token.type in ("fence", "code_block"):
            texts.append(token.content.removesuffix("\n"))
    return "\n".join(texts)


def _drawn(token: "Token") -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type in ("text", "text_special", "code_inline", "image"):
        return token.content
    return ""


# Maximum number of highlighted matches in one text. More would make painting slow.
_MAX_HIGHLIGHTS = 50


def mark_found(pane: QTextEdit, theme: Theme, query: str, current: int) -> QRect | None:
    """Highlight the matches of `query`, and match `current` as the current one. Return its rectangle.

    If `query` is "", remove the highlights. The selection is kept.
    """
    marks: list[QTextEdit.ExtraSelection] = []
    place: QRect | None = None
    for number, cursor in enumerate(_matches(pane.document(), query)):
        if number >= max(_MAX_HIGHLIGHTS, current + 1):
            break
        is_current = number == current
        if number < _MAX_HIGHLIGHTS or is_current:
            mark = QTextEdit.ExtraSelection()
            mark.cursor = cursor
            mark.format.setBackground(theme.color("accent" if is_current else "found"))
            mark.format.setForeground(theme.color("window" if is_current else "text"))
            marks.append(mark)
        if is_current:
            place = pane.cursorRect(cursor)
    pane.setExtraSelections(marks)
    return place


def _matches(document: QTextDocument, query: str) -> Iterator[QTextCursor]:
    cursor = document.find(query) if query else QTextCursor()
    while not cursor.isNull():
        yield cursor
        cursor = document.find(query, cursor)
