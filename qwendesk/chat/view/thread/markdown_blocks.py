"""Parses Markdown into top-level blocks with markdown-it. Pure Python, no Qt.

Raw HTML becomes text, and formulas keep their source. `split_blocks` finds the blocks. `parse_inlines` parses their
inline content, which is most of the work for text with many marks.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from qwendesk.chat.view.thread.markdown_plugins import (
    bounded_inline_plugin,
    bracket_math_plugin,
    footnote_plugin,
    price_plugin,
)


class MarkdownBlock(msgspec.Struct, frozen=True):
    """A top-level block with markdown-it's tokens. A list in several pieces has one block per piece."""

    source: str
    tokens: tuple[Token, ...]
    is_continuation: bool = False
    """This block continues the previous one, which became too long."""
    has_continuation: bool = False
    """The next block continues this one."""
    columns: tuple[int, ...] = ()
    """Characters in the widest cell of each column, for a table in several pieces with the same column widths."""

    @property
    def number(self) -> int:
        """The first number of an ordered list; 0 for other blocks."""
        return int(self.tokens[0].attrGet("start") or 1) if self.kind == "ordered_list_open" else 0

    @property
    def kind(self) -> str:
        """markdown-it's type of the first token; "" for an empty block."""
        return self.tokens[0].type if self.tokens else ""


def reparse_block(
    source: str,
    *,
    is_continuation: bool = False,
    has_continuation: bool = False,
    number: int = 0,
    columns: tuple[int, ...] = (),
) -> tuple[MarkdownBlock, ...]:
    """Return the blocks of a finished block's source, parsed again. `number` is the first number of an ordered list."""
    blocks = parse_blocks(source)
    if number and blocks and blocks[0].kind == "ordered_list_open":
        blocks[0].tokens[0].attrSet("start", str(number))
    return tuple(
        msgspec.structs.replace(
            block, is_continuation=is_continuation and at == 0, has_continuation=has_continuation, columns=columns
        )
        for at, block in enumerate(blocks)
    )


def parse_blocks(source: str) -> list[MarkdownBlock]:
    """Return the top-level blocks of `source` with their inline content."""
    env: dict[str, Any] = {}
    return list(parse_inlines(split_blocks(source, env), env))


def parse_inlines(blocks: Sequence[MarkdownBlock], env: dict[str, Any]) -> Iterator[MarkdownBlock]:
    """Yield each block once its inline content has been parsed, in place."""
    parser = _inline_parser()
    state = StateCore("", parser, env)
    for block in blocks:
        state.tokens = list(block.tokens)
        parser.core.process(state)
        yield block


def split_blocks(source: str, env: dict[str, Any]) -> list[MarkdownBlock]:
    """Return the top-level blocks of `source` without inline content, which is cheap for text with many marks.

    Their sources make up `source` except for leading blank lines.
    """
    tokens = _block_parser().parse(source, env)
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
        blocks.append(MarkdownBlock(text, tuple(tokens[index:next_index])))
    return blocks


@functools.cache
def _block_parser() -> MarkdownIt:
    """Return the parser that finds blocks."""
    parser = _new_parser()
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@functools.cache
def _inline_parser() -> MarkdownIt:
    """Return the parser for the inline content of blocks."""
    return _new_parser().disable(["normalize", "block"])


def _new_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True}).enable(["table", "strikethrough"])
    # The inline rule turns bare addresses into links. The core rule of the same name is slow and stays off.
    parser.inline.ruler.enable("linkify")
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(price_plugin)
    parser.use(bracket_math_plugin)
    parser.use(bounded_inline_plugin)
    parser.use(footnote_plugin)
    parser.use(tasklists_plugin)
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser
