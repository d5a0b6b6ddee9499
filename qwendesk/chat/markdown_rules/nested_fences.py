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


def closing_fence(first_line: str, text: str) -> int | None:
    """Return where the line begins that ends a code block of Markdown; None if the block is still open.

    `text` is everything behind `first_line`.
    """
    for start, length in _states(first_line, text):
        if length < 0:
            return start
    return None


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
    opening = MARKDOWN_FENCE.match(first_line)
    if opening is None:
        return
    mark = opening["mark"]
    known = _INSIDE.search(first_line)
    inside = int(known[1]) if known else 0
    yield 0, inside
    for fence in _FENCE_LINE.finditer(text):
        length, has_language = len(fence[1]), bool(fence[2].strip())
        if fence[1][0] != mark[0] or length < len(mark):
            continue
        if inside:
            inside = 0 if not has_language and length >= inside else inside
        elif has_language:
            inside = length if "`" not in fence[2] else 0
        elif _begins_block(text, fence.start(), fence.end()):
            inside = length
        else:
            inside = -1
        yield fence.start(), inside
        if inside < 0:
            return


def _begins_block(text: str, start: int, end: int) -> bool:
    """Return True if a bare fence looks like the beginning of an inner block."""
    before = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)].rstrip()
    following = text[end + 1 : (text + "\n").find("\n", end + 1)]
    return start > 0 and (not before or before[-1] in ":：") and bool(following.strip())


def _parse_fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    at = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith(("```", "~~~"), at) or state.is_code_block(start):
        return False
    first = state.src[at : state.eMarks[start]]
    opening = MARKDOWN_FENCE.fullmatch(first)
    if opening is None or (opening["mark"][0] == "`" and "`" in first[opening.end("mark") :]):
        return False
    if silent:
        return True
    stop = start + 1
    while stop < end and (state.isEmpty(stop) or state.sCount[stop] >= state.blkIndent):
        stop += 1
    text = state.getLines(start + 1, stop, state.sCount[start], True)
    closing = closing_fence(first, text)
    if closing is not None:
        stop = start + 1 + text.count("\n", 0, closing)
    token = state.push("fence", "code", 0)
    token.info = first[opening.end("mark") :]
    token.content = text if closing is None else text[:closing]
    token.markup = opening["mark"]
    state.line = stop + (closing is not None)
    token.map = [start, state.line]
    return True
