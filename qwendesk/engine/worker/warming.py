"""Process ahead what the next prompt of a chat begins with, while nothing else is asked.

How much of it is certain is found by asking for the prompt twice, with different questions at its end: what both begin
with will be in the next prompt too. Only whole batches of it are processed, which end where those of the real prompt
end (layout.py), so an answer is the same with and without.
"""

from collections.abc import Callable

import msgspec

from qwendesk.core.messages import Message, TextPart, text_message
from qwendesk.engine.protocol import Event, Generate, Warm, Warmed
from qwendesk.engine.worker.cache import common_prefix_length
from qwendesk.engine.worker.generate import process
from qwendesk.engine.worker.layout import DecodeStep
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.request_layout import layout_of

_QUESTIONS = ("a", "1 b")
"""Two questions that share no beginning."""
_LONGEST_ENCODING_S = 2.0
"""A picture is encoded ahead only if that should take less: it cannot be interrupted."""


def warm(session: Session, request: Warm, send: Callable[[Event], None], is_wanted: Callable[[], bool]) -> Warmed:
    """Process the certain beginning of the next prompt, as long as `is_wanted` returns True between two batches.

    Raise BadRequest as for a Generate request.
    """
    layout, other = (
        layout_of(session, messages, _as_generate(request, messages), send)
        for messages in (_with_question(request.messages, question) for question in _QUESTIONS)
    )
    certain = common_prefix_length(layout.items, other.items)
    cache = session.cache
    # Close to the end of the context, a Generate request may leave out the oldest messages.
    limit = session.model.n_ctx if request.options.context_overflow == "stop" else session.model.n_ctx // 2
    if layout.n_tokens >= limit or not request.options.cache_prompt or not is_wanted():
        return Warmed(id=request.id, done=0, reread=0)
    if session.model.head is not None:
        session.model.head.is_fed = True
    beginning = layout.items[: certain + 1]  # the item after the certain ones stays to be processed by the request
    session.states.switch_to(request.chat, beginning, request.state_file, is_idle=True)
    start = cache.roll_back(beginning).start
    before, index = cache.n_cells, start
    for step in layout.steps(start, session.model.n_ubatch):
        index += len(step.items)
        if index > certain or not is_wanted() or not _is_quick(session, step):
            break
        process(session, step, rows=0)
    return Warmed(id=request.id, done=cache.n_cells, reread=cache.n_cells - before)


def _with_question(messages: tuple[Message, ...], question: str) -> tuple[Message, ...]:
    if messages and messages[-1].role == "user":
        last = messages[-1]
        return (*messages[:-1], msgspec.structs.replace(last, parts=(*last.parts, TextPart(question))))
    return (*messages, text_message("user", question))


def _as_generate(request: Warm, messages: tuple[Message, ...]) -> Generate:
    return Generate(id=request.id, messages=messages, options=request.options, tools_json=request.tools_json)


def _is_quick(session: Session, step: DecodeStep) -> bool:
    """Return whether a step takes no longer than a picture may."""
    if step.image_chunk is None or session.vision is None:
        return True
    return session.vision.expected_s(step.image_chunk) < _LONGEST_ENCODING_S
