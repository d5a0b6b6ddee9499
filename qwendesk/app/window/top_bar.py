"""The top bar: buttons for the chat list, the model, the inspector and the main menu, and the app's name."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel

from qwendesk.app.window.model_button import ModelButton
from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import incognito_text
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_AIR = 16
"""Padding above and below the model button, in total."""
_LOWEST = 40
"""Minimum height of the bar; its square buttons have a height of 34."""
_NARROW = 900
"""Below this width the app's name and the inspector's button are hidden, and the demo tag is shortened."""


class TopBar(QFrame):
    """Shows an EngineState, and emits a signal for each action that the user chooses."""

    picker_asked = Signal()
    """Asks to show the model picker."""
    offers_asked = Signal()
    """Asks to show the models that fit this PC."""
    eject_asked = Signal()
    sidebar_asked = Signal()
    inspector_asked = Signal()
    menu_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "topbar")
        self._brand = QLabel("QwenDesk")
        self._brand.setProperty("kind", "brand")
        self.model = ModelButton()
        self.model.clicked.connect(self.picker_asked)
        self._eject = TextButton(tr("Eject"), kind="quiet")
        self._describe_eject()
        self._eject.clicked.connect(self.eject_asked)
        self._demo_tag = TextButton(tr("Demo model: knows a few topics"), kind="tag")
        describe(
            self._demo_tag,
            "model.demo",
            tr("Demo model: knows a few topics"),
            tr("The built-in demo is for trying the app. For real answers, click here and choose a model for this PC."),
        )
        self._demo_tag.clicked.connect(self.offers_asked)
        self._incognito = QLabel(tr("Incognito"))
        self._incognito.setObjectName("chat.incognito")
        self._incognito.setProperty("chip", "accent")
        self._incognito.hide()
        sidebar = IconButton("sidebar", size=19, side=34)
        describe(
            sidebar,
            "chats.toggle",
            tr("List of chats"),
            tr("Show or hide the chat list"),
            COMMANDS["sidebar"].shortcut,
        )
        sidebar.clicked.connect(self.sidebar_asked)
        left = QHBoxLayout()
        left.setSpacing(16)
        left.addWidget(sidebar)
        left.addWidget(self._brand)
        left.addWidget(self._incognito, 0, Qt.AlignmentFlag.AlignVCenter)
        left.addStretch(1)

        middle = QHBoxLayout()
        middle.setSpacing(8)
        for widget in (self.model, self._eject, self._demo_tag):
            middle.addWidget(widget)
        grid = QGridLayout(self)
        grid.setContentsMargins(15, 0, 12, 0)
        grid.addLayout(left, 0, 0)
        grid.addLayout(middle, 0, 1, Qt.AlignmentFlag.AlignCenter)
        self.menu_button = IconButton("menu", size=19, side=34)
        describe(self.menu_button, "menu.button", tr("Menu"), shortcut=COMMANDS["menu"].shortcut)
        self.menu_button.clicked.connect(self.menu_asked)
        self._inspector = IconButton("inspector", size=19, side=34)
        describe(
            self._inspector,
            "inspector.toggle",
            tr("Options"),
            tr("Show or hide the options of the model and this chat"),
            COMMANDS["inspector"].shortcut,
        )
        self._inspector.clicked.connect(self.inspector_asked)
        right = QHBoxLayout()
        right.setSpacing(4)
        right.addStretch(1)
        right.addWidget(self._inspector)
        right.addWidget(self.menu_button)
        grid.addLayout(right, 0, 2)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(2, 1)
        app_theme().changed.connect(self._set_height)
        self._set_height()
        self.show_state(EngineState())

    def show_state(self, state: EngineState) -> None:
        self.model.show_state(state)
        loaded = state.report is not None
        loading = state.phase in (Phase.STARTING, Phase.LOADING)
        demo = state.requested is not None and is_demo(state.requested.model)
        self._incognito.setToolTip(incognito_text(state.model))
        self._eject.setVisible(loaded)
        served = state.report.served_by if state.report is not None else None
        if served is not None:
            self._eject.setToolTip(tr("Stop using {0}. The model stays loaded there.", served.name))
        else:
            self._describe_eject()
        self._demo_tag.setVisible(demo and (loaded or loading))

    def _describe_eject(self) -> None:
        tip = tr("Unload the model and free its memory")
        describe(self._eject, "model.eject", tr("Eject"), tip, COMMANDS["eject"].shortcut)

    def show_incognito(self, *, on: bool) -> None:
        """Show or hide the incognito tag, which is also here because the chat list may be hidden."""
        self._incognito.setVisible(on)

    def _set_height(self) -> None:
        self.setFixedHeight(max(_LOWEST, self.model.height() + current_theme().space(_AIR)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = event.size().width() >= _NARROW
        self._brand.setVisible(wide)
        self._inspector.setVisible(wide)
        self._demo_tag.setText(tr("Demo model: knows a few topics") if wide else tr("Demo: few topics"))
