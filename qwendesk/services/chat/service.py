"""The conversation: asks the engine, collects its answer, and tells who listens as it grows."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core import presets
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.errors import BadRequest
from qwendesk.core.failures import EngineDeath
from qwendesk.core.messages import ImagePart, Message, TextPart
from qwendesk.core.options import GenerationOptions
from qwendesk.core.settings import apply_assignments
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.contract import AnswerStream, EngineClient
from qwendesk.engine.protocol import Delta, Finished, LoadReport, PictureCost, PromptProgress, RequestFailed
from qwendesk.services.chat.draft import Draft
from qwendesk.services.chat.pictures import image_part
from qwendesk.services.engine.service import EngineService


class TurnStarted(msgspec.Struct, frozen=True):
    """The question is in the conversation; its answer is on the way."""

    turn_id: int


class PromptRead(msgspec.Struct, frozen=True):
    """`done` of `total` prompt tokens are in the engine's memory."""

    turn_id: int
    done: int
    total: int


class Wrote(msgspec.Struct, frozen=True):
    """A piece of the thought or of the answer; the conversation holds it already."""

    turn_id: int
    kind: Literal["reasoning", "answer"]
    text: str


class TurnEnded(msgspec.Struct, frozen=True):
    """The answer is final: finished, stopped or failed."""

    turn_id: int


class ConversationReplaced(msgspec.Struct, frozen=True):
    """Another conversation is shown now."""


ChatNews = TurnStarted | PromptRead | Wrote | TurnEnded | ConversationReplaced


class ChatService:
    """Owns one conversation and how the next answer is made. All methods are called on the event loop's thread."""

    def __init__(self, client: EngineClient, engine: EngineService) -> None:
        self._client = client
        self._engine = engine
        self._subscribers = Subscribers[ChatNews]()
        self._conversation = Conversation()
        self._thinking = True
        self._style: presets.Style = "general"
        self._overrides: dict[str, str] = {}
        self._last_turn_id = 0
        self._draft: Draft | None = None
        self._stream: AnswerStream | None = None
        self._answering: asyncio.Task[Answer] | None = None

    @property
    def conversation(self) -> Conversation:
        """All turns, the one that streams included as far as it got."""
        return self._conversation if self._draft is None else self._conversation.with_turn(self._draft.turn())

    @property
    def thinking(self) -> bool:
        """Whether thinking is asked for; a model that cannot think answers without."""
        return self._thinking

    def set_thinking(self, thinking: bool) -> None:
        self._thinking = thinking

    @property
    def style(self) -> presets.Style:
        return self._style

    def set_style(self, style: presets.Style) -> None:
        self._style = style

    def set_overrides(self, assignments: Mapping[str, str]) -> None:
        """Options that win over the presets, as `--set` takes them. Raises BadOption; then nothing changes."""
        apply_assignments(GenerationOptions(), assignments)
        self._overrides = dict(assignments)

    def set_system_prompt(self, text: str) -> None:
        self._conversation = msgspec.structs.replace(self._conversation, system_prompt=text)

    @property
    def busy(self) -> bool:
        """True from `send` until its answer ended."""
        return self._draft is not None

    def options(self) -> GenerationOptions:
        """How the next answer is made: the preset of the loaded model's family, then the overrides."""
        report = self._engine.state.report
        thinking = self._thinking and (report is None or report.can_think)
        family = "other" if report is None else _family(report)
        options = presets.preset(GenerationOptions(), family, self._style, thinking=thinking)
        return apply_assignments(options, self._overrides)

    def subscribe(self, callback: Callable[[ChatNews], None]) -> Callable[[], None]:
        """Call `callback` with each piece of news. Returns what ends it."""
        return self._subscribers.add(callback)

    async def send(self, text: str, pictures: Sequence[Path] = ()) -> Turn:
        """Ask, and return the turn when its answer ended; a failure is in the answer's `error`.

        Waits for a model that is being loaded. Raises BadRequest when there is nothing to ask, or while another
        answer is being made.
        """
        if self.busy:
            raise BadRequest("Still answering", "Wait for the answer or stop it, then ask again.")
        if not text.strip() and not pictures:
            raise BadRequest("Nothing to send", "Write a question or attach a picture.")
        self._last_turn_id += 1
        unread = [ImagePart(path=str(path), sha256="") for path in pictures]
        draft = self._draft = Draft(self._last_turn_id, _question(text, unread))
        self._answering = asyncio.create_task(self._answer(draft, text, pictures))
        self._subscribers.notify(TurnStarted(draft.turn_id))
        answer: Answer | None = None
        try:
            answer = await self._answering
        except asyncio.CancelledError:
            if _cancelled_from_outside():
                raise
        finally:
            turn = Turn(draft.turn_id, draft.question, answer or draft.answer(stop_reason="cancelled"))
            self._end(draft, turn)
        return turn

    async def stop(self) -> None:
        """End the answer that is being made; what it said so far stays."""
        if self._stream is not None:
            await self._stream.cancel()
        elif self._answering is not None:
            self._answering.cancel()

    async def answer_now(self) -> None:
        """End the thought that is being made; the answer follows."""
        if self._stream is not None:
            await self._stream.answer_now()

    def new_chat(self) -> None:
        """Begin an empty conversation; an answer that is being made is dropped. The system prompt stays."""
        self._conversation = Conversation(system_prompt=self._conversation.system_prompt)
        if self._answering is not None:
            self._answering.cancel()
        self._draft = self._stream = self._answering = None
        self._subscribers.notify(ConversationReplaced())

    async def picture_cost(self, path: Path) -> PictureCost | RequestFailed | EngineDeath:
        """What a picture would fill of the context. Raises BadRequest when its file cannot be read."""
        part = await asyncio.to_thread(image_part, path)
        measured = await self._client.measure((), (part,), self.options())
        return measured if isinstance(measured, RequestFailed | EngineDeath) else measured.pictures[0]

    async def _answer(self, draft: Draft, text: str, pictures: Sequence[Path]) -> Answer:
        try:
            images = [await asyncio.to_thread(image_part, path) for path in pictures]
        except BadRequest as error:
            return draft.answer(error=error.sentence)
        draft.question = _question(text, images)
        await self._engine.settled()
        self._stream = self._client.generate(self.conversation.messages(), self.options())
        async for item in self._stream:
            match item:
                case PromptProgress(done=done, total=total):
                    self._subscribers.notify(PromptRead(draft.turn_id, done, total))
                case Delta(kind=kind, text=piece):
                    draft.add(item, asyncio.get_running_loop().time())
                    self._subscribers.notify(Wrote(draft.turn_id, kind, piece))
                case Finished(stop_reason=stop_reason, stats=stats):
                    return draft.answer(stop_reason=stop_reason, stats=stats)
                case RequestFailed(sentence=sentence) | EngineDeath(sentence=sentence):
                    return draft.answer(error=sentence)
        raise AssertionError("an answer stream ended without its last item")

    def _end(self, draft: Draft, turn: Turn) -> None:
        if self._draft is not draft:
            return  # a new chat has begun meanwhile
        self._conversation = self._conversation.with_turn(turn)
        self._draft = self._stream = self._answering = None
        self._subscribers.notify(TurnEnded(turn.id))


def _question(text: str, images: Sequence[ImagePart]) -> Message:
    return Message(role="user", parts=(*images, *((TextPart(text),) if text else ())))


def _family(report: LoadReport) -> presets.Family:
    return presets.family_of(report.architecture, report.name, Path(report.options.model).name)


def _cancelled_from_outside() -> bool:
    """Whether the running task itself is being cancelled, rather than the work it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
