"""Code blocks of Markdown with code blocks inside, which CommonMark ends at the first inner fence.

In a block with the language "markdown" or "md", a fence with a language begins an inner block, and the next bare one
ends it. A bare fence begins one if a line follows it at once and a blank line, or one with a colon at its end, stands
before it: the fence that ends the outer block is rarely written so.
"""

import re
from collections.abc import Iterator
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

MARKDOWN_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?:markdown|md|mdx)\b[^\n]*", re.IGNORECASE)
"""The first line of a code block of Markdown."""
# In the first line of the rest of a long block: the length of the inner fence that is open there.
_INSIDE = re.compile(r" inside=(\d+)")
_FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)


def nested_fences_plugin(parser: MarkdownIt) -> None:
    """Let code blocks of Markdown hold code blocks."""
    parser.block.ruler.before(
        "fence", "nested_fences", _parse_fence, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def safe_cut(first_line: str, text: str, cut: int) -> int:
    """Return `cut`, or the next place before it where a code block can be split; 0 if there is none.

    What a bare fence means depends on the lines beside it, so they stay together. Inside of an inner block it ends it.
    """
    unsafe: set[int] = set()
    before = -1
    for start, inside in _states(first_line, text):
        if before == 0:
            unsafe |= {start, text.find("\n", start) + 1}
        before = inside
    while cut in unsafe:
        cut = text.rfind("\n", 0, max(0, cut - 1)) + 1
        unsafe.discard(0)
    return cut


def first_line_of_rest(first_line: str, text: str, cut: int) -> str:
    """Return the first line for the rest of a code block that is split at `cut` of `text`."""
    inside = 0
    for start, length in _states(first_line, text):
        if start >= cut:
            break
        inside = length
    line = _INSIDE.sub("", first_line)
    return f"{line} inside={inside}" if inside > 0 else line


def _states(first_line: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the start of the text and of each fence line in it, and the length of the inner fence that is open behind.

    It is 0 if none is, and -1 after the end of the block.
    """
    inside = _open_inside(first_line)
    yield 0, inside
    for fence in _FENCE_LINE.finditer(text):
        start, end = fence.span()
        before = text[text.rfind("\n", 0, start - 1) + 1 : start - 1] if start else None
        below = text.find("\n", end + 1)
        following = text[end + 1 : below if below >= 0 else len(text)]
        inside = _after(first_line, inside, fence, before, following)
        yield start, inside
        if inside < 0:
            return


def _open_inside(first_line: str) -> int:
    known = _INSIDE.search(first_line)
    return int(known[1]) if known else 0


def _after(first_line: str, inside: int, fence: re.Match[str], before: str | None, following: str) -> int:
    """Return what is open behind a fence line; see `_states`. `before` and `following` are the lines beside it."""
    opening = MARKDOWN_FENCE.match(first_line)
    length, has_language = len(fence[1]), bool(fence[2].strip())
    if opening is None or fence[1][0] != opening["mark"][0] or length < len(opening["mark"]):
        return inside
    if inside:
        return inside if has_language or length < inside else 0
    if has_language:
        return 0 if "`" in fence[2] else length
    return length if _begins_block(before, following) else -1


def _begins_block(before: str | None, following: str) -> bool:
    """Return True if a bare fence between these lines looks like the beginning of an inner block."""
    return before is not None and (before.rstrip() or ":")[-1] in ":：" and bool(following.strip())


def _parse_fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if not state.src.startswith(("```", "~~~"), state.bMarks[start] + state.tShift[start]):
        return False
    first = _line(state, start)
    opening = MARKDOWN_FENCE.fullmatch(first)
    if (
        opening is None
        or state.is_code_block(start)
        or (opening["mark"][0] == "`" and "`" in first[opening.end("mark") :])
    ):
        return False
    if silent:
        return True
    inside, stop = _open_inside(first), start + 1
    while stop < end and (state.isEmpty(stop) or state.sCount[stop] >= state.blkIndent):
        fence = None if state.is_code_block(stop) else _FENCE_LINE.fullmatch(_line(state, stop))
        if fence is not None:
            before = _line(state, stop - 1) if stop > start + 1 else None
            inside = _after(first, inside, fence, before, _line(state, stop + 1) if stop + 1 < end else "")
            if inside < 0:
                break
        stop += 1
    token = state.push("fence", "code", 0)
    token.info = first[opening.end("mark") :]
    token.content = state.getLines(start + 1, stop, state.sCount[start], True)
    token.markup = opening["mark"]
    state.line = stop + (inside < 0)
    token.map = [start, state.line]
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
