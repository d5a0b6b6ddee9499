"""Find the texts of special tokens in a prompt, and keep texts that users typed from becoming special tokens."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Literal

AdjacentText = Literal["nothing", "either end", "both ends at once"]
"""Where a template may write characters directly before or after a text, which could complete a special token."""


class SpecialTexts:
    """The texts of a vocabulary's special tokens, longest first: llama.cpp searches for them in this order."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted(set(texts) - {""}, key=lambda text: (-len(text.encode()), text)))

    def cut(self, text: str) -> list[tuple[str, bool]]:
        """Split `text` into fragments, and say for each whether it is one of the special texts. No fragment is empty.

        All occurrences of the longest text are cut out first, then those of the next longest in the rest.
        """
        fragments = [(text, False)] if text else []
        for special in self.texts:
            if special in text:
                fragments = [piece for fragment in fragments for piece in _cut_one(fragment, special)]
        return fragments

    def split_inert(self, text: str) -> list[str]:
        """Split `text` into as few fragments as possible so that none of them contains a whole special text.

        Each special text is cut after its first character, so one of a single character cannot be made inert.
        """
        present = [special for special in self.texts if special in text]
        if not present:
            return [text]
        # A lookahead finds overlapping special texts too.
        starts = re.finditer(f"(?={'|'.join(map(re.escape, present))})", text)
        cuts = [0, *(match.start() + 1 for match in starts), len(text)]
        return [text[start:end] for start, end in pairwise(cuts) if start < end]

    def weak_spots(self, text: str, adjacent: AdjacentText) -> set[int]:
        """Return the indexes of the characters in `text` that must be hidden so that it forms no special text.

        That holds in upper and lower case, for `text` alone and for `text` with the template's text around it.
        """
        folded = fold(text)
        present = [special for special in self._folded if special in folded]
        spots: set[int] = set()
        if present:
            spots.update(match.start() for match in re.finditer(f"(?={'|'.join(map(re.escape, present))})", folded))
        if adjacent == "nothing" or not folded:
            return spots
        reach = min(len(folded), max(map(len, self._folded), default=0))
        spots.update(at for at in range(len(folded) - reach, len(folded)) if folded[at:] in self._beginnings)
        spots.update(next(([n - 1] for n in range(1, reach + 1) if folded[:n] in self._endings), []))
        if adjacent == "both ends at once" and any(folded in special for special in self._folded):
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
    """Return `text` without case distinctions. Each character is folded by itself, so the length does not change."""
    if text.isascii():
        return text.lower()
    return "".join(folded if len(folded := char.upper().casefold()) == 1 else char for char in text)


def _cut_one(fragment: tuple[str, bool], special: str) -> Iterable[tuple[str, bool]]:
    text, is_special = fragment
    if is_special or special not in text:
        yield fragment
        return
    first, *others = text.split(special)
    if first:
        yield first, False
    for other in others:
        yield special, True
        if other:
            yield other, False
