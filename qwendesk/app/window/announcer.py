"""Announces events outside the focus to screen readers: answers, loaded models, errors, downloads.

The text of an answer is not announced, because it arrives faster than it can be spoken.
"""

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from qwendesk.chat.chat_state import ChatEvent, TextAdded, TurnEnded
from qwendesk.chat.service import ChatService
from qwendesk.core.conversation import Answer
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.widgets.bind import bind, follow
from qwendesk.widgets.display_texts import model_label


class Announcer(QObject):
    announced = Signal(str)
    """Carries each announced text."""

    def __init__(self, window: QWidget, chat: ChatService, engine: EngineService) -> None:
        super().__init__(window)
        self._window, self._chat = window, chat
        self._last = (0, "")
        """Id of the turn and kind of the text that was added last."""
        self._loading = False
        follow(self, chat.subscribe, self._on_chat_event)
        bind(self, engine.observed, self._on_engine)

    def announce(self, text: str) -> None:
        """Announce `text`, if a screen reader is running."""
        if text:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._window, text))
            self.announced.emit(text)

    def _on_chat_event(self, event: ChatEvent) -> None:
        match event:
            case TextAdded(turn_id=turn_id, kind=kind) if (turn_id, kind) != self._last:
                self._last = (turn_id, kind)
                self.announce(tr("Thinking") if kind == "reasoning" else tr("Answering"))
            case TurnEnded(turn_id=turn_id):
                self._on_ended(turn_id)

    def _on_ended(self, turn_id: int) -> None:
        self._last = (0, "")
        turn = self._chat.turn(turn_id)
        if turn is not None:
            self.announce(_end_text(turn.answer))

    def _on_engine(self, state: EngineState) -> None:
        before, self._loading = self._loading, state.phase in (Phase.STARTING, Phase.LOADING)
        if before and state.phase is Phase.READY:
            self.announce(tr("Loaded: {0}", model_label(state)))


def _end_text(answer: Answer) -> str:
    if answer.error:
        return answer.error
    return tr("Answer stopped") if answer.stop_reason in ("cancelled", "repetition") else tr("Answer finished")
