"""Counts how many tokens the next request and its parts fill, before it is sent. The engine only tokenizes for this."""

import asyncio
import datetime
from collections.abc import Sequence

import msgspec

from qwendesk.chat.chat_state import ChatEvent, ConversationReplaced
from qwendesk.chat.image_parts import current_part, scaled
from qwendesk.chat.request import (
    TokenCount,
    estimate_if_too_large,
    messages_to_send,
    question_message,
    request_messages,
    too_large_sentence,
)
from qwendesk.chat.service import ChatService
from qwendesk.chat.tool_rounds import ChatTools
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Conversation, Turn
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.core.messages import DocumentPart, ImagePart, Message, TextPart, text_message
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Measure, Measured, PictureCost, RequestFailed
from qwendesk.engines.engine_service import EngineService

CountFailure = RequestFailed | EngineExit

# Placeholder for the next question, because templates expect one.
_PROBE = text_message("user", "?")


class ContextFill(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the next request without its question. The parts add up to `total`."""

    n_ctx: int
    system: int = 0
    tools: int = 0
    """The definitions of the tools that are on."""
    history: int = 0
    """Questions, answers, and everything that the template adds."""
    pictures: int = 0
    documents: int = 0
    reasoning: int = 0
    """Earlier reasoning that is sent again; 0 if the template drops it."""
    turns: int = 0
    """Number of turns that are sent."""
    left_out_turns: int = 0
    """Number of oldest turns that are not sent."""

    @property
    def total(self) -> int:
        return self.system + self.tools + self.history + self.pictures + self.documents + self.reasoning

    @property
    def free(self) -> int:
        """Tokens left for the next question and its answer."""
        return max(0, self.n_ctx - self.total)


class ContextGauge:
    """Counts the tokens of the open chat and its next question, and changes which parts of the chat are sent."""

    def __init__(
        self, client: EngineClient, models: EngineService, chat: ChatService, tools: ChatTools | None = None
    ) -> None:
        self._client, self._models, self._chat, self._tools = client, models, chat, tools
        self.counted = Observed[ContextFill | CountFailure | None](None)
        """The last count of `measure`, or the reason why it failed; None if another chat was opened since."""
        chat.subscribe(self._on_chat_event)

    async def measure(self) -> ContextFill | CountFailure:
        """Count the parts of the chat."""
        tree = self._chat.tree
        try:
            fill = await self._measure_parts()
        except QwenDeskError as error:
            fill = RequestFailed(id=0, title=error.title, sentence=error.sentence)
        if self._chat.tree is tree:
            self.counted.set(fill)
        return fill

    def _on_chat_event(self, event: ChatEvent) -> None:
        if isinstance(event, ConversationReplaced):
            self.counted.set(None)

    async def _measure_parts(self) -> ContextFill | CountFailure:
        settings, conversation = self._chat.settings, self._chat.conversation
        messages = self._messages_with(_PROBE)
        too_large = estimate_if_too_large(messages, self._n_ctx)
        if too_large is not None:
            return RequestFailed(
                id=0, title=tr("Too large"), sentence=too_large_sentence(too_large, self._models.state.report)
            )
        measured = await self._measure(messages)
        if not isinstance(measured, Measured):
            return measured
        counted = list(zip(messages, measured.messages, strict=True))
        system = sum(sum(tokens.parts) for message, tokens in counted if message.role == "system")
        parts = [each for message, tokens in counted for each in zip(message.parts, tokens.parts, strict=True)]
        pictures = sum(n for part, n in parts if isinstance(part, ImagePart))
        documents = sum(n for part, n in parts if isinstance(part, DocumentPart))
        tools = await self.count_tools()
        if not isinstance(tools, int):
            return tools
        rest = measured.prompt_tokens - system - tools - pictures - documents - measured.reasoning_tokens
        reasoning = max(measured.reasoning_tokens, _reasoning_to_continue(conversation))
        left_out = max(0, min(settings.left_out_turns, len(conversation.turns)))
        return ContextFill(
            n_ctx=measured.n_ctx,
            system=system,
            tools=tools,
            reasoning=reasoning,
            pictures=pictures,
            documents=documents,
            history=max(0, rest),
            turns=len(conversation.turns) - left_out,
            left_out_turns=left_out,
        )

    async def count_tools(self) -> int | CountFailure:
        """Count the tokens that the tools of the chat take of each prompt: what the prompt is longer by with them."""
        definitions = self._definitions()
        if not definitions:
            return 0
        messages = [each for each in self._messages_with(_PROBE) if each.role == "system"]
        counts = []
        request = Measure(messages=(*messages, _PROBE), options=self._chat.options(), tools_json=definitions)
        for each in (request, msgspec.structs.replace(request, tools_json=())):
            measured = await self._client.ask(each)
            if not isinstance(measured, Measured):
                return measured
            counts.append(measured.prompt_tokens)
        return max(0, counts[0] - counts[1])

    async def count_picture(self, image: ImagePart) -> PictureCost | CountFailure:
        """Count an image in the size chosen for it. Raises BadRequest if its file can't be read."""
        part = await asyncio.to_thread(scaled, image, self._chat.active_incognito_images)
        measured = await self._client.ask(Measure(pictures=(part,), options=self._chat.options()))
        return measured.pictures[0] if isinstance(measured, Measured) else measured

    async def count_frames(self, frames: Sequence[ImagePart]) -> TokenCount | CountFailure:
        """Count the tokens that the frames of a clip add to a question, in pairs if the model takes them so.

        Raises BadRequest if a frame can't be read.
        """
        asked = (Message("user", (*frames, TextPart("?"))),)
        sent = await messages_to_send(asked, self._chat.active_incognito_images)
        measured = await self._client.ask(Measure(messages=sent, options=self._chat.options()))
        if not isinstance(measured, Measured):
            return measured
        return TokenCount(sum(measured.messages[0].parts[:-1]), measured.n_ctx)

    async def count_document(self, document: DocumentPart) -> TokenCount | CountFailure:
        """Count the tokens that a document adds to a question."""
        too_large = estimate_if_too_large([Message("user", (document,))], self._n_ctx)
        if too_large is not None:
            return too_large
        asked = Message("user", (TextPart(document.quoted()), TextPart("?")))
        measured = await self._client.ask(Measure(messages=(asked,), options=self._chat.options()))
        return TokenCount(measured.messages[0].parts[0], measured.n_ctx) if isinstance(measured, Measured) else measured

    async def count_text(self, text: str) -> int | CountFailure:
        """Count the tokens of a text, as a part of a question."""
        measured = await self._client.ask(Measure(messages=(text_message("user", text),), options=self._chat.options()))
        return measured.messages[0].parts[0] if isinstance(measured, Measured) else measured

    async def count_request(
        self, text: str, pictures: Sequence[ImagePart] = (), documents: Sequence[DocumentPart] = ()
    ) -> TokenCount | CountFailure:
        """Count the whole request of this question, including the earlier turns sent with it. Raises BadRequest."""
        too_large = estimate_if_too_large([question_message(text, pictures, documents)], self._n_ctx)
        if too_large is not None:
            return msgspec.structs.replace(too_large, question_tokens=too_large.tokens)
        images = await asyncio.to_thread(lambda: [current_part(part) for part in pictures])
        messages = self._messages_with(question_message(text, images, documents))
        too_large = estimate_if_too_large(messages, self._n_ctx)
        if too_large is not None:
            return too_large
        measured = await self._measure(messages)
        if not isinstance(measured, Measured):
            return measured
        question_tokens = sum(measured.messages[-1].parts)
        return TokenCount(measured.prompt_tokens, measured.n_ctx, question_tokens=question_tokens)

    def leave_out_turns(self, turns: int) -> None:
        """Don't send the `turns` oldest turns, which stay in the chat; 0 sends all again."""
        self._change(left_out_turns=max(0, turns))

    @property
    def n_sent_turns(self) -> int:
        """The number of turns that are sent with the next question."""
        return max(0, len(self._chat.conversation.turns) - self._chat.settings.left_out_turns)

    def leave_out_older_half(self) -> None:
        """Leave out the older half of the turns that are sent now."""
        self.leave_out_turns(self._chat.settings.left_out_turns + (self.n_sent_turns + 1) // 2)

    def leave_out_old_pictures(self, *, leave_out: bool) -> None:
        self._change(leave_out_old_pictures=leave_out)

    def leave_out_old_documents(self, *, leave_out: bool) -> None:
        self._change(leave_out_old_documents=leave_out)

    def leave_out_reasoning(self, *, leave_out: bool) -> None:
        self._change(leave_out_reasoning=leave_out)

    @property
    def _n_ctx(self) -> int:
        """The context length of the loaded model in tokens; 0 if none is loaded."""
        report = self._models.state.report
        return report.n_ctx if report is not None else 0

    def _messages_with(self, asked: Message) -> tuple[Message, ...]:
        """Return the messages of a request that ends with this question; all present turns count as older ones."""
        chat = self._chat.conversation
        conversation = Conversation((*chat.turns, Turn(0, asked)), chat.system_prompt)
        report = self._models.state.report
        name = report.title if report is not None else ""
        return request_messages(conversation, self._chat.settings, today=datetime.date.today(), model=name)

    async def _measure(self, messages: Sequence[Message]) -> Measured | CountFailure:
        sent = await messages_to_send(messages, self._chat.active_incognito_images)
        request = Measure(messages=sent, options=self._chat.options(), tools_json=self._definitions())
        return await self._client.ask(request)

    def _definitions(self) -> tuple[str, ...]:
        """Return the tools that are sent with the next question."""
        return self._tools.definitions(self._chat.settings) if self._tools is not None else ()

    def _change(self, **changes: object) -> None:
        settings: ChatSettings = msgspec.structs.replace(self._chat.settings, **changes)
        self._chat.change_settings(settings)


def _reasoning_to_continue(conversation: Conversation) -> int:
    """Return the tokens of the last answer's reasoning if the context was full, because Continue sends them again."""
    last = conversation.turns[-1].answer if conversation.turns else None
    return last.stats.reasoning_tokens if last is not None and last.stop_reason == "context_full" else 0
