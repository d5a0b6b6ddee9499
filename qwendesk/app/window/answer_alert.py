"""Asks for attention when a long answer ends while the user is in another program."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.chat_state import ChatEvent, TurnEnded, TurnStarted
from qwendesk.chat.service import ChatService
from qwendesk.widgets.bind import follow

# Seconds. After a shorter answer the user is probably still looking at the window.
LONG_S = 10.0


def _alert(window: QWidget) -> None:
    QApplication.alert(window)


class AnswerAlert(QObject):
    """Flashes the window's icon in the task bar, and emits `ended` for other kinds of alerts, such as the tray's."""

    ended = Signal()
    """A long answer ended while the window was not active."""

    def __init__(
        self,
        chat: ChatService,
        window: QWidget,
        now: Callable[[], float] = time.monotonic,
        alert: Callable[[QWidget], None] = _alert,
    ) -> None:
        super().__init__(window)
        self._chat, self._window, self._now, self._alert = chat, window, now, alert
        self._begun: dict[int, float] = {}
        follow(self, chat.subscribe, self._on_chat_event)

    def _on_chat_event(self, event: ChatEvent) -> None:
        match event:
            case TurnStarted(turn_id=turn_id):
                self._begun[turn_id] = self._now()
            case TurnEnded(turn_id=turn_id):
                self._on_ended(turn_id)

    def _on_ended(self, turn_id: int) -> None:
        begun = self._begun.pop(turn_id, None)
        turn = self._chat.turn(turn_id)
        if turn is None or turn.answer.stop_reason == "cancelled":
            return  # stopped by the user, or because the app quits
        if begun is not None and self._now() - begun >= LONG_S and not self._window.isActiveWindow():
            self._alert(self._window)
            self.ended.emit()
