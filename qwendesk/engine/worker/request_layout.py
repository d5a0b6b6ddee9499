"""From a request to the layout of its prompt, and the number of tokens in each of its parts."""

from collections.abc import Callable, Sequence

import msgspec

from qwendesk.core.clips import parts_with_times, with_clips
from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, Part
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import (
    Begun,
    Event,
    Generate,
    Measure,
    Measured,
    MessageTokens,
    PictureCost,
    Rendered,
    Rendering,
)
from qwendesk.engine.worker.layout import Layout, lay_out
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.prompt import ImagePlaceholder, Prompt, build_prompt
from qwendesk.engine.worker.template import ChatTemplate
from qwendesk.engine.worker.written_answers import options_to_resume, with_tokens

Send = Callable[[Event], None]

# In long chats, this many messages are left out at once: the cache is lost whenever the first message changes.
_DROP_STEP = 8


def fit_to_context(session: Session, request: Generate, send: Send) -> tuple[Layout, int]:
    """Return the prompt's layout, and how many of the oldest messages were left out to make room for an answer.

    Only whole turns are left out. The system prompt and the last question always stay.
    """
    n_ctx, options = session.model.n_ctx, request.options
    room = n_ctx // 4 if options.max_tokens < 0 else min(options.max_tokens, n_ctx // 4)
    whole = layout_of(session, request.messages, request, send)
    if options.context_overflow == "stop" or whole.n_tokens + room <= n_ctx:
        return whole, 0
    n_system = sum(1 for message in request.messages[:1] if message.role == "system")
    starts = [i for i, message in enumerate(request.messages) if message.role == "user" and i > n_system]
    step = _DROP_STEP if len(starts) > _DROP_STEP else 1
    layout, dropped = whole, 0
    for start in starts:
        if (start - n_system) % step and start != starts[-1]:
            continue
        layout = layout_of(session, (*request.messages[:n_system], *request.messages[start:]), request, send)
        dropped = start - n_system
        if layout.n_tokens + room <= n_ctx:
            break
    return layout, dropped


def layout_of(session: Session, messages: Sequence[Message], request: Generate, send: Send) -> Layout:
    """Return the layout of the prompt for `messages`.

    Raise BadRequest for an image that cannot be read, and for any image if the session has no vision.
    """
    if request.prompt:
        tokens = session.model.tokenize(request.prompt, special=True)
        first = session.model.first_token
        if first >= 0 and tokens[:1] != [first]:
            tokens = [first, *tokens]
        return lay_out(Prompt((tuple(tokens),), (), opens_reasoning=False), {})
    messages = with_clips(messages, in_pairs=session.report.pairs_frames)
    images = [image for message in messages for image in message.images]
    if images and session.vision is None:
        raise no_picture_support()
    options = options_to_resume(request.options, request.begun)
    template = announced_template(session, request, send)
    memory = session.memory_of(request.client)
    prompt = prompt_of(session, template, messages, options, request.tools_json, client=request.client)
    known = memory.recent.recall(request.begun, opens_reasoning=prompt.opens_reasoning)
    if known is not None:
        prompt = with_tokens(prompt, known.tokens)
    elif request.begun is not None:
        prompt = prompt_of(
            session, template, messages, options, request.tools_json, request.begun, client=request.client
        )
    pictures = session.vision.prepare(images, request.client) if session.vision is not None and images else {}
    layout = lay_out(prompt, pictures, can_cut_anywhere=session.model.can_cut_anywhere)
    return memory.written.respell(layout, session.spelling)


def announced_template(session: Session, request: Generate | Measure, send: Send) -> ChatTemplate:
    """Return the template for a request, set up to tell the client when it runs."""
    return session.template_for(request.options).announced(
        lambda: send(Rendering(id=request.id)),
        lambda: send(Rendered(id=request.id)),
    )


def prompt_of(
    session: Session,
    template: ChatTemplate,
    messages: Sequence[Message],
    options: GenerationOptions,
    tools_json: Sequence[str] = (),
    begun: Begun | None = None,
    *,
    client: str,
) -> Prompt:
    """Build the prompt of a conversation with `template`. Raise BadRequest if the template refuses it."""
    abilities = session.report.template
    return build_prompt(
        template,
        session.memory_of(client).vocabulary,
        messages,
        tools_json=tools_json,
        enable_thinking=options.enable_thinking and session.report.can_think,
        preserve_thinking=options.preserve_thinking,
        # A template may refuse values that it does not know.
        reasoning_effort=options.reasoning_effort if options.reasoning_effort in abilities.reasoning_efforts else "",
        begun=begun,
    )


def no_picture_support() -> BadRequest:
    """Return the error for an image that is sent to a model without vision."""
    return BadRequest(
        mark("No picture support"),
        mark("This model was loaded without its vision file (mmproj), so it can't see pictures. Choose that file."),
    )


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
        messages=tuple(MessageTokens(counter.tokens_of_parts(each)) for each in request.messages),
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
        messages = with_clips(messages, in_pairs=self._session.report.pairs_frames)
        prompt = prompt_of(
            self._session, template, messages, self._request.options, self._request.tools_json,
            client=self._request.client,
        )  # fmt: skip
        return sum(
            self.picture_cost(piece.image).tokens if isinstance(piece, ImagePlaceholder) else len(piece)
            for piece in prompt.pieces
        )

    def tokens_of_parts(self, message: Message) -> tuple[int, ...]:
        """Return the tokens of each part. Those of a pair of frames are the first one's."""
        parts = parts_with_times(message.parts, in_pairs=self._session.report.pairs_frames)
        return tuple(sum(map(self._part_tokens, each)) for each in parts)

    def _part_tokens(self, part: Part) -> int:
        if isinstance(part, ImagePart):
            return self.picture_cost(part).tokens
        return len(self._session.memory_of(self._request.client).vocabulary.tokenize(part.text))

    def picture_cost(self, part: ImagePart) -> PictureCost:
        if self._session.vision is None:
            raise no_picture_support()
        if part.key not in self._costs:
            width, height, n_tokens = self._session.vision.count(part)
            self._costs[part.key] = PictureCost(sha256=part.sha256, width=width, height=height, tokens=n_tokens)
        return self._costs[part.key]
