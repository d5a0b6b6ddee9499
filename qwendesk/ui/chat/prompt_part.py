"""Opens what fills the context from the meter bar, and from there the chat's system prompt."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget

from qwendesk.services.chat.context_fill import ContextGauge
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.chat.context_gauge import ContextSheet
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class PromptPart(QObject):
    """`label` is the meter bar's context label: a click, or Enter on it, opens the sheet.

    `open_prompt` shows the system prompt.
    """

    def __init__(
        self,
        keeper: ThemeKeeper,
        tasks: Tasks,
        chat: ChatBridge,
        gauge: ContextGauge,
        label: QWidget,
        window: QWidget,
        open_prompt: Callable[[], None],
    ) -> None:
        super().__init__(window)
        self._keeper, self._tasks, self._chat, self._gauge = keeper, tasks, chat, gauge
        self._label, self._window = label, window
        self.open_prompt = open_prompt
        label.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        label.setCursor(Qt.CursorShape.PointingHandCursor)
        label.setAccessibleName(tr("What fills the context"))
        label.installEventFilter(self)

    def open_sheet(self) -> None:
        sheet = ContextSheet(self._keeper, self._gauge, self._chat, self._tasks, self._window)
        sheet.prompt_asked.connect(self.open_prompt)
        sheet.show_above(self._label)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._label:
            clicked = event.type() is QEvent.Type.MouseButtonRelease
            pressed = event.type() is QEvent.Type.KeyPress and getattr(event, "key", lambda: 0)() in _KEYS
            if clicked or pressed:
                self.open_sheet()
                return True
        return super().eventFilter(watched, event)
