"""Emphasis beside Chinese, Japanese and Korean, which have no blanks between words, and after "**Note:**".

The rules are those of the CJK-friendly amendments to CommonMark
(https://github.com/tats-u/markdown-cjk-friendly/blob/main/specification.md), which markdown-it-cjk-friendly and others
follow. One more is ours; see `_SENTENCE_ENDS`.
"""

import functools
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.common.utils import isMdAsciiPunct, isPunctChar, isWhiteSpace
from markdown_it.rules_inline import StateInline, emphasis, strikethrough
from markdown_it.rules_inline.state_inline import Scanned

from qwendesk.chat.markdown_rules.cjk import is_cjk

# After one of these, "**" ends what it can end, even before a letter: models write "**Note:**text".
_SENTENCE_ENDS = ":.!?…”"
# "“" and its like are as wide as Chinese with this variation selector.
_WIDE_QUOTES, _WIDE_SELECTOR, _WIDE_QUOTE = "‘’“”", "\ufe01", "「"
_CHINESE_LETTER = "一"


def emphasis_plugin(parser: MarkdownIt) -> None:
    """Let emphasis begin and end beside Chinese, Japanese and Korean.

    By CommonMark's rules "**“很好”**的" and "**重要：**请" show their asterisks, because a mark between punctuation and
    a letter either can't begin or can't end emphasis.
    """
    for name, rule in (("strikethrough", strikethrough.tokenize), ("emphasis", emphasis.tokenize)):
        parser.inline.ruler.at(name, functools.partial(_parse_marks, rule))


def _parse_marks(rule: Callable[[StateInline, bool], bool], state: StateInline, silent: bool) -> bool:
    state.scanDelims = functools.partial(_scan_marks, state)  # type: ignore[method-assign]
    return rule(state, silent)


def _scan_marks(state: StateInline, start: int, can_split_word: bool) -> Scanned:
    scanned = StateInline.scanDelims(state, start, can_split_word)
    end = start + scanned.length
    before = _character_before(state.src, start)
    after = state.src[end] if end < state.posMax else " "
    if can_split_word and scanned.length == 2 and before in _SENTENCE_ENDS and after.isalnum():
        return Scanned(True, True, scanned.length)
    if before.isascii() and after.isascii():
        return scanned
    is_left = not _is_space(after) and (
        not _is_other_punctuation(after) or _is_space(before) or _is_other_punctuation(before) or is_cjk(before)
    )
    is_right = not _is_space(before) and (
        not _is_other_punctuation(before) or _is_space(after) or _is_other_punctuation(after) or is_cjk(after)
    )
    if can_split_word:
        return Scanned(is_left, is_right, scanned.length)
    opens = is_left and (not is_right or _is_punctuation(before))
    return Scanned(opens, is_right and (not is_left or _is_punctuation(after)), scanned.length)


def _character_before(text: str, start: int) -> str:
    """Return the character before `start`, or what stands for it if a variation selector follows it."""
    if start == 0:
        return " "
    last = text[start - 1]
    if "\U000e0100" <= last <= "\U000e01ef":
        return _CHINESE_LETTER  # only Chinese characters have such variants
    if not ("\ufe00" <= last <= "\ufe0e") or start == 1:
        return last
    base = text[start - 2]
    return _WIDE_QUOTE if last == _WIDE_SELECTOR and base in _WIDE_QUOTES else base


def _is_space(character: str) -> bool:
    return isWhiteSpace(ord(character))


def _is_punctuation(character: str) -> bool:
    return isMdAsciiPunct(ord(character)) or isPunctChar(character)


def _is_other_punctuation(character: str) -> bool:
    """Return True for punctuation that is not Chinese, Japanese or Korean."""
    return _is_punctuation(character) and not is_cjk(character)
