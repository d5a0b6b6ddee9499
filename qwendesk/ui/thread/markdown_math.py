r"""Formulas between \( and \) or \[ and \] for markdown-it. ($ and $$ come from its dollarmath plugin.)

Written here because a block must know its lines, or the stream cannot cut at it.
"""

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_PAIRS = {"\\(": "\\)", "\\[": "\\]"}


def bracket_math_plugin(parser: MarkdownIt) -> None:
    """Adds the tokens `math_block` and `math_inline`, whose content is the formula's source."""
    parser.block.ruler.before("fence", "bracket_math", _block, {"alt": ["paragraph"]})
    parser.inline.ruler.before("escape", "bracket_math", _inline)


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""A formula from \[ at a line's start to \] at a line's end; to the end of the text while that has not come."""
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


def _inline(state: StateInline, silent: bool) -> bool:
    closing = _PAIRS.get(state.src[state.pos : state.pos + 2])
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


def written(token: Token) -> str:
    r"""A formula's token as it stands in Markdown, with its marks: "$x$" or "\[x\]"."""
    opening = token.markup or "$"
    return f"{opening}{token.content}{_PAIRS.get(opening, opening)}"


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
