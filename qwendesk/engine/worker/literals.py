"""The texts of special tokens: cutting them out of a prompt, and keeping typed ones from becoming tokens. Pure."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Literal

Beside = Literal["nothing", "either end", "both ends at once"]
"""Where a template may write something that completes a special token with the text between."""


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

    def weak_spots(self, text: str, beside: Beside) -> set[int]:
        """The places in `text` whose characters must be hidden so that no literal comes about, in any case.

        Not in `text` itself, and not together with what may stand beside it.
        """
        folded = fold(text)
        present = [literal for literal in self._folded if literal in folded]
        spots: set[int] = set()
        if present:
            spots.update(match.start() for match in re.finditer(f"(?={'|'.join(map(re.escape, present))})", folded))
        if beside == "nothing" or not folded:
            return spots
        reach = min(len(folded), max(map(len, self._folded), default=0))
        spots.update(at for at in range(len(folded) - reach, len(folded)) if folded[at:] in self._beginnings)
        spots.update(next(([n - 1] for n in range(1, reach + 1) if folded[:n] in self._endings), []))
        if beside == "both ends at once" and any(folded in literal for literal in self._folded):
            spots.add(0)
        return spots

    @cached_property
    def _folded(self) -> tuple[str, ...]:
        return tuple(map(fold, self.texts))

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(text[:n] for text in self._folded for n in range(1, len(text)))

    @cached_property
    def _endings(self) -> frozenset[str]:
        return frozenset(text[n:] for text in self._folded for n in range(1, len(text)))


def fold(text: str) -> str:
    """`text` without case, character by character, so that the length stays."""
    if text.isascii():
        return text.lower()
    return "".join(folded if len(folded := char.upper().casefold()) == 1 else char for char in text)


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
