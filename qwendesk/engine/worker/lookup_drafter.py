"""Prompt lookup: drafts from what the context says already.

When the last tokens have occurred before, as in code that is edited, in quotes and in tables, the text often goes on
as it did then. Such drafts cost nothing to make and need no draft head.
"""

from collections.abc import Iterable, Sequence

from qwendesk.engine.worker.cache import Item

_MATCH = 3
"""How many tokens must have occurred before. With two, most drafts are wrong; with four, many are missed."""
_NO_TOKEN = -1
"""Stands for an image, with which no match is possible."""


class LookupDrafter:
    """Knows the context of one answer: its prompt, and what has been generated."""

    def __init__(self, prompt: Iterable[Item]) -> None:
        self._tokens = [item if isinstance(item, int) else _NO_TOKEN for item in prompt]
        tokens = self._tokens
        ends = range(_MATCH, len(tokens))  # the match at the very end has no continuation yet
        self._continuations = dict(zip(zip(tokens, tokens[1:], tokens[2:], strict=False), ends, strict=False))
        """Where the text went on after each three tokens the last time."""

    def add(self, token: int) -> None:
        """Take the next token of the context."""
        self._tokens.append(token)
        end = len(self._tokens) - 1
        if end >= _MATCH:
            self._continuations[self._match(end)] = end

    def propose(self, most: int) -> Sequence[int]:
        """Return up to `most` tokens that may follow; none if the last tokens have not occurred before."""
        if len(self._tokens) < _MATCH:
            return ()
        start = self._continuations.get(self._match(len(self._tokens)))
        if start is None:
            return ()
        drafts = self._tokens[start : start + most]
        return drafts[: drafts.index(_NO_TOKEN)] if _NO_TOKEN in drafts else drafts

    def _match(self, end: int) -> tuple[int, int, int]:
        first, second, third = self._tokens[end - _MATCH : end]
        return first, second, third
