"""Continue an answer that was stopped early: from its own tokens if they are known, else from its text.

Tokenizing the text of an answer again may give other tokens than those generated, such as for a word that was cut in
half. So the tokens of the last few interrupted answers are kept. With them, the KV cache of the answer can be reused
as a whole, and the continuation is the same as without the interruption.
"""

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.protocol import Begun
from qwendesk.engine.worker.prompt import Prompt

_REMEMBERED = 8
"""How many interrupted answers keep their tokens, at a few bytes per token."""


class InterruptedAnswer(msgspec.Struct, frozen=True):
    """The tokens of an answer that can be continued, including markers, without those of the prompt."""

    tokens: tuple[int, ...]
    opens_reasoning: bool
    """Whether the prompt before the answer ended inside an open `<think>`."""


class RecentAnswers:
    """The last few interrupted answers, by the text that the user saw."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Begun, InterruptedAnswer] = OrderedDict()

    def remember(self, seen: Begun, answer: InterruptedAnswer) -> None:
        self._kept[seen] = answer
        self._kept.move_to_end(seen)
        while len(self._kept) > _REMEMBERED:
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
