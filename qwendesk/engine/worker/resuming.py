"""An answer that was cut goes on from its very text: by its own tokens where they are known, else by its text.

The tokens an answer was made of are not always those of its text read again (a word cut in half is another token),
so those of the last few cut answers are remembered. With them, memory that still holds the answer is reused whole,
and what follows is what would have followed without the cut.
"""

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from qwendesk.core.options import GenerationOptions
from qwendesk.engine.protocol import Begun
from qwendesk.engine.worker.prompt import Prompt

_REMEMBERED = 8
"""Cut answers whose tokens are kept; each takes a few bytes a token."""


class CutAnswer(msgspec.Struct, frozen=True):
    """The tokens of an answer that can go on, markers included, without the prompt's."""

    tokens: tuple[int, ...]
    opens_thought: bool
    """The prompt before them ended inside a thought."""


class RecentAnswers:
    """The last few answers that were cut, by what people saw of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Begun, CutAnswer] = OrderedDict()

    def remember(self, seen: Begun, answer: CutAnswer) -> None:
        self._kept[seen] = answer
        self._kept.move_to_end(seen)
        while len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)

    def recall(self, seen: Begun | None, *, opens_thought: bool) -> CutAnswer | None:
        """The answer that looked like this, if it began after a prompt of the same kind."""
        answer = None if seen is None else self._kept.get(seen)
        return answer if answer is not None and answer.opens_thought == opens_thought else None


def options_to_resume(options: GenerationOptions, begun: Begun | None) -> GenerationOptions:
    """`options` with thinking as it was when the answer was begun: its prompt must end in the same way."""
    if begun is None or begun.is_empty:
        return options
    return msgspec.structs.replace(options, enable_thinking=bool(begun.reasoning) or begun.thought_is_open)


def with_tokens(prompt: Prompt, tokens: Sequence[int]) -> Prompt:
    """`prompt` with the tokens of a begun answer at its end."""
    *before, last = prompt.pieces
    run = (*last, *tokens) if isinstance(last, tuple) else None
    pieces = (*prompt.pieces, tuple(tokens)) if run is None else (*before, run)
    return msgspec.structs.replace(prompt, pieces=pieces, begun=tuple(tokens))
