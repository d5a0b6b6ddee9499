"""A rule for markdown-it: emphasis beside Chinese, Japanese and Korean, which have no blanks between words."""

import functools
import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, emphasis, strikethrough
from markdown_it.rules_inline.state_inline import Scanned

# Chinese, Japanese and Korean letters, and their wide punctuation.
_CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef“”‘’…—]|[\U00020000-\U0003ffff]")


def chinese_emphasis_plugin(parser: MarkdownIt) -> None:
    """Let emphasis begin and end beside Chinese.

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
    before, after = state.src[max(start - 1, 0) : start], state.src[end : min(end + 1, state.posMax)]
    if not can_split_word or not (_CJK.match(before) or _CJK.match(after)):
        return scanned
    return Scanned(bool(after.strip()), bool(before.strip()), scanned.length)
