"""Markdown that arrives piece by piece, cut into blocks: finished ones never change, only the last one is open.

Pure Python, no Qt. Raw HTML is not Markdown here: it stays text. Formulas keep their source.
"""

import functools
import re
from collections.abc import Sequence

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from qwendesk.ui.thread.block_cut import first_piece
from qwendesk.ui.thread.calm_inline import calm_inline_plugin
from qwendesk.ui.thread.footnotes import footnote_plugin
from qwendesk.ui.thread.markdown_math import bracket_math_plugin

_FENCE_OPENS = re.compile(r"^ {0,3}+(`{3,}+|~{3,}+)([^\n]*+)\n")
_TABLE_ROW = re.compile(r"^ {0,3}\|.*$")
_DELIMITER_PART = re.compile(r"^[ |:-]*$")
_UNDECIDED = re.compile(r"\s*(`{1,2}|~{1,2}|[*_-]{1,2}|#{1,6}|\d{1,9}[.)]?|[-+*] ?|`{3,}[^`]*|~{3,}[^~]*)")
"""A last line without its end that may become anything: a lone mark, or a fence whose language is still coming."""
_LONG_LIST = 1500
"""Characters of an open list from which its complete items count as finished."""
_SLICE = 4_000
_LONGEST_MARK = 11
"""Characters of the longest list mark: nine digits, a point and a space."""


class Block(msgspec.Struct, frozen=True):
    """One top-level block. `tokens` are markdown-it's; a list cut into pieces has one Block per piece."""

    source: str
    tokens: tuple[Token, ...]
    follows: bool = False
    """It goes on with the block before it, of the same kind, that became too long to stay one."""
    goes_on: bool = False
    """The next block goes on with this one."""

    @property
    def number(self) -> int:
        """An ordered list's first number; 0 for any other block."""
        return int(self.tokens[0].attrGet("start") or 1) if self.kind == "ordered_list_open" else 0

    @property
    def kind(self) -> str:
        """markdown-it's type of the block's first token, "" for nothing."""
        return self.tokens[0].type if self.tokens else ""


class Step(msgspec.Struct, frozen=True):
    """What one `feed` changed: blocks that are complete now, and those still open, as they look so far.

    One block is open, or two while the last line is not complete and may yet belong to the one before.
    """

    finished: tuple[Block, ...]
    open: tuple[Block, ...]


class MarkdownStream:
    """Collects the text of one answer and hands out blocks."""

    def __init__(self) -> None:
        self._tail = ""
        self._next_number: int | None = None
        self._follows = False

    def feed(self, text: str) -> Step:
        """Take more text. Carriage returns become line ends, a NUL becomes the replacement character."""
        self._tail += _clean(text)
        if self._in_open_fence():
            pieces = self._long_pieces(is_open=True)
            block = Block(self._tail, tuple(_parser().parse(self._tail)), follows=self._follows)
            return Step(tuple(pieces), (block,))
        blocks = _top_level(self._tail)
        if not blocks:
            return Step((), ())
        settled = len(blocks) - (1 if _is_decided(blocks[-1].source) else 2)
        finished = [each for block in blocks[: max(0, settled)] for each in self._settle(block)]
        blocks = blocks[max(0, settled) :]
        if len(blocks) == 1:
            self._tail = blocks[0].source
            pieces = self._long_pieces(is_open=True)
            if pieces:
                finished += pieces
                blocks = _top_level(self._tail)
        if len(blocks) == 1:
            items, rest = _finished_items(blocks[0])
            if items is not None:
                finished.append(self._numbered(items))
                self._continue_numbers(items)
                blocks = _top_level(rest)
        self._tail = "".join(block.source for block in blocks)
        return Step(tuple(finished), self._preview(blocks))

    def _preview(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """The open blocks as they should look while their end is still to come."""
        last = blocks[-1].source
        shown = complete(last)
        if shown != last:
            blocks = _top_level("".join(block.source for block in blocks[:-1]) + shown)
        shown_blocks = [self._numbered(block, keep=True) for block in blocks]
        if self._follows and shown_blocks:
            shown_blocks[0] = msgspec.structs.replace(shown_blocks[0], follows=True)
        return tuple(shown_blocks)

    def end(self, text: str = "") -> Step:
        """No more text comes after this: everything is finished."""
        self._tail += _clean(text)
        blocks = [each for block in _top_level(self._tail) for each in self._settle(block)]
        self._tail = ""
        return Step(tuple(blocks), ())

    def _settle(self, block: Block) -> list[Block]:
        """A finished block, in pieces when it is too long for one."""
        self._tail = block.source
        pieces = self._long_pieces(is_open=False)
        if pieces:
            rest = _top_level(self._tail)
            block = rest[0] if rest else Block("", ())
        last = msgspec.structs.replace(self._numbered(block), follows=self._follows)
        self._follows = False
        return [*pieces, last] if last.tokens else pieces

    def _long_pieces(self, *, is_open: bool) -> list[Block]:
        """Take finished pieces off the front of `_tail`, one block, while it is too long to be one."""
        pieces: list[Block] = []
        while (cut := first_piece(self._tail, is_open=is_open)) is not None:
            source, self._tail = cut
            parsed = _top_level(source)
            for at, block in enumerate(parsed):
                numbered = self._numbered(block)
                self._continue_numbers(numbered)
                pieces.append(msgspec.structs.replace(numbered, follows=self._follows and at == 0, goes_on=True))
            self._follows = True
        return pieces

    def _in_open_fence(self) -> bool:
        opening = _FENCE_OPENS.match(self._tail)
        if opening is None or (opening[1][0] == "`" and "`" in opening[2]):
            return False
        mark = re.escape(opening[1][0])
        closing = re.compile(rf"^ {{0,3}}{mark}{{{len(opening[1])},}}[ \t]*$", re.MULTILINE)
        return closing.search(self._tail, opening.end()) is None

    def _numbered(self, block: Block, *, keep: bool = False) -> Block:
        """The block, its list's first number corrected when it continues a list that was cut."""
        number = self._next_number
        if not keep:
            self._next_number = None
        if number is not None and block.kind == "ordered_list_open":
            block.tokens[0].attrSet("start", str(number))
        return block

    def _continue_numbers(self, items: Block) -> None:
        if items.kind == "ordered_list_open":
            first = int(items.tokens[0].attrGet("start") or 1)
            count = sum(1 for token in items.tokens if token.type == "list_item_open" and token.level == 1)
            self._next_number = first + count


def blocks_of(text: str) -> tuple[Block, ...]:
    """All blocks of a complete text. Costs no more than in proportion to its length, whatever is in it."""
    stream = MarkdownStream()
    parts = slices(text)
    finished = [block for part in parts[:-1] for block in stream.feed(part).finished]
    return (*finished, *stream.end(parts[-1] if parts else "").finished)


def slices(text: str) -> Sequence[str]:
    """`text` in parts for `feed`, each short enough that no open block grows long before it is cut."""
    return [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)]


