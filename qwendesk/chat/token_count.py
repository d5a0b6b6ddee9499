"""Estimates of requests that are certainly too long. They aren't sent, because tokenizing them would take minutes."""

from collections.abc import Sequence

import msgspec

from qwendesk.core.messages import DocumentPart, Message, TextPart
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr

MAX_CHARACTERS_PER_TOKEN = 32
"""Upper limit for the average of any text: prose and code have 3 to 6, tables padded with spaces up to 20."""
_USUAL_CHARACTERS_PER_TOKEN = 4


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens of a request, and of the context it must fit into."""

    tokens: int
    n_ctx: int
    is_estimate: bool = False
    """Estimated from the length of the text, which is certainly too large."""
    question_tokens: int = 0
    """Those of the new question; 0 if they were not counted apart."""

    @property
    def is_too_large(self) -> bool:
        """Whether no token would be left for an answer."""
        return self.tokens >= self.n_ctx > 0

    @property
    def is_question_too_large(self) -> bool:
        """Whether the question wouldn't fit in an empty chat either."""
        return self.question_tokens >= self.n_ctx > 0


def estimate_if_too_large(messages: Sequence[Message], n_ctx: int) -> TokenCount | None:
    """Return an estimate of a request whose text cannot fit into the context; None if only the engine can tell.

    Uses only the lengths of the texts. `n_ctx` is 0 if no model is loaded; then nothing is too large.
    """
    parts = [part for message in messages for part in message.parts]
    n_chars = sum(len(part.text) for part in parts if isinstance(part, TextPart | DocumentPart))
    if n_ctx <= 0 or n_chars <= MAX_CHARACTERS_PER_TOKEN * n_ctx:
        return None
    return TokenCount(n_chars // _USUAL_CHARACTERS_PER_TOKEN, n_ctx, is_estimate=True)


def too_large_sentence(count: TokenCount) -> str:
    """Return the sentence for users about an estimate."""
    return tr(
        "This fills about {0} tokens, but the context holds {1}. Shorten it, attach smaller documents, start a new "
        "chat, or load the model with a longer context.",
        show_count(count.tokens),
        show_count(count.n_ctx),
    )
