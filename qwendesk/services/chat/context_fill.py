"""What fills the context of the next question, counted by the engine, and what can be left out of it."""

import datetime
import itertools
from collections.abc import Sequence

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Turn
from qwendesk.core.failures import EngineDeath
from qwendesk.core.messages import ImagePart, Message, text_message
from qwendesk.core.options import GenerationOptions
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Measured, RequestFailed
from qwendesk.services.chat.pictures import as_sent
from qwendesk.services.chat.sending import model_name, request_messages
from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.service import EngineService

_PROBE = text_message("user", "?")
"""Ends what is counted as a next question would; templates want one."""


class ContextFill(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the next request, without the question to come. The parts add up to `total`.

    Each is what the count falls by when it is taken away after those below it: thoughts, pictures, documents, system.
    """

    n_ctx: int
    system: int = 0
    history: int = 0
    """Questions and answers, and what the template writes around all."""
    pictures: int = 0
    documents: int = 0
    thoughts: int = 0
    """Earlier thoughts that are sent again; 0 where the template drops them."""
    turns: int = 0
    """Turns that are sent."""
    left_out_turns: int = 0
    """Oldest turns that are kept in the chat and not sent."""

    @property
    def total(self) -> int:
        return self.system + self.history + self.pictures + self.documents + self.thoughts

    @property
    def free(self) -> int:
        """What is left for the question to come and its answer."""
        return max(0, self.n_ctx - self.total)


class ContextGauge:
    """Counts for one chat service. Nothing is read into the engine's memory by it."""

    def __init__(self, client: EngineClient, engine: EngineService, chat: ChatService) -> None:
        self._client, self._engine, self._chat = client, engine, chat

    async def measure(self) -> ContextFill | RequestFailed | EngineDeath:
        """The parts as they are now, or why they cannot be counted."""
        options, settings = self._chat.options(), self._chat.settings
        conversation = self._chat.conversation
        name = model_name(self._engine.state.report)
        # The next question will be the last: so all turns count as older ones.
        open_end = msgspec.structs.replace(conversation, turns=(*conversation.turns, _next_turn()))
        today = datetime.date.today()
        asked = request_messages(open_end, settings, today=today, model=name)
        whole = await as_sent(asked, self._chat.held_only)
        no_thoughts = _without_thoughts(whole)
        no_documents = _without_pictures(
            _without_thoughts(request_messages(open_end, settings, today=today, model=name, documents=False))
        )
        counts: list[int] = []
        n_ctx = 0
        for part in (whole, no_thoughts, _without_pictures(no_thoughts), no_documents, _without_system(no_documents)):
            measured = await self._count(part, options)
            if not isinstance(measured, Measured):
                return measured
            counts.append(measured.prompt_tokens)
            n_ctx = measured.n_ctx
        thoughts, pictures, documents, system = (max(0, more - less) for more, less in itertools.pairwise(counts))
        left_out = max(0, min(settings.left_out_turns, len(conversation.turns)))
        return ContextFill(
            n_ctx=n_ctx,
            system=system,
            thoughts=thoughts,
            pictures=pictures,
            documents=documents,
            history=max(0, counts[0] - system - thoughts - pictures - documents),
            turns=len(conversation.turns) - left_out,
            left_out_turns=left_out,
        )

    def leave_out_turns(self, turns: int) -> None:
        """So many of the oldest turns are not sent any more; they stay in the chat. 0 sends all again."""
        self._change(left_out_turns=max(0, turns))

    def leave_out_old_pictures(self, *, leave_out: bool) -> None:
        self._change(leave_out_old_pictures=leave_out)

    def leave_out_old_documents(self, *, leave_out: bool) -> None:
        self._change(leave_out_old_documents=leave_out)

    def leave_out_thoughts(self, *, leave_out: bool) -> None:
        self._change(leave_out_thoughts=leave_out)

    def _change(self, **changes: object) -> None:
        settings: ChatSettings = msgspec.structs.replace(self._chat.settings, **changes)
        self._chat.change_settings(settings)

    async def _count(
        self, messages: Sequence[Message], options: GenerationOptions
    ) -> Measured | RequestFailed | EngineDeath:
        return await self._client.measure(messages, (), options)


def _next_turn() -> Turn:
    return Turn(0, _PROBE)


def _without_thoughts(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(msgspec.structs.replace(message, reasoning="") for message in messages)


def _without_pictures(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(
        msgspec.structs.replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ImagePart)))
        for message in messages
    )


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(message for message in messages if message.role != "system")
