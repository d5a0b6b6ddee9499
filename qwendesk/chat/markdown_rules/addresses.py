"""Where a bare address ends in Chinese and Japanese text, which has no blank behind it."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, linkify

# The punctuation of Chinese and Japanese; 々, 〆 and 〇 are letters.
_PUNCTUATION = re.compile(
    "[\u3000-\u3004\u3008-\u3020\u3030\u303d\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’…—]"
)
# A host in Latin letters with a word right behind it: no top-level domain mixes the two.
_HOST = re.compile(r"://(?:[a-z0-9-]+\.)+[a-z]{2,}(?=[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af])", re.IGNORECASE)


def address_plugin(parser: MarkdownIt) -> None:
    """End a bare address before Chinese and Japanese punctuation, and a host before a Chinese word."""
    parser.inline.ruler.at("linkify", _parse_address)


def _parse_address(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("://", state.pos):
        return False
    end = _HOST.match(state.src, state.pos) or _PUNCTUATION.search(state.src, state.pos, state.posMax)
    if end is None:
        return linkify(state, silent)
    source = state.src
    state.src = source[: end.end() if end[0].startswith("://") else end.start()]
    try:
        return linkify(state, silent)
    finally:
        state.src = source
