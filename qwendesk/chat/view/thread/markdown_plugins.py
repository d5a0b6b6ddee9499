"""Rules for markdown-it: footnotes, formulas in brackets, and a limit on marks in a paragraph.

They replace existing plugins because a streamed answer refers to a footnote long before it defines it, and because the
stream can only be split at a formula block that knows its lines.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_MARKS = 800
"""A paragraph with more marks stays plain text. Real answers have a tenth of that."""
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


_PRICE = re.compile(r"\$(?=\d[\d.,]*[*_~]*[ \n]+[^\W\d_]{2})|(?<=[A-Z])\$(?=\d)")
"""The dollar of a price: "$5 and ..." (a formula has no words after a number), or "US$5"."""


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
