"""One line above all pages: what happened outside of them, and what can be done about it."""

from collections.abc import Callable

import msgspec
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout

from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class NoticeAction(msgspec.Struct, frozen=True):
    """One button. It takes the notice away unless `stays`."""

    name: str
    text: str
    tooltip: str
    run: Callable[[], None]
    stays: bool = False


class Notice(QFrame):
    """Made when it is needed; gone for good when it is dismissed or one of its actions was chosen."""

    def __init__(
        self, keeper: ThemeKeeper, name: str, title: str, sentence: str, actions: tuple[NoticeAction, ...] = ()
    ) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setProperty("kind", "notice")
        self.setAccessibleName(title)
        heading = QLabel(title)
        heading.setObjectName(f"{name}.title")
        heading.setProperty("kind", "heading")
        heading.setWordWrap(True)
        words = QLabel(sentence)
        words.setObjectName(f"{name}.sentence")
        words.setWordWrap(True)
        close = IconButton(keeper, "close", size=16, side=28)
        describe(close, f"{name}.dismiss", tr("Dismiss"))
        close.clicked.connect(self.end)
        top = QHBoxLayout()
        top.addWidget(heading, 1)
        top.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 10, 12, 12)
        column.setSpacing(6)
        Airy(keeper, column)
        column.addLayout(top)
        column.addWidget(words)
        if actions:
            column.addLayout(self._buttons(keeper, actions))

    def end(self) -> None:
        """Take it away."""
        self.hide()
        self.deleteLater()

    def _buttons(self, keeper: ThemeKeeper, actions: tuple[NoticeAction, ...]) -> FlowLayout:
        row = FlowLayout()
        for action in actions:
            button = TextButton(keeper, action.text)
            describe(button, f"{self.objectName()}.{action.name}", action.text, action.tooltip)
            button.clicked.connect(lambda _checked=False, action=action: self._choose(action))
            row.addWidget(button)
        return row

    def _choose(self, action: NoticeAction) -> None:
        if not action.stays:
            self.end()
        action.run()