def block_again(source: str, *, follows: bool = False, goes_on: bool = False, number: int = 0) -> tuple[Block, ...]:
    """The blocks of a finished block's source, parsed again; `number` is an ordered list's first."""
    blocks = _top_level(source)
    if number and blocks and blocks[0].kind == "ordered_list_open":
        blocks[0].tokens[0].attrSet("start", str(number))
    return tuple(
        msgspec.structs.replace(block, follows=follows and at == 0, goes_on=goes_on) for at, block in enumerate(blocks)
    )


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def complete(source: str) -> str:
    """An open block as it should look while its end is still to come.

    A table's first row is shown as a table, an unclosed bold or code span is closed, a link whose address has not
    arrived is shown as its text, and a lone mark at the end waits.
    """
    lines = source.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
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
    """Whether the last block's first line shows what it is: "12" may yet become the item "12. ..." of a list before."""
    return "\n" in source or len(source.strip()) > _LONGEST_MARK


def _as_table(lines: Sequence[str]) -> str:
    header = lines[0].rstrip()
    if not header.endswith("|") or header.count("|") < 2:
        header += " |"
    return f"{header}\n|{'---|' * max(1, header.count('|') - 1)}"


def _close_spans(text: str) -> str:
    """Close what the last paragraph of `text` leaves open."""
    start = text.rfind("\n\n") + 1
    head, tail = text[:start], text[start:]
    tail = re.sub(r"\[([^\[\]\n]*)\]\([^()\s]*$", r"\1", tail)
    without_code = re.sub(r"`[^`]*`", "", tail)
    if without_code.count("`") % 2:
        return head + (tail[:-1] if tail.endswith("`") else tail + "`")
    if re.search(r"(?:^|\s)[*_~]{1,3}$", tail):
        tail = tail.rstrip("*_~")
    for mark in ("**", "~~"):
        if without_code.count(mark) % 2 and tail.count(mark) % 2:
            tail = tail.rstrip().removesuffix("*") + mark
    return head + tail


def _top_level(source: str) -> list[Block]:
    """The top-level blocks of `source`; their sources together are all of it but blank lines in front."""
    tokens = _parser().parse(source)
    starts: list[tuple[int, int]] = []
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0 and token.map is not None and token.type != "inline":
            starts.append((index, token.map[0]))
    lines = source.split("\n")
    blocks = []
    for position, (index, line) in enumerate(starts):
        last = position + 1 == len(starts)
        next_index, next_line = (len(tokens), len(lines)) if last else starts[position + 1]
        text = "\n".join(lines[line:next_line]) + ("" if last else "\n")
        blocks.append(Block(text, tuple(tokens[index:next_index])))
    return blocks


def _finished_items(block: Block) -> tuple[Block | None, str]:
    """A long open list's complete items as one block, and the source that is left; (None, "") when not to be cut."""
    if block.kind not in ("bullet_list_open", "ordered_list_open") or len(block.source) < _LONG_LIST:
        return None, ""
    base = block.tokens[0].map
    items = [i for i, token in enumerate(block.tokens) if token.type == "list_item_open" and token.level == 1]
    last = block.tokens[items[-1]].map
    if len(items) < 2 or base is None or last is None:
        return None, ""
    lines = block.source.split("\n")
    cut = last[0] - base[0]
    tokens = (*block.tokens[: items[-1]], block.tokens[-1])
    return Block("\n".join(lines[:cut]) + "\n", tokens), "\n".join(lines[cut:])


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True}).enable(["table", "strikethrough"])
    # A bare address is a link where it stands; the rule of the same name that reads whole paragraphs again stays off.
    parser.inline.ruler.enable("linkify")
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(bracket_math_plugin)
    parser.use(calm_inline_plugin)
    parser.use(footnote_plugin)
    parser.use(tasklists_plugin)
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
