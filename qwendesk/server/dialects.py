"""The APIs in which questions are asked: how a request is read, and how its answer is written."""

from collections.abc import Callable
from typing import Any

import msgspec

from qwendesk.engine.protocol import PromptProgress
from qwendesk.server.answer import AnswerHead, EventWriter, WrittenAnswer
from qwendesk.server.chat_completions import ChatWriter, chat_body, read_chat_request
from qwendesk.server.completions import CompletionsWriter, completions_body, read_completions_request
from qwendesk.server.fields import Fields
from qwendesk.server.messages import MessagesWriter, messages_body, read_messages_request
from qwendesk.server.question import Question
from qwendesk.server.responses import ResponsesWriter, read_responses_request, responses_body


class Dialect(msgspec.Struct, frozen=True):
    read: Callable[[Fields], Question]
    body: Callable[[AnswerHead, WrittenAnswer], dict[str, Any]]
    writer: Callable[[AnswerHead, PromptProgress | None], EventWriter]
    """Takes how far the prompt is when the stream begins; None if that isn't known yet."""
    streams_full_context: bool = False
    """True if its clients look for a full context among the events of a stream, not in its HTTP status."""


# By path.
DIALECTS = {
    "/v1/chat/completions": Dialect(read_chat_request, chat_body, lambda head, _: ChatWriter(head)),
    "/v1/completions": Dialect(read_completions_request, completions_body, lambda head, _: CompletionsWriter(head)),
    "/v1/responses": Dialect(
        read_responses_request,
        responses_body,
        lambda head, _: ResponsesWriter(head),
        streams_full_context=True,  # Codex shortens its conversation only then
    ),
    "/v1/messages": Dialect(read_messages_request, messages_body, MessagesWriter),
}
