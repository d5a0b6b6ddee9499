"""The inspector to the right of the chat: load options, sampling options, and the system prompt."""

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing
from qwendesk.widgets.theme_keeper import app_theme, current_theme

Tab = Literal["load", "sampling", "system"]
WIDTH = 336


class Inspector(QFrame):
    """Has three tabs. The object name of a tab's button is "inspector.tab.TAB", that of its content "inspector.TAB"."""

    close_asked = Signal()

    def __init__(self, load: QWidget, sampling: QWidget, system: QWidget) -> None:
        super().__init__()
        self.setProperty("kind", "inspector")
        self.setObjectName("inspector")
        self.setAccessibleName(tr("Inspector"))
        self._scale_width()
        app_theme().changed.connect(self._scale_width)
        self._stack = QStackedWidget()
        self._buttons: dict[Tab, TextButton] = {}
        self._parts: dict[Tab, QWidget] = {"load": load, "sampling": sampling, "system": system}
        names: dict[Tab, str] = {"load": tr("Load"), "sampling": tr("Sampling"), "system": tr("System")}
        tabs = QHBoxLayout()
        tabs.setContentsMargins(16, 12, 8, 4)
        tabs.setSpacing(2)
        DensitySpacing(tabs)
        for tab, part in self._parts.items():
            button = TextButton(names[tab], kind="tab")
            button.setCheckable(True)
            describe(button, f"inspector.tab.{tab}", names[tab])
            button.clicked.connect(lambda _checked=False, tab=tab: self.show_tab(tab))
            self._buttons[tab] = button
            self._stack.addWidget(part)
            tabs.addWidget(button)
        tabs.addStretch(1)
        close = IconButton("close", size=16, side=30)
        describe(close, "inspector.close", tr("Close"), tr("Hide the inspector"), COMMANDS["inspector"].shortcut)
        close.clicked.connect(self.close_asked)
        tabs.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(tabs)
        column.addWidget(self._stack, 1)
        self.show_tab("load")

    def show_tab(self, tab: Tab) -> None:
        for each, button in self._buttons.items():
            button.setChecked(each == tab)
        self._stack.setCurrentWidget(self._parts[tab])

    def _scale_width(self) -> None:
        self.setFixedWidth(current_theme().px(WIDTH))
