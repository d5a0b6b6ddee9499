"""The Load tab: what it costs at the top, what can be set under it, and the reload at the foot."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.options import GenerationOptions
from qwendesk.ui.bridges.draft import DraftBridge
from qwendesk.ui.bridges.settings import SettingsBridge
from qwendesk.ui.inspector import load_text
from qwendesk.ui.inspector.command_card import CommandCard
from qwendesk.ui.inspector.load_rows import LoadRows
from qwendesk.ui.inspector.price_card import PriceCard
from qwendesk.ui.inspector.profile_menu import ProfileMenu
from qwendesk.ui.kit.buttons import TextButton, describe, restyle
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class LoadPart(QWidget):
    """`answer_options` gives how the open chat's answers are made, for the commands."""

    model_asked = Signal()

    def __init__(
        self,
        keeper: ThemeKeeper,
        bridge: DraftBridge,
        settings: SettingsBridge,
        answer_options: Callable[[], GenerationOptions],
    ) -> None:
        super().__init__()
        self._bridge, self._answer_options = bridge, answer_options
        self.setObjectName("inspector.load")
        self._price = PriceCard(keeper)
        self._price.asked.connect(bridge.ask_engine)
        self._rows = LoadRows(keeper, bridge, settings)
        self._command = CommandCard(keeper, "inspector.command")
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search options"))
        self._search.setClearButtonEnabled(True)
        describe(self._search, "inspector.load.search", tr("Search options"), tr("By name, help or llama.cpp's flag"))
        self._search.textChanged.connect(self._filter)
        self._advanced = TextButton(keeper, tr("Advanced: all {0} flags", self._rows.n_advanced), kind="pill")
        self._advanced.setCheckable(True)
        describe(self._advanced, "inspector.load.advanced", tr("Advanced"), tr("Show every option of llama.cpp"))
        self._advanced.toggled.connect(self._filter)
        self._profiles = ProfileMenu(keeper, bridge)
        self._nothing = QLabel(tr("Load a model first: what it would take is shown here, and how it is loaded."))
        self._nothing.setProperty("kind", "dim")
        self._nothing.setWordWrap(True)
        self._nothing.setObjectName("inspector.load.nothing")
        self._choose = TextButton(keeper, tr("Choose a model"))
        describe(self._choose, "inspector.load.choose", tr("Choose a model"), tr("Choose a GGUF file"))
        self._choose.clicked.connect(self.model_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(_padded(self._price))
        column.addWidget(self._middle(), 1)
        column.addWidget(self._foot(keeper))
        bridge.changed.connect(self.show_draft)
        self.show_draft()
        self._filter()

    def show_draft(self) -> None:
        draft = self._bridge.draft
        has_model = draft.asked is not None
        for widget in (self._price, self._rows, self._command, self._search, self._advanced, self._foot_frame):
            widget.setVisible(has_model)
        self._profiles.setVisible(has_model)
        self._nothing.setVisible(not has_model)
        self._choose.setVisible(not has_model)
        if not has_model:
            return
        self._price.show_draft(draft)
        self._rows.show_draft(draft)
        self._command.show_draft(draft, self._answer_options())
        self._profiles.show_draft(draft)
        text, sentence = load_text.reload_text(draft)
        is_bad = bool(draft.conflicts or draft.refusal)
        self._reload.setText(text)
        self._reload.setVisible(draft.needs_reload or not draft.is_loaded or draft.is_waiting)
        self._reload.setEnabled(not is_bad and not draft.is_waiting)
        restyle(self._sentence, "kind", "error" if is_bad else "small")
        self._sentence.setText(draft.problem or sentence)
        self._sentence.setVisible(bool(self._sentence.text()))
        self._reset.setVisible(bool(draft.changed))
        self._foot_frame.setVisible(any(not each.isHidden() for each in (self._reload, self._sentence, self._reset)))

    def show_commands(self) -> None:
        """How answers are made has changed."""
        if self._bridge.draft.asked is not None:
            self._command.show_draft(self._bridge.draft, self._answer_options())

    def _middle(self) -> QScrollArea:
        inner = QWidget()
        inner.setProperty("kind", "panel")
        column = QVBoxLayout(inner)
        column.setContentsMargins(16, 0, 12, 12)
        column.setSpacing(8)
        for widget in (self._nothing, self._choose, self._search, self._rows):
            column.addWidget(widget)
        column.addWidget(self._advanced, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._profiles)
        column.addWidget(self._command)
        column.addStretch(1)
        area = QScrollArea()
        area.setProperty("kind", "panel")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inner)
        return area

    def _foot(self, keeper: ThemeKeeper) -> QFrame:
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("inspector.load.sentence")
        self._reload = TextButton(keeper, tr("Reload to apply"), kind="primary")
        describe(
            self._reload, "inspector.load.reload", tr("Reload to apply"),
            tr("Load the model again with these options, after the present answer"),
        )  # fmt: skip
        self._reload.clicked.connect(self._bridge.reload)
        self._reset = TextButton(keeper, tr("Reset all"), kind="quiet")
        describe(self._reset, "inspector.load.reset", tr("Reset all"), tr("Every option of this model to its default"))
        self._reset.clicked.connect(self._bridge.reset_all)
        buttons = QHBoxLayout()
        buttons.addWidget(self._reset)
        buttons.addStretch(1)
        buttons.addWidget(self._reload)
        self._foot_frame = QFrame()
        self._foot_frame.setProperty("kind", "foot")
        column = QVBoxLayout(self._foot_frame)
        column.setContentsMargins(16, 8, 16, 12)
        column.setSpacing(6)
        column.addWidget(self._sentence)
        column.addLayout(buttons)
        return self._foot_frame

    def _filter(self) -> None:
        self._rows.filter(self._search.text().strip(), shows_advanced=self._advanced.isChecked())


def _padded(widget: QWidget) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(16, 0, 16, 0)
    row.addWidget(widget)
    return holder
