"""Footnotes for markdown-it that need not know the whole text: `[^name]` in a line, `[^name]: text` at a line's start.

Written here because a streamed answer names a footnote long before it defines it.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_MARK = re.compile(r"\[\^([^\s\[\]^]{1,40})\]")
_DEFINITION = re.compile(r"\[\^([^\s\[\]^]{1,40})\]:[ \t]*")


def footnote_plugin(parser: MarkdownIt) -> None:
    """Adds the inline token `footnote_ref` and the block tokens `footnote_open`, `footnote_close`, by name in meta."""
    parser.block.ruler.before("reference", "footnote", _block, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "footnote_ref", _inline)


def _inline(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("[^", state.pos):
        return False
    found = _MARK.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"name": found[1]}
    state.pos = found.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A definition: its line, and the lines below it up to a blank one or another definition."""
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


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
