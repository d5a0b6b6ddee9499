"""One answer from its request to its last item, on the engine."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable

import msgspec

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Conversation
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.failures import EngineDeath
from qwendesk.engine.contract import AnswerStream, EngineClient
from qwendesk.engine.protocol import Delta, Finished, PromptProgress, RequestFailed
from qwendesk.services.chat.draft import Draft
from qwendesk.services.chat.held import HeldPictures
from qwendesk.services.chat.keeping import ChatKeeper
from qwendesk.services.chat.news import ChatNews, PromptRead, Wrote
from qwendesk.services.chat.pictures import as_sent
from qwendesk.services.chat.sending import model_name, request_messages, request_options
from qwendesk.services.engine.service import EngineService


class Answering:
    """Makes the answer of one draft, and can be stopped meanwhile."""

    def __init__(
        self,
        draft: Draft,
        client: EngineClient,
        engine: EngineService,
        keeper: ChatKeeper,
        notify: Callable[[ChatNews], None],
        held: HeldPictures | None = None,
    ) -> None:
        """With `held` no picture of this request becomes a file."""
        self.draft, self._held = draft, held
        self._client, self._engine, self._keeper, self._notify = client, engine, keeper, notify
        self._stream: AnswerStream | None = None
        self._task: asyncio.Task[ChatNode] | None = None

    def start(
        self, prepare: Callable[[], Awaitable[Conversation]], settings: ChatSettings, *, thinking: bool
    ) -> "asyncio.Task[ChatNode]":
        """`prepare` reads what the question needs and gives the conversation to be answered."""
        self._task = asyncio.create_task(self._run(prepare, settings, thinking=thinking))
        return self._task

    async def stop(self) -> None:
        if self._stream is not None:
            await self._stream.cancel()
        else:
            self.drop()

    async def answer_now(self) -> None:
        if self._stream is not None:
            await self._stream.answer_now()

    def drop(self) -> None:
        """Nobody waits for it any more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(
        self, prepare: Callable[[], Awaitable[Conversation]], settings: ChatSettings, *, thinking: bool
    ) -> ChatNode:
        draft = self.draft
        try:
            conversation = await prepare()
            woken = self._engine.wake()
            await self._engine.settled()
            report, failure = self._engine.state.report, self._engine.state.failure
            if woken and report is None and failure is not None:
                return draft.node(error=failure.sentence)
            options = request_options(settings, report, thinking=thinking)
        except QwenDeskError as error:
            return draft.node(error=error.sentence)
        model = model_name(report)
        draft.made_with(model=model, options_json=msgspec.json.encode(options).decode())
        messages = request_messages(conversation, settings, today=datetime.date.today(), model=model)
        try:
            messages = await as_sent(messages, self._held)
        except BadRequest as error:
            return draft.node(error=error.sentence)
        begun = None if draft.begun.is_empty else draft.begun
        self._stream = self._client.generate(messages, options, begun=begun)
        async for item in self._stream:
            match item:
                case PromptProgress(done=done, total=total):
                    self._notify(PromptRead(draft.turn_id, done, total))
                case Delta(kind=kind, text=piece):
                    draft.add(item, asyncio.get_running_loop().time())
                    self._keeper.grow(draft.chat_id, draft.node_id, draft.node)
                    self._notify(Wrote(draft.turn_id, kind, piece))
                case Finished(stop_reason=stop_reason, stats=stats):
                    return draft.node(stop_reason=stop_reason, stats=stats)
                case RequestFailed(sentence=sentence) | EngineDeath(sentence=sentence):
                    return draft.node(error=sentence)
        raise AssertionError("an answer stream ended without its last item")
