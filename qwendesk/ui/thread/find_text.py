"""Where words occur in a conversation, as it is drawn: Markdown's marks are not part of the text. No Qt."""

import re
from collections.abc import Sequence

import msgspec
from markdown_it.token import Token

from qwendesk.ui.thread.markdown_stream import blocks_of

_MARKS = str.maketrans("", "", "*_`~\\[]")
_ADDRESS = re.compile(r"\]\([^()\s]*\)")


class Match(msgspec.Struct, frozen=True):
    """One place: the row of the conversation, and which of that row's places it is, from 0."""

    row: int
    number: int


def may_contain(source: str, words: str) -> bool:
    """A quick look: whether `words` may be drawn somewhere in this Markdown."""
    needle = words.translate(_MARKS).casefold()
    return bool(words) and needle in _ADDRESS.sub("", source).translate(_MARKS).casefold()


def count_plain(text: str, words: str) -> int:
    return text.casefold().count(words.casefold()) if words else 0


def count_markdown(source: str, words: str) -> int:
    """How often `words` occur in what this Markdown shows."""
    return sum(count_plain(text, words) for block in blocks_of(source) for text in _texts(block.tokens))


def _texts(tokens: Sequence[Token]) -> list[str]:
    texts = []
    for token in tokens:
        if token.type == "inline":
            texts.append("".join(_drawn(child) for child in token.children or []))
        elif token.type in ("fence", "code_block"):
            texts += token.content.split("\n")
    return texts


def _drawn(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type in ("text", "text_special", "code_inline", "image"):
        return token.content
    return ""
