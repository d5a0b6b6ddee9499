"""The top bar: the list of chats on and off, the app's name, the model in the middle."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QMenu

from qwendesk.core.paths import is_demo
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.frame.model_button import ModelButton
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_AIR = 16
"""Above and below the model button, together."""
_LOWEST = 40
"""Its square buttons have 34."""
_NARROW = 900
"""Below this width the name goes and the demo tag gets shorter."""


class TopBar(QFrame):
    """Emits what the person wants with the model; shows an EngineState."""

    demo_asked = Signal()
    model_asked = Signal()
    mmproj_asked = Signal()
    cancel_asked = Signal()
    eject_asked = Signal()
    sidebar_asked = Signal()
    menu_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self.setProperty("kind", "topbar")
        self._brand = QLabel("QwenDesk")
        self._brand.setProperty("kind", "brand")
        self._menu = self._model_menu()
        self.model = ModelButton(keeper, self._menu)
        self._eject = TextButton(keeper, tr("Eject"), kind="quiet")
        describe(
            self._eject,
            "model.eject",
            tr("Eject"),
            tr("Unload the model and free its memory"),
            COMMANDS["eject"].shortcut,
        )
        self._eject.clicked.connect(self.eject_asked)
        self._demo_tag = TextButton(keeper, tr("Demo model: knows a few topics"), kind="tag")
        describe(
            self._demo_tag,
            "model.demo",
            tr("Demo model: knows a few topics"),
            tr(
                "The built-in demo is for trying the app. For real answers choose a Qwen3.5 or Qwen3.6 GGUF file:\n"
                "click here, then Choose GGUF file…"
            ),
        )
        self._demo_tag.clicked.connect(self.model.open_menu)
        self._incognito = QLabel(tr("Incognito"))
        self._incognito.setObjectName("chat.incognito")
        self._incognito.setProperty("chip", "accent")
        self._incognito.setToolTip(tr("This chat is incognito: nothing of it is saved."))
        self._incognito.hide()
        sidebar = IconButton(keeper, "sidebar", size=19, side=34)
        describe(
            sidebar,
            "chats.toggle",
            tr("List of chats"),
            tr("Show or hide the list of chats"),
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
        self.menu_button = IconButton(keeper, "menu", size=19, side=34)
        describe(self.menu_button, "menu.button", tr("Menu"), shortcut=COMMANDS["menu"].shortcut)
        self.menu_button.clicked.connect(self.menu_asked)
        grid.addWidget(self.menu_button, 0, 2, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(2, 1)
        self._keeper = keeper
        keeper.changed.connect(self._set_height)
        self._set_height()
        self.show_state(EngineState())

    def show_state(self, state: EngineState) -> None:
        self.model.show_state(state)
        loaded = state.report is not None
        loading = state.phase in (Phase.STARTING, Phase.LOADING)
        demo = state.wanted is not None and is_demo(state.wanted.model)
        self._eject.setVisible(loaded)
        self._demo_tag.setVisible(demo and (loaded or loading))
        self._actions["cancel"].setVisible(loading)
        self._actions["demo"].setEnabled(not (demo and (loaded or loading)))
        self._actions["mmproj"].setEnabled(loaded and not demo)

    def show_incognito(self, *, on: bool) -> None:
        """Said here too, as the list of chats may be hidden."""
        self._incognito.setVisible(on)

    def _set_height(self) -> None:
        self.setFixedHeight(max(_LOWEST, self.model.height() + self._keeper.theme.space(_AIR)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = event.size().width() >= _NARROW
        self._brand.setVisible(wide)
        self._demo_tag.setText(tr("Demo model: knows a few topics") if wide else tr("Demo: few topics"))

    def _model_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("model.menu")
        menu.setToolTipsVisible(True)
        entries = (
            ("model", tr("Choose GGUF file…"), tr("Any Qwen3.5 or Qwen3.6 GGUF file on this PC"), self.model_asked),
            (
                "mmproj",
                tr("Choose mmproj file…"),
                tr("The picture file of the loaded model, so that it can see"),
                self.mmproj_asked,
            ),
            ("", "", "", None),
            ("demo", tr("Built-in demo"), tr("Always there; knows a few topics"), self.demo_asked),
            ("cancel", tr("Stop loading"), tr("Stop the load that runs"), self.cancel_asked),
        )
        self._actions = {}
        for name, text, tip, signal in entries:
            if signal is None:
                menu.addSeparator()
                continue
            action = menu.addAction(text)
            action.setObjectName(f"model.menu.{name}")
            action.setToolTip(tip)
            action.triggered.connect(lambda _checked=False, signal=signal: signal.emit())
            self._actions[name] = action
        return menu
