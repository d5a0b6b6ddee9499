"""AnswerGenerator: one answer, from its request to the last item of the engine's stream."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from qwendesk.chat.chat_state import CallsChanged, ChatEvent, IncognitoImages, PromptProcessed, TextAdded
from qwendesk.chat.open_chat import ChatSaver
from qwendesk.chat.partial_answer import PartialAnswer
from qwendesk.chat.request import (
    estimate_if_too_large,
    messages_to_send,
    request_messages,
    request_options,
    too_large_sentence,
)
from qwendesk.chat.tool_rounds import ChatTools, ToolRounds, holds_untyped_text, still_allowed
from qwendesk.core.chats import ChatSettings
from qwendesk.core.citations import citations_of
from qwendesk.core.conversation import ChatNode, Conversation
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message
from qwendesk.core.stats import AnswerStats
from qwendesk.core.tool_context import CallContext
from qwendesk.engine.protocol import (
    CallDelta,
    Called,
    Delta,
    Finished,
    Generate,
    LoadReport,
    PromptProgress,
    RequestFailed,
)

if TYPE_CHECKING:  # the types alone, so that a question loads less
    from qwendesk.chat.state_files import StateFiles
    from qwendesk.engine.contract import AnswerStream, EngineClient
    from qwendesk.engines.engine_service import EngineService

# Changes the options of one answer.
Adjust = Callable[[GenerationOptions], GenerationOptions]


class _Asked(msgspec.Struct, frozen=True):
    """The parts of a request that are the same in every round of an answer."""

    conversation: Conversation
    settings: ChatSettings
    settings_now: Callable[[], ChatSettings]
    messages: tuple[Message, ...]
    options: GenerationOptions
    report: LoadReport | None
    chat: str
    state_file: str


class AnswerGenerator:
    """Generates the text of one PartialAnswer. It can be stopped at any time."""

    def __init__(
        self,
        partial: PartialAnswer,
        client: "EngineClient",
        models: "EngineService",
        saver: ChatSaver,
        notify: Callable[[ChatEvent], None],
        incognito_images: IncognitoImages | None,
        states: "StateFiles | None",
        tools: ChatTools | None,
    ) -> None:
        """If `incognito_images` is given, no image of this request is written to disk. Then `states` must be None."""
        self.partial, self._incognito_images = partial, incognito_images
        self._tools = tools
        self._rounds = None if tools is None else ToolRounds(tools, partial, self._show_calls)
        self._states = states
        self._client, self._models, self._saver, self._notify = client, models, saver, notify
        self._stream: AnswerStream | None = None
        self.task: asyncio.Task[ChatNode] | None = None
        """The task of `run`, which whoever starts it sets: it can then be stopped before it begins."""

    async def run(
        self,
        prepare: Callable[[], Awaitable[Conversation]],
        settings_now: Callable[[], ChatSettings],
        *,
        thinking: bool,
        adjust: Adjust | None = None,
    ) -> ChatNode:
        """Generate the answer and return it. `prepare` reads the question's files and returns the conversation.

        `settings_now` returns the settings of the chat. The prompt follows what they are at first, to the end of the
        answer; a tool or a folder that is taken away meanwhile can't be used any more.
        """
        settings = settings_now()
        partial = self.partial
        try:
            conversation = await prepare()
            woken = self._models.reload_idle()
            await self._models.wait_until_settled()
            report, failure = self._models.state.report, self._models.state.failure
            if woken and report is None and failure is not None:
                return partial.node(error=failure.sentence)
            options = request_options(settings, report, thinking=thinking)
            options = options if adjust is None else adjust(options)
        except QwenDeskError as error:
            return partial.node(error=error.sentence)
        n_ctx = report.n_ctx if report is not None else 0
        too_large = estimate_if_too_large([conversation.turns[-1].question], n_ctx)
        if too_large is not None:
            return partial.node(error=too_large_sentence(too_large, report))
        model = report.title if report is not None else ""
        partial.set_model_and_options(model=model, options_json=msgspec.json.encode(options).decode())
        messages = request_messages(conversation, settings, today=datetime.date.today(), model=model)
        too_large = estimate_if_too_large(messages, n_ctx)
        if too_large is not None and options.context_overflow == "stop":
            return partial.node(error=too_large_sentence(too_large, report))
        try:
            messages = await messages_to_send(messages, self._incognito_images)
        except BadRequest as error:
            return partial.node(error=error.sentence)
        states, chat_id = self._states, partial.chat_id
        chat, state_file = ("", "") if states is None else (chat_id, states.begin_answer(chat_id))
        stats = AnswerStats()
        try:
            asked = _Asked(conversation, settings, settings_now, messages, options, report, chat, state_file)
            node, stats = await self._answer(asked)
        finally:
            if states is not None:
                states.end_answer(chat_id, stats.total_tokens)
        return node

    async def stop(self) -> None:
        if self._rounds is not None and self._rounds.is_running:
            self._rounds.stop()
        elif self._stream is not None:
            await self._stream.cancel()
        else:
            self.drop()

    def stop_call(self, call_id: str) -> None:
        """Stop one tool call that runs; the answer goes on without its result."""
        if self._rounds is not None:
            self._rounds.stop_call(call_id)

    async def answer_now(self) -> None:
        """End the reasoning, and call no tools any more."""
        if self._rounds is not None:
            self._rounds.answer_now()
        if self._stream is not None:
            await self._stream.answer_now()

    def drop(self) -> None:
        """Stop without waiting for the engine, because the chat was closed."""
        if self.task is not None:
            self.task.cancel()

    async def _answer(self, asked: "_Asked") -> tuple[ChatNode, AnswerStats]:
        """Generate, run the tools that were called, go on, until the model answers. Return as `_read`."""
        partial, rounds = self.partial, self._rounds
        tools_json = self._tools.definitions(asked.settings) if self._tools is not None else ()
        begun = None if partial.begun.is_empty else partial.begun
        if rounds is not None and partial.calls:  # calls that run again
            await rounds.run(self._context(asked))
            if rounds.was_stopped:
                return partial.node(stop_reason="cancelled"), AnswerStats()
            partial.end_round(AnswerStats())
        while True:
            try:
                steps = await messages_to_send(partial.step_messages, self._incognito_images)
            except BadRequest as error:
                return partial.node(error=error.sentence), AnswerStats()
            can_call = rounds is None or rounds.may_call
            request = Generate(
                messages=(*asked.messages, *steps),
                options=asked.options if rounds is None else rounds.options(asked.options, asked.report),
                tools_json=tools_json,
                may_call=can_call,
                begun=begun,
                chat=asked.chat,
                state_file=asked.state_file,
            )
            self._stream = self._client.generate(request)
            node, stats = await self._read(self._stream)
            self._stream = None  # it has ended: what follows is stopped in other ways
            if node.stop_reason != "tool_calls" or rounds is None or not can_call:
                return node, stats
            await rounds.run(self._context(asked))
            if rounds.was_stopped:
                return partial.node(stop_reason="cancelled", stats=stats), stats
            partial.end_round(stats)
            begun = None

    def _context(self, asked: "_Asked") -> CallContext:
        assert self._tools is not None, "only with tools is there a call"
        turns = asked.conversation.turns
        steps = (*(step for turn in turns for step in turn.answer.steps), *self.partial.steps)
        return CallContext(
            chat_id=self.partial.chat_id,
            settings=still_allowed(asked.settings, asked.settings_now()),
            is_incognito=self._incognito_images is not None,
            is_tainted=asked.settings.is_tainted
            or holds_untyped_text([turn.question for turn in turns], steps, self._tools),
            n_ctx=asked.report.n_ctx if asked.report is not None else 0,
            can_see=asked.report is None or asked.report.can_see,
            n_citations=max(citations_of(steps), default=0),
        )

    def _show_calls(self) -> None:
        self._saver.save_partial(self.partial.chat_id, self.partial.node_id, self.partial.node)
        self._notify(CallsChanged(self.partial.turn_id))

    async def _read(self, stream: "AnswerStream") -> tuple[ChatNode, AnswerStats]:
        """Return the message that the stream's text makes, and the statistics of this round, empty if it failed."""
        partial, prompt_tokens = self.partial, 0
        tokens: dict[str, int] = {}
        async for item in stream:
            if isinstance(item, Delta | CallDelta):
                tokens[item.kind] = item.tokens
            match item:
                case PromptProgress(done=done, total=total):
                    prompt_tokens = total
                    self._notify(PromptProcessed(partial.turn_id, done, total))
                case Delta(kind=kind, text=piece):
                    partial.add(item, asyncio.get_running_loop().time())
                    self._saver.save_partial(partial.chat_id, partial.node_id, partial.node)
                    in_context = prompt_tokens + sum(tokens.values()) if prompt_tokens else 0
                    self._notify(TextAdded(partial.turn_id, kind, piece, in_context))
                case CallDelta():
                    partial.add_call_text(item)
                    self._notify(CallsChanged(partial.turn_id))
                case Called():
                    partial.end_call(item)
                    self._show_calls()
                case Finished(stop_reason=stop_reason, stats=stats):
                    return partial.node(stop_reason=stop_reason, stats=stats), stats
                case RequestFailed(sentence=sentence) | EngineExit(sentence=sentence):
                    return partial.node(error=sentence), AnswerStats()
        raise AssertionError("an answer stream ended without its last item")


def cancelled_from_outside() -> bool:
    """Return whether the running task itself is being cancelled, rather than the work that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
