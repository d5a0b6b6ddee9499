"""Markdown's inside of a paragraph, parsed only when that is cheap: some marks cost the square of their number."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

MOST_MARKS = 800
"""Marks in one paragraph from which all of it stays text. Real answers have a tenth of that."""
_MARK = re.compile(r"[\[\]*_~`$<&\\!|]|://")


def calm_inline_plugin(parser: MarkdownIt) -> None:
    """Takes the place of markdown-it's own rule for the inside of paragraphs."""
    parser.core.ruler.at("inline", _inline)


def _inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type != "inline":
            continue
        children: list[Token] = []
        if len(token.content) < MOST_MARKS or sum(1 for _ in _MARK.finditer(token.content)) < MOST_MARKS:
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
