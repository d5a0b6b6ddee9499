"""Parses Markdown into top-level blocks with markdown-it and our rules for it. Pure Python, no Qt.

Raw HTML becomes text, apart from a few tags, and formulas keep their source. `split_blocks` finds the blocks.
`parse_inlines` parses their inline content, which is most of the work for text with many marks.

They replace existing plugins because a streamed answer refers to a footnote long before it defines it, and because the
stream can only be split at a formula block that knows its lines.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from qwendesk.chat.markdown_rules.addresses import address_plugin
from qwendesk.chat.markdown_rules.emphasis import emphasis_plugin
from qwendesk.chat.markdown_rules.nested_fences import nested_fences_plugin
from qwendesk.chat.markdown_rules.tags import tags_plugin


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
    is_continuation: bool,
    has_continuation: bool,
    number: int,
    columns: tuple[int, ...],
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
    parser.use(emphasis_plugin).use(address_plugin).use(tags_plugin).use(nested_fences_plugin)
    parser.use(footnote_plugin)
    parser.use(tasklists_plugin)
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


# A paragraph with more marks stays plain text. Real answers have a tenth of that.
MAX_MARKS = 800
_MARK = re.compile(r"[\[\]*_~`$<&\\!|]|://")


def bounded_inline_plugin(parser: MarkdownIt) -> None:
    """Replace markdown-it's rule for inline content with one that takes linear time."""
    parser.core.ruler.at("inline", _parse_paragraphs)


def _parse_paragraphs(state: StateCore) -> None:
    for token in state.tokens:
        if token.type != "inline":
            continue
        children: list[Token] = []
        if len(token.content) < MAX_MARKS or sum(1 for _ in _MARK.finditer(token.content)) < MAX_MARKS:
            state.md.inline.parse(token.content, state.md, state.env, children)
        else:
            children = _plain(token.content)
        token.children = children


def _plain(text: str) -> list[Token]:
    children = []
    for number, line in enumerate(text.split("\n")):
        if number:
            children.append(Token("softbreak", "br", 0))
        children.append(Token("text", "", 0, content=line))
    return children


_FOOTNOTE_MARK = re.compile(r"\[\^([^\s\[\]^]{1,40})\]")
_DEFINITION = re.compile(r"\[\^([^\s\[\]^]{1,40})\]:[ \t]*")


def footnote_plugin(parser: MarkdownIt) -> None:
    """Add the inline token `footnote_ref` and the block tokens `footnote_open` and `footnote_close`.

    The footnote's name is in the token's `meta`.
    """
    parser.block.ruler.before("reference", "footnote", _parse_footnote, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "footnote_ref", _parse_footnote_reference)


def _parse_footnote_reference(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("[^", state.pos):
        return False
    found = _FOOTNOTE_MARK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"name": found[1]}
    state.pos = found.end()
    return True


def _parse_footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a definition: its line and the lines below it, up to a blank line or another definition."""
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    found = _DEFINITION.match(first)
    if found is None:
        return False
    if silent:
        return True
    lines = [first[found.end() :]]
    for number in range(start + 1, end):
        text = _line(state, number)
        if not text.strip() or _DEFINITION.match(text):
            break
        lines.append(text)
    after = start + len(lines)
    opening = state.push("footnote_open", "", 1)
    opening.meta, opening.map = {"name": found[1]}, [start, after]
    state.push("paragraph_open", "p", 1)
    words = state.push("inline", "", 0)
    words.content, words.map, words.children = "\n".join(lines).strip(), [start, after], []
    state.push("paragraph_close", "p", -1)
    state.push("footnote_close", "", -1)
    state.line = after
    return True


_FORMULA_BRACKETS = {"\\(": "\\)", "\\[": "\\]"}


def bracket_math_plugin(parser: MarkdownIt) -> None:
    """Add the tokens `math_block` and `math_inline`, whose content is the source of a formula."""
    parser.block.ruler.before("fence", "bracket_math", _parse_formula_block, {"alt": ["paragraph"]})
    parser.inline.ruler.before("escape", "bracket_math", _parse_inline_formula)


def _parse_formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Parse a formula from \[ at the start of a line to \] at the end of a line or to the end of the text."""
    first = _line(state, start)
    if not first.startswith("\\[") or state.is_code_block(start):
        return False
    lines = []
    for number in range(start, end):
        text = _line(state, number)
        if not text.strip():
            return False
        lines.append(text)
        if text.rstrip().endswith("\\]"):
            break
    if silent:
        return True
    content = "\n".join(lines).strip()
    token = state.push("math_block", "math", 0)
    token.block = True
    token.markup = "\\["
    token.content = content.removeprefix("\\[").removesuffix("\\]").strip()
    token.map = [start, start + len(lines)]
    state.line = start + len(lines)
    return True


def _parse_inline_formula(state: StateInline, silent: bool) -> bool:
    closing = _FORMULA_BRACKETS.get(state.src[state.pos : state.pos + 2])
    if closing is None:
        return False
    end = state.src.find(closing, state.pos + 2, state.posMax)
    if end < 0:
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.markup = state.src[state.pos : state.pos + 2]
        token.content = state.src[state.pos + 2 : end].strip()
    state.pos = end + 2
    return True


# The dollar of a price: "$5 and ..." (a formula has no words after a number), or "US$5".
_PRICE = re.compile(r"\$(?=\d[\d.,]*[*_~]*[ \n]+[^\W\d_]{2})|(?<=[A-Z])\$(?=\d)")


def price_plugin(parser: MarkdownIt) -> None:
    """Leave the dollar of a price as text: in "from $5 to 10$" is no formula."""
    parser.inline.ruler.before("math_inline", "price", _parse_price)


def _parse_price(state: StateInline, silent: bool) -> bool:
    if not _PRICE.match(state.src, state.pos):
        return False
    if not silent:
        state.pending += "$"
    state.pos += 1
    return True


def formula_source(token: Token) -> str:
    r"""Return a formula with its delimiters: "$x$" or "\[x\]"."""
    opening = token.markup or "$"
    return f"{opening}{token.content}{_FORMULA_BRACKETS.get(opening, opening)}"


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
