"""Splits streamed Markdown into blocks. Finished blocks never change; only the last one is open.

Pure Python, no Qt.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from qwendesk.chat.markdown_rules.cjk import is_cjk
from qwendesk.chat.view.answer.block_splitter import (
    LONG_LIST,
    PANEL_ROWS,
    column_lengths,
    has_many_columns,
    item_groups,
    panels,
    split_long_block,
    wide_table,
)
from qwendesk.chat.view.answer.markdown_blocks import MarkdownBlock, parse_inlines, split_blocks

_FENCE_OPENS = re.compile(r"^ {0,3}+(`{3,}+|~{3,}+)([^\n]*+)\n")
_TABLE_ROW = re.compile(r"^ {0,3}\|.*$")
_DELIMITER_PART = re.compile(r"^[ |:-]*$")
# An incomplete last line that may still become various blocks: a mark alone, or a fence without its language.
_HALF_TAG = re.compile(r"</?(?:br?|br\s*/|s|su|su[bp]|k|kb|kbd)?$|<(?:su[bp]|kbd)>$", re.IGNORECASE)
_OPEN_TAG = re.compile(r"<(su[bp]|kbd)>(?!.*</\1>)[^<\n]*$", re.IGNORECASE)
_UNDECIDED = re.compile(r"\s*(`{1,2}|~{1,2}|[*_-]{1,2}|#{1,6}|\d{1,9}[.)]?|[-+*] ?|`{3,}[^`]*|~{3,}[^~]*)")
# Number of characters of a long text that are processed at once.
_SLICE = 1_000
_SLICE_LINES = 30
# Length of the longest list mark: nine digits, a point and a space.
_MAX_LIST_MARK_LENGTH = 11


class MarkdownUpdate(msgspec.Struct, frozen=True):
    """The result of `feed`: the newly finished blocks, and the current state of the open ones.

    One block is open, or two if the last line is incomplete and may still belong to the previous block.
    """

    finished: tuple[MarkdownBlock, ...]
    open: tuple[MarkdownBlock, ...]


class MarkdownStream:
    """Collects the text of one answer and returns its blocks."""

    def __init__(self) -> None:
        self._tail = ""
        self._open: list[MarkdownBlock] | None = None
        """The blocks of the tail; None for code and very wide tables, which are parsed elsewhere."""
        self._shown: tuple[MarkdownBlock, ...] | None = None
        self._env: dict[str, Any] = {}
        """The link definitions in the current text."""
        self._columns: tuple[int, ...] = ()
        self._next_number: int | None = None
        self._is_continuation = False

    def feed(self, text: str) -> MarkdownUpdate:
        """Add text and return what changed. Carriage returns become line ends, NUL becomes U+FFFD."""
        return MarkdownUpdate(self.take(text), self.preview())

    def take(self, text: str) -> tuple[MarkdownBlock, ...]:
        """Add text and return the blocks that are finished now."""
        return tuple(self.iter_finished(text))

    def iter_finished(self, text: str) -> Iterator[MarkdownBlock]:
        """Add text and yield the blocks that are finished now, with little work for each. Pass long text in `slices`.

        The inline content of open blocks is not parsed.
        """
        self._tail += _clean(text)
        self._env, self._shown, self._open = {}, None, None
        yield from self._take_wide_table(is_open=True)
        yield from parse_inlines(self._take_finished(), self._env)

    def iter_remaining(self) -> Iterator[MarkdownBlock]:
        """Yield the remaining blocks at the end of the text, with little work for each."""
        yield from self._take_wide_table(is_open=False)
        finished = [each for block in self._blocks(self._tail) for each in self._finish(block)]
        self._tail, self._open, self._shown = "", [], ()
        yield from parse_inlines(finished, self._env)

    def _take_finished(self) -> list[MarkdownBlock]:
        if wide_table(self._tail) is not None:
            return []
        if self._in_open_fence():
            return self._long_pieces(is_open=True)
        blocks = self._blocks(self._tail)
        # The last block may go on, and the one before it may belong to it until the kind of the last is clear.
        n_finished = max(0, len(blocks) - (1 if blocks and _is_decided(blocks[-1].source) else 2))
        finished = [each for block in blocks[:n_finished] for each in self._finish(block)]
        blocks = blocks[n_finished:]
        self._tail = "".join(block.source for block in blocks)
        if len(blocks) == 1 and _is_list(blocks[0]):
            items, self._tail = _finished_items(blocks[0])
            finished += [self._numbered(each, has_continuation=True) for each in items]
            blocks = self._blocks(self._tail) if items else blocks
        if len(blocks) == 1:
            pieces = self._long_pieces(is_open=True)
            finished += pieces
            blocks = self._blocks(self._tail) if pieces else blocks
        self._open = blocks
        return finished

    def preview(self) -> tuple[MarkdownBlock, ...]:
        """Return the open blocks for display, although their end is still missing."""
        if self._shown is None:
            blocks = self._blocks(self._preview_source()) if self._open is None else self._completed(self._open)
            shown = [self._with_number(block) for block in blocks]
            if self._is_continuation and shown:
                shown[0] = msgspec.structs.replace(shown[0], is_continuation=True, columns=self._columns)
            self._shown = tuple(parse_inlines(shown, self._env))
        return self._shown

    def end(self, text: str = "") -> MarkdownUpdate:
        """Add the last text and return all remaining blocks."""
        return MarkdownUpdate((*self.iter_finished(text), *self.iter_remaining()), ())

    def _blocks(self, source: str) -> list[MarkdownBlock]:
        return split_blocks(source, self._env)

    def _completed(self, blocks: list[MarkdownBlock]) -> list[MarkdownBlock]:
        """Return the open blocks with the last one completed by `complete_markdown`."""
        last = blocks[-1].source if blocks else ""
        shown = complete(last)
        return blocks if shown == last else self._blocks("".join(block.source for block in blocks[:-1]) + shown)

    def _preview_source(self) -> str:
        """Return the tail, or the first columns of a very wide table."""
        table = wide_table(self._tail)
        return self._tail if table is None else panels(table, table.rows)[0]

    def _take_wide_table(self, *, is_open: bool) -> Iterator[MarkdownBlock]:
        """Remove the rows of a very wide table from the front of the tail, and yield them as several tables."""
        while self._tail and (table := wide_table(self._tail)) is not None:
            rows, has_ended, rest = list(table.rows), table.has_ended, table.rest
            if not is_open and not has_ended:
                rows, rest, has_ended = rows + ([rest] if rest.strip() else []), "", True
            count = len(rows) if has_ended else len(rows) - len(rows) % PANEL_ROWS
            self._tail = rest if has_ended else table.lines + "".join(f"{row}\n" for row in rows[count:]) + rest
            for start in range(0, max(count, 1 if has_ended else 0), PANEL_ROWS):
                for part in panels(table, rows[start : start + PANEL_ROWS]):
                    yield from parse_inlines(self._blocks(part), self._env)
            if not has_ended:
                break

    def _finish(self, block: MarkdownBlock) -> list[MarkdownBlock]:
        """Return a finished block, in pieces if it is too long."""
        if _is_list(block):
            groups = item_groups(block.tokens)
            if len(groups) > 1:
                parts = [_items(block, first, end) for first, end in groups]
                return [self._numbered(each, has_continuation=each is not parts[-1]) for each in parts]
        self._tail = block.source
        pieces = self._long_pieces(is_open=False)
        if pieces:
            rest = self._blocks(self._tail)
            block = rest[0] if rest else MarkdownBlock("", ())
        last = msgspec.structs.replace(
            self._numbered(block), is_continuation=self._is_continuation, columns=self._columns
        )
        self._is_continuation, self._columns = False, ()
        return [*pieces, last] if last.tokens else pieces

    def _long_pieces(self, *, is_open: bool) -> list[MarkdownBlock]:
        """Remove finished pieces from the front of the tail, which is one block, while it is too long."""
        pieces: list[MarkdownBlock] = []
        while (cut := split_long_block(self._tail, is_open=is_open)) is not None:
            source, self._tail = cut
            for at, block in enumerate(self._blocks(source)):
                if block.kind == "table_open" and not self._columns:
                    self._columns = column_lengths(block.tokens)
                pieces.append(
                    msgspec.structs.replace(
                        self._numbered(block, has_continuation=True),
                        is_continuation=self._is_continuation and at == 0,
                        has_continuation=True,
                        columns=self._columns,
                    )
                )
            self._is_continuation = True
        return pieces

    def _in_open_fence(self) -> bool:
        opening = _FENCE_OPENS.match(self._tail)
        if opening is None or (opening[1][0] == "`" and "`" in opening[2]):
            return False
        mark = re.escape(opening[1][0])
        closing = re.compile(rf"^ {{0,3}}{mark}{{{len(opening[1])},}}[ \t]*$", re.MULTILINE)
        return closing.search(self._tail, opening.end()) is None

    def _with_number(self, block: MarkdownBlock) -> MarkdownBlock:
        """Return the block with its first number corrected if it continues a list."""
        if self._next_number is not None and block.kind == "ordered_list_open":
            block.tokens[0].attrSet("start", str(self._next_number))
        return block

    def _numbered(self, block: MarkdownBlock, *, has_continuation: bool = False) -> MarkdownBlock:
        """Return the block as `_with_number` does. If it has a continuation, remember its next number."""
        block = self._with_number(block)
        self._next_number = None
        if has_continuation and block.kind == "ordered_list_open":
            count = sum(1 for token in block.tokens if token.type == "list_item_open" and token.level == 1)
            self._next_number = block.number + count
        return block


def slices(text: str) -> Iterator[str]:
    """Yield `text` in parts that are short enough to be processed at once."""
    start = 0
    while start < len(text):
        end = slice_end(text, start)
        yield text[start:end]
        start = end


def slice_end(text: str, start: int = 0) -> int:
    """Return the end of the part that begins at `start`."""
    end = min(len(text), start + _SLICE)
    if text.count("\n", start, end) <= _SLICE_LINES:
        return end
    end = start
    for _ in range(_SLICE_LINES):
        end = text.index("\n", end) + 1
    return end


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def complete(source: str) -> str:
    """Return the source of an open block, completed for display.

    The first row of a table becomes a table, an unclosed bold, code or tag is closed, a link without its address
    becomes text, and a single mark or the beginning of a tag at the end is left out.
    """
    lines = source.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        return source
    if len(lines) <= 2 and has_many_columns(lines[0]):
        return source
    if len(lines) <= 2 and _TABLE_ROW.match(lines[0]) and (len(lines) == 1 or _DELIMITER_PART.match(lines[1])):
        return _as_table(lines)
    if _UNDECIDED.fullmatch(lines[-1]):
        lines.pop()
        if not lines:
            return ""
    text = "\n".join(lines)
    return text if text.lstrip().startswith(("```", "~~~")) else _close_spans(text)


def _is_decided(source: str) -> bool:
    """Return True if the first line decides the kind of block. "12" may still become the list item "12. ..."."""
    return "\n" in source or len(source.strip()) > _MAX_LIST_MARK_LENGTH


def _as_table(lines: Sequence[str]) -> str:
    header = lines[0].rstrip()
    if not header.endswith("|") or header.count("|") < 2:
        header += " |"
    return f"{header}\n|{'---|' * max(1, header.count('|') - 1)}"


def _close_spans(text: str) -> str:
    """Close the spans that the last paragraph leaves open."""
    start = text.rfind("\n\n") + 1
    head, tail = text[:start], text[start:]
    tail = re.sub(r"\[([^\[\]\n]*)\]\([^()\s]*$", r"\1", tail)
    tail = _HALF_TAG.sub("", tail)
    without_code = re.sub(r"`[^`]*`", "", tail)
    if without_code.count("`") % 2:
        return head + (tail[:-1] if tail.endswith("`") else tail + "`")
    if re.search(r"(?:^|\s)[*_~]{1,3}$", tail):
        tail = tail.rstrip("*_~")
    tail = _without_opening_mark(tail)
    for mark in ("**", "~~"):
        if without_code.count(mark) % 2 and tail.count(mark) % 2:
            tail = tail.rstrip().removesuffix("*") + mark
    open_tag = _OPEN_TAG.search(tail)
    return head + (f"{tail}</{open_tag[1]}>" if open_tag else tail)


def _without_opening_mark(text: str) -> str:
    """Return `text` without the mark at its end that begins emphasis behind a Chinese character."""
    words = text.rstrip("*_~")
    begins = 0 < len(text) - len(words) <= 3 and is_cjk(words[-1:] or " ") and words.count("**") % 2 == 0
    return words if begins else text


def _is_list(block: MarkdownBlock) -> bool:
    return block.kind in ("bullet_list_open", "ordered_list_open")


def _finished_items(block: MarkdownBlock) -> tuple[list[MarkdownBlock], str]:
    """Return the complete items of a long open list as blocks, and the remaining source."""
    groups = item_groups(block.tokens, keep_last=True)
    if not groups or (len(block.source) < LONG_LIST and len(groups) < 2):
        return [], block.source
    base, last = block.tokens[0].map, block.tokens[groups[-1][1]].map
    if base is None or last is None:
        return [], block.source
    rest = "\n".join(block.source.split("\n")[last[0] - base[0] :])
    return [_items(block, first, end) for first, end in groups], rest


def _items(block: MarkdownBlock, first: int, end: int) -> MarkdownBlock:
    """Return a list block with the items between two tokens, with the list's original first number."""
    opening = block.tokens[0]
    base, start = opening.map, block.tokens[first].map
    stop = block.tokens[end].map
    if base is None or start is None:
        return block
    lines = block.source.split("\n")
    last = stop[0] - base[0] if stop is not None else len(lines)
    source = "\n".join(lines[start[0] - base[0] : last]) + ("\n" if last < len(lines) else "")
    tokens = (opening.copy(attrs=dict(opening.attrs)), *block.tokens[first:end], block.tokens[-1])
    return MarkdownBlock(source, tokens)
