"""Keep the tokens of answers as the model wrote them, so that nothing of them is read again, even if one was stopped
early.

The prompt that follows a call has the answer as the template writes it. Often the model has written its text in other
tokens than those into which it falls when it is tokenized. Then a hybrid model, which can't drop its last tokens, would
have to go back to before the thinking and read all of the answer. So the tokens that were written replace those of the
prompt, where they stand after the same items and spell the same text.

Tokenizing the text of an answer again may give other tokens than those generated, such as for a word that was cut in
half. So the tokens of the last few interrupted answers are kept. With them, the KV cache of the answer can be reused
as a whole, and the continuation is the same as without the interruption.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.protocol import Begun
from qwendesk.engine.worker.cache import Item
from qwendesk.engine.worker.layout import Layout, with_other_items
from qwendesk.engine.worker.prompt import Prompt

# Answers: more than the rounds of calls after one question.
_REMEMBERED = 32


class Spelling(msgspec.Struct, frozen=True):
    """The texts of a model's tokens."""

    piece: Callable[[int], bytes]
    is_end: Callable[[int], bool]
    """True if a token ends a message."""
    markers: frozenset[int]
    """Tokens that mean more than their text, such as `<tool_call>`."""

    def is_text(self, item: Item) -> bool:
        return isinstance(item, int) and item not in self.markers

    def of(self, items: Sequence[Item]) -> list[tuple[bytes, Item | None]]:
        """Return each run of text with the marker or image that ends it."""
        spelled: list[tuple[bytes, Item | None]] = []
        text = bytearray()
        for item in items:
            if isinstance(item, int) and item not in self.markers:
                text += self.piece(item)
            else:
                spelled.append((bytes(text), item))
                text.clear()
        return [*spelled, (bytes(text), None)]


class _WrittenAnswer(msgspec.Struct, frozen=True):
    n_before: int
    """Number of items before it, up to the last marker of its prompt: text is tokenized from marker to marker."""
    hash_before: int
    items: tuple[Item, ...]


class WrittenAnswers:
    """The last answers with calls, oldest first."""

    def __init__(self) -> None:
        self._answers: deque[_WrittenAnswer] = deque(maxlen=_REMEMBERED)

    def remember(self, prompt: Sequence[Item], tokens: Sequence[int], spelling: Spelling) -> None:
        """Keep the tokens that the model wrote after the items of a prompt."""
        first = len(prompt)
        while first and spelling.is_text(prompt[first - 1]):
            first -= 1
        self._answers.append(_WrittenAnswer(first, hash(tuple(prompt[:first])), (*prompt[first:], *tokens)))

    def respell(self, layout: Layout, spelling: Spelling) -> Layout:
        """Return the layout with the answers in it as they were written."""
        for answer in self._answers:
            first = answer.n_before
            if first >= len(layout.items) or hash(layout.items[:first]) != answer.hash_before:
                continue
            last = next(_ends(layout.items, first, spelling), first)
            if spelling.of(layout.items[first:last]) == spelling.of(answer.items):
                layout = with_other_items(layout, first, last, answer.items)
        return layout


def _ends(items: Sequence[Item], first: int, spelling: Spelling) -> Iterator[int]:
    """Yield where messages end, from item `first` on."""
    for index in range(first, len(items)):
        item = items[index]
        if isinstance(item, int) and spelling.is_end(item):
            yield index


# How many interrupted answers keep their tokens, at a few bytes per token.
_REMEMBERED_INTERRUPTED = 8


class InterruptedAnswer(msgspec.Struct, frozen=True):
    """The tokens of an answer that can be continued, including markers, without those of the prompt."""

    tokens: tuple[int, ...]
    opens_reasoning: bool
    """True if the prompt before the answer ended inside an open `<think>`."""


class RecentAnswers:
    """The last few interrupted answers, by the text that the user saw."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Begun, InterruptedAnswer] = OrderedDict()

    def remember(self, seen: Begun, answer: InterruptedAnswer) -> None:
        self._kept[seen] = answer
        self._kept.move_to_end(seen)
        while len(self._kept) > _REMEMBERED_INTERRUPTED:
            self._kept.popitem(last=False)

    def recall(self, seen: Begun | None, *, opens_reasoning: bool) -> InterruptedAnswer | None:
        """Return the answer with the text `seen` whose prompt had the same `opens_reasoning`; None if there is none."""
        answer = None if seen is None else self._kept.get(seen)
        return answer if answer is not None and answer.opens_reasoning == opens_reasoning else None


def options_to_resume(options: GenerationOptions, begun: Begun | None) -> GenerationOptions:
    """Return `options` with thinking on or off as in the partial answer, so that the prompt ends in the same way."""
    if begun is None or begun.is_empty:
        return options
    return msgspec.structs.replace(options, enable_thinking=bool(begun.reasoning) or begun.thought_is_open)


def with_tokens(prompt: Prompt, tokens: Sequence[int]) -> Prompt:
    """Return `prompt` with the tokens of a partial answer at its end."""
    *before, last = prompt.pieces
    run = (*last, *tokens) if isinstance(last, tuple) else None
    pieces = (*prompt.pieces, tuple(tokens)) if run is None else (*before, run)
    return msgspec.structs.replace(prompt, pieces=pieces, begun=tuple(tokens))
