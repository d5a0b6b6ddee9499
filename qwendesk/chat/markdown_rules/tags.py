"""The HTML tags that are drawn: "<br>" breaks a line; "<sub>", "<sup>" and "<kbd>" change their text."""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

BREAK: Final = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
_BREAK_WITH_SPACES = re.compile(rf"{BREAK.pattern}[ \t]*\n?[ \t]*", re.IGNORECASE)
_OPENING = re.compile("<(sub|sup|kbd)>", re.IGNORECASE)
_CLOSING = {name: re.compile(f"</{name}>", re.IGNORECASE) for name in ("sub", "sup", "kbd")}
# Key in the environment: the contents of table cells.
_CELLS = "cells"


def tags_plugin(parser: MarkdownIt) -> None:
    """Add the tokens `sub`, `sup` and `kbd`, and a hard break for "<br>".

    In a table cell it always breaks the line. Elsewhere it stays text where a sentence speaks of the tag: between two
    blanks or at the beginning of a word.
    """
    parser.core.ruler.before("inline", "cells", _find_cells)
    parser.inline.ruler.before("autolink", "tags", _parse_tag)


def _find_cells(state: StateCore) -> None:
    tokens = state.tokens
    state.env[_CELLS] = {
        tokens[at + 1].content
        for at, token in enumerate(tokens)
        if token.type in ("td_open", "th_open") and "<" in tokens[at + 1].content
    }


def _parse_tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "<":
        return False
    opening = _OPENING.match(state.src, state.pos, state.posMax)
    if opening is None:
        return _parse_break(state, silent)
    name = opening[1].lower()
    closing = _CLOSING[name].search(state.src, opening.end(), state.posMax)
    if closing is None or not state.src[opening.end() : closing.start()].strip():
        return False
    if not silent:
        end, state.pos, state.posMax = state.posMax, opening.end(), closing.start()
        state.push(f"{name}_open", name, 1)
        state.md.inline.tokenize(state)
        state.push(f"{name}_close", name, -1)
        state.posMax = end
    state.pos = closing.end()
    return True


def _parse_break(state: StateInline, silent: bool) -> bool:
    found = _BREAK_WITH_SPACES.match(state.src, state.pos, state.posMax)
    if found is None or (state.src not in state.env.get(_CELLS, ()) and _is_word(state, found)):
        return False
    if not silent:
        state.pending = state.pending.rstrip(" ")
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _is_word(state: StateInline, tag: re.Match[str]) -> bool:
    """Return True if a sentence speaks of the tag instead of using it."""
    before = state.src[tag.start() - 1 : tag.start()] if tag.start() else ""
    return (not before or before in " \n\"'(“‘「（") and tag.end() < state.posMax and not tag[0].endswith("\n")
