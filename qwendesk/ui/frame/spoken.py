"""Tells screen readers what happens away from the focus: an answer begins and ends, something failed, a file is there.

Never the words of an answer: they come faster than anybody can listen, and are read where they stand.
"""

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from qwendesk.core.conversation import Answer
from qwendesk.engine.state import Phase
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.kit.labels import model_label
from qwendesk.ui.kit.text import tr


class Spoken(QObject):
    """Each change once, in a few words."""

    said = Signal(str)

    def __init__(self, window: QWidget, chat: ChatBridge, engine: EngineBridge) -> None:
        super().__init__(window)
        self._window, self._chat, self._engine = window, chat, engine
        self._last = (0, "")
        """The turn and the kind of what was written last."""
        self._loading = False
        chat.wrote.connect(self._on_wrote)
        chat.turn_ended.connect(self._on_ended)
        engine.changed.connect(self._on_engine)

    def say(self, text: str) -> None:
        """Nothing where no screen reader listens."""
        if text:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._window, text))
            self.said.emit(text)

    def _on_wrote(self, turn_id: int, kind: str, _text: str) -> None:
        if (turn_id, kind) != self._last:
            self._last = (turn_id, kind)
            self.say(tr("Thinking") if kind == "reasoning" else tr("Answering"))

    def _on_ended(self, turn_id: int) -> None:
        self._last = (0, "")
        turn = self._chat.turn(turn_id)
        if turn is not None:
            self.say(_end_of(turn.answer))

    def _on_engine(self) -> None:
        state = self._engine.state
        before, self._loading = self._loading, state.phase in (Phase.STARTING, Phase.LOADING)
        if before and state.phase is Phase.READY:
            self.say(tr("Loaded: {0}", model_label(state)))


def _end_of(answer: Answer) -> str:
    if answer.error:
        return answer.error
    return tr("Answer stopped") if answer.stop_reason == "cancelled" else tr("Answer finished")
