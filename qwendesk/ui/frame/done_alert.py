"""Asks for attention when a long answer ends while the person is in another program."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.ui.bridges.chat import ChatBridge

LONG_S = 10.0
"""Seconds; who asked something shorter is still looking."""


def _alert(window: QWidget) -> None:
    QApplication.alert(window)


class DoneAlert(QObject):
    """The window's icon flashes in the task bar; what else tells of it (the tray) listens to `ended`."""

    ended = Signal()
    """A long answer ended, and the person does not look at the window."""

    def __init__(
        self,
        chat: ChatBridge,
        window: QWidget,
        now: Callable[[], float] = time.monotonic,
        alert: Callable[[QWidget], None] = _alert,
    ) -> None:
        super().__init__(window)
        self._window, self._now, self._alert = window, now, alert
        self._begun: dict[int, float] = {}
        chat.turn_started.connect(self._on_started)
        chat.turn_ended.connect(self._on_ended)

    def _on_started(self, turn_id: int) -> None:
        self._begun[turn_id] = self._now()

    def _on_ended(self, turn_id: int) -> None:
        begun = self._begun.pop(turn_id, None)
        if begun is not None and self._now() - begun >= LONG_S and not self._window.isActiveWindow():
            self._alert(self._window)
            self.ended.emit()
