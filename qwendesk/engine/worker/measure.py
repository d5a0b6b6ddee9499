"""Count the tokens of a conversation and of its parts, without evaluating anything."""

from collections.abc import Sequence

import msgspec

from qwendesk.core.messages import ImagePart, Message, Part
from qwendesk.engine.protocol import Measure, Measured, MessageTokens, PictureCost
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.prompt import ImagePlaceholder
from qwendesk.engine.worker.request_layout import Send, announced_template, no_picture_support, prompt_of


def measure(session: Session, request: Measure, send: Send) -> Measured:
    """Return the number of tokens of the whole prompt, of each part of a message and of each image.

    Raise BadRequest for a file that is not an image, and if the template refuses the conversation.
    """
    counter = _Counter(session, request, send)
    prompt_tokens = reasoning_tokens = 0
    if request.messages:
        prompt_tokens = counter.prompt_tokens(request.messages)
    if any(message.reasoning for message in request.messages):
        without = [msgspec.structs.replace(message, reasoning="") for message in request.messages]
        reasoning_tokens = max(0, prompt_tokens - counter.prompt_tokens(without))
    return Measured(
        id=request.id,
        prompt_tokens=prompt_tokens,
        reasoning_tokens=reasoning_tokens,
        messages=tuple(MessageTokens(tuple(map(counter.part_tokens, each.parts))) for each in request.messages),
        pictures=tuple(map(counter.picture_cost, request.pictures)),
        n_ctx=session.model.n_ctx,
    )


class _Counter:
    """Counts the tokens for one request; each image is counted only once."""

    def __init__(self, session: Session, request: Measure, send: Send) -> None:
        self._session, self._request, self._send = session, request, send
        self._costs: dict[str, PictureCost] = {}

    def prompt_tokens(self, messages: Sequence[Message]) -> int:
        template = announced_template(self._session, self._request, self._send)
        prompt = prompt_of(
            self._session, template, messages, self._request.options, self._request.tools_json,
            client=self._request.client,
        )  # fmt: skip
        return sum(
            self.picture_cost(piece.image).tokens if isinstance(piece, ImagePlaceholder) else len(piece)
            for piece in prompt.pieces
        )

    def part_tokens(self, part: Part) -> int:
        if isinstance(part, ImagePart):
            return self.picture_cost(part).tokens
        return len(self._session.memory_of(self._request.client).vocabulary.tokenize(part.text))

    def picture_cost(self, part: ImagePart) -> PictureCost:
        if self._session.vision is None:
            raise no_picture_support()
        if part.sha256 not in self._costs:
            width, height, n_tokens = self._session.vision.count(part)
            self._costs[part.sha256] = PictureCost(sha256=part.sha256, width=width, height=height, tokens=n_tokens)
        return self._costs[part.sha256]
