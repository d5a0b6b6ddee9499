"""The texts of special tokens: cutting them out of a prompt, and keeping typed ones from becoming tokens. Pure."""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise


class Literals:
    """The texts of a vocabulary's special tokens, longest first, as llama.cpp looks for them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted(set(texts) - {""}, key=lambda text: (-len(text.encode()), text)))

    def cut(self, text: str) -> list[tuple[str, bool]]:
        """`text` in fragments, each with whether it is one of the literals. No fragment is empty.

        Every occurrence of the longest literal is taken first, then those of the next in what is left.
        """
        fragments = [(text, False)] if text else []
        for literal in self.texts:
            if literal in text:
                fragments = [piece for fragment in fragments for piece in _cut_one(fragment, literal)]
        return fragments

    def split_inert(self, text: str) -> list[str]:
        """`text` in as few fragments as it takes to have none of the literals whole in any of them.

        Each is cut after its first character, so literals of one character cannot be made inert.
        """
        present = [literal for literal in self.texts if literal in text]
        if not present:
            return [text]
        # A lookahead finds overlapping literals too.
        starts = re.finditer(f"(?={'|'.join(map(re.escape, present))})", text)
        cuts = [0, *(match.start() + 1 for match in starts), len(text)]
        return [text[start:end] for start, end in pairwise(cuts) if start < end]

    def hide(self, text: str, hide: Callable[[str], str]) -> str:
        """`text` with every literal in it, in upper or lower case, replaced by `hide(literal)`."""
        lowered = text.lower()
        present = [literal for literal in self.texts if literal.lower() in lowered]
        if not present:
            return text
        pattern = re.compile("|".join(map(re.escape, present)), re.IGNORECASE)
        return pattern.sub(lambda match: hide(match.group()), text)

    def hide_with_edges(self, text: str, hide: Callable[[str], str]) -> str:
        """As `hide`, and with the ends of `text` hidden that could complete a literal with what stands beside it."""
        most = len(self.texts[0]) if self.texts else 0
        ending, opening = _fold(text[-most:]), _fold(text[:most])
        n_tail = next((n for n in range(len(ending), 0, -1) if ending[-n:] in self._beginnings), 0)
        end = len(text) - n_tail
        start = next((n for n in range(min(len(opening), end), 0, -1) if opening[:n] in self._endings), 0)
        head, middle, tail = text[:start], text[start:end], text[end:]
        return (hide(head) if head else "") + self.hide(middle, hide) + (hide(tail) if tail else "")

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(_fold(text)[:n] for text in self.texts for n in range(1, len(text) + 1))

    @cached_property
    def _endings(self) -> frozenset[str]:
        return frozenset(_fold(text)[-n:] for text in self.texts for n in range(1, len(text) + 1))


def _cut_one(fragment: tuple[str, bool], literal: str) -> Iterable[tuple[str, bool]]:
    text, is_literal = fragment
    if is_literal or literal not in text:
        yield fragment
        return
    first, *others = text.split(literal)
    if first:
        yield first, False
    for other in others:
        yield literal, True
        if other:
            yield other, False


def _fold(text: str) -> str:
    """Lower case, character by character, so that the length stays."""
    return "".join(lowered if len(lowered := char.lower()) == 1 else char for char in text)
