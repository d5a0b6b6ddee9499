"""Warmer: has the engine process ahead what the next question will begin with, while the user reads, types or waits."""

import asyncio
import datetime
import logging
from collections.abc import Callable, Sequence

import psutil

from qwendesk.chat.chat_state import ChatEvent, ChatState, PromptProcessed, TextAdded
from qwendesk.chat.image_parts import current_part
from qwendesk.chat.request import estimate_if_too_large, messages_to_send, question_message, request_messages
from qwendesk.chat.service import ChatService
from qwendesk.chat.state_files import StateFiles
from qwendesk.chat.tool_rounds import ChatTools
from qwendesk.core.app_options import AppOptions
from qwendesk.core.conversation import Conversation, Turn
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.messages import DocumentPart, ImagePart, Message
from qwendesk.core.observed import Observed
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Warm
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService

_logger = logging.getLogger(__name__)

# How long after the last change the engine is asked, so that a burst of changes asks once.
_DELAY_S = 0.3
# After other answers nothing is processed ahead: they may be continued, which needs the memory as it is.
_COMPLETE = ("eos", "stop_string")


def runs_on_battery() -> bool:
    """Return whether this PC runs on its battery now."""
    try:
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    except OSError:
        return False  # some kernels and containers have no /sys/class/power_supply
    return battery is not None and battery.power_plugged is False


class Warmer:
    """Follows the open chat, the files of the next question, an edited question and the engine.

    Methods run on the event loop's thread.
    """

    def __init__(
        self,
        client: EngineClient,
        models: EngineService,
        chat: ChatService,
        states: StateFiles,
        app: Observed[AppOptions],
        *,
        tools: ChatTools | None,
        on_battery: Callable[[], bool] = runs_on_battery,
        delay_s: float = _DELAY_S,
    ) -> None:
        """The option `prepare_ahead` turns it on; `tools` are those of the chat."""
        self._tools = tools
        self._client, self._models, self._chat, self._states = client, models, chat, states
        self._app, self._on_battery, self._delay_s = app, on_battery, delay_s
        self.is_preparing = Observed(False)
        """Whether the engine is processing something ahead."""
        self._images: tuple[ImagePart, ...] = ()
        self._documents: tuple[DocumentPart, ...] = ()
        self._edited: int | None = None
        """The turn whose question is being edited."""
        self._phase = models.observed.value.phase
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._settings = chat.settings
        self._unsubscribe = (
            chat.subscribe(self._on_chat),
            chat.state.subscribe(self._on_chat_state),
            models.observed.subscribe(self._on_engine),
        )

    def show_files(self, images: Sequence[ImagePart], documents: Sequence[DocumentPart]) -> None:
        """Take the files of the question that is being written."""
        files = tuple(images), tuple(documents)
        if files != (self._images, self._documents):
            self._images, self._documents = files
            self._schedule()

    def show_edit(self, turn_id: int | None) -> None:
        """Take the turn whose question is being edited, so that what stands before it is processed; None ends that."""
        if turn_id != self._edited:
            self._edited = turn_id
            self._schedule()

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _on_chat(self, event: ChatEvent) -> None:
        if not isinstance(event, TextAdded | PromptProcessed):
            self._schedule()

    def _on_chat_state(self, state: ChatState) -> None:
        if state.settings != self._settings:
            self._settings = state.settings
            self._schedule()

    def _on_engine(self, state: EngineState) -> None:
        was, self._phase = self._phase, state.phase
        if state.phase is Phase.READY and was is not Phase.ANSWERING and was is not Phase.READY:
            self._schedule()

    def _schedule(self) -> None:
        """Process ahead what is certain now, after a moment. An earlier request is not wanted any more."""
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._start)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self._timer = None
        if self._chat.busy or self._phase is not Phase.READY or not self._app.value.prepare_ahead or self._on_battery():
            return
        self._task = asyncio.get_running_loop().create_task(self._warm())

    async def _warm(self) -> None:
        try:
            messages = await self._messages()
        except QwenDeskError as error:
            _logger.info("Nothing is processed ahead: %s", error.sentence)
            return
        if not messages or self._chat.busy:
            return
        chat = "" if self._chat.is_incognito else self._chat.chat_id
        file = self._states.usable_file(chat) if chat else ""
        # As of no chat, so that the engine keeps the state of the whole chat: the edit may be cancelled.
        owner = "" if self._edit_point() is not None else chat
        self.is_preparing.set(True)
        try:
            tools = () if self._tools is None else self._tools.definitions(self._chat.settings)
            options = self._chat.options()
            await self._client.ask(
                Warm(messages=messages, options=options, tools_json=tools, chat=owner, state_file=file)
            )
        finally:
            self.is_preparing.set(False)

    async def _messages(self) -> tuple[Message, ...]:
        """Return the messages that the next request begins with; () if there is nothing to process ahead."""
        chat, conversation = self._chat, self._chat.conversation
        state, turns, point = self._models.observed.value, conversation.turns, self._edit_point()
        report = state.report if state.idle_unloaded is None else None  # another program's model makes room for ours
        files = self._images, self._documents
        if point is not None:
            turns, question = turns[:point], turns[point].question
            files = question.images, question.documents
        elif turns and turns[-1].answer.stop_reason not in _COMPLETE:
            return ()
        if any(files):
            images = await asyncio.to_thread(lambda: [current_part(part) for part in files[0]])
            turns = (*turns, Turn(0, question_message("", images, files[1])))
        whole = Conversation(turns, conversation.system_prompt)
        name = report.title if report is not None else ""
        messages = request_messages(whole, chat.settings, today=datetime.date.today(), model=name)
        if report is None or estimate_if_too_large(messages, report.n_ctx) is not None:
            return ()
        return await messages_to_send(messages, chat.active_incognito_images)

    def _edit_point(self) -> int | None:
        """Return how many turns stand before the question that is being edited; None if none is, or it isn't shown."""
        turns = self._chat.conversation.turns
        return next((index for index, turn in enumerate(turns) if turn.id == self._edited), None)
