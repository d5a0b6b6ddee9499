"""The composer's button for tools and its menu, and the words that buttons leave out while a row has no room."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from qwendesk.chat.view.composer.folder_strip import folder_text
from qwendesk.core.chats import ChatSettings
from qwendesk.core.folder_state import FolderState
from qwendesk.core.number_format import show_count
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import join_sentences, tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.popups import Menu

_LEVELS = 3


class ButtonWords:
    """The texts of some buttons of a row, from the longest to the shortest. All buttons show the same level."""

    def __init__(self, row: QHBoxLayout) -> None:
        self._row = row
        self._texts: dict[QPushButton, tuple[str, ...]] = {}
        self._level = 0

    def set(self, button: QPushButton, *texts: str) -> None:
        """Set the three texts of a button of the row."""
        self._texts[button] = texts
        button.setText(texts[self._level])

    def fit(self) -> None:
        """Show the longest texts that fit beside all else that the row shows now. Call this after it was laid out."""
        room = self._row.geometry().width() - self._row.sizeHint().width() + self._width(self._level)
        level = next((each for each in range(_LEVELS) if self._width(each) <= room), _LEVELS - 1)
        if level != self._level:
            self._level = level
            for button, texts in self._texts.items():
                button.setText(texts[level])

    def _width(self, level: int) -> int:
        """Return how wide the texts of a level are together, in logical pixels."""
        shown = (button for button in self._texts if not button.isHidden())
        return sum(button.fontMetrics().horizontalAdvance(self._texts[button][level]) for button in shown)


class ToolsMenu(Menu):
    chosen = Signal(tuple)
    """The names of the tools that are on."""
    folder_asked = Signal()
    """The user wants to pick a folder."""
    folder_opened = Signal(str)
    """The path of a folder of which the user wants to know more."""
    calls_asked = Signal()
    """The user wants to see the tool calls of this chat."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("composer.menu.tools")
        self.setToolTipsVisible(True)
        self._choices: tuple[ToolChoice, ...] = ()
        self._settings = ChatSettings()
        self._states: Mapping[str, FolderState] = {}
        self._folders: dict[str, QAction] = {}
        self._cost: QAction | None = None
        self._fault = ""
        self._n_tokens: int | None = None

    def show_tools(self, choices: Sequence[ToolChoice], settings: ChatSettings, fault: str = "") -> None:
        """Show all tools, with those that are on checked. `fault` says what is wrong with the model's template."""
        self._choices, self._settings, self._fault = tuple(choices), settings, fault
        self.clear()
        self._folders = {}
        for choice in self._choices:
            self._add_choice(choice)
        self.addSeparator()
        for folder in settings.tool_folders:
            action = self._folders[folder] = QAction(self)
            action.setObjectName(f"composer.tools.folder.{folder}")
            action.setToolTip(folder)
            action.triggered.connect(lambda _checked=False, folder=folder: self.folder_opened.emit(folder))
            self.addAction(action)
        self.show_folder_states(self._states)
        calls = QAction(tr("What tools did in this chat…"), self)
        calls.setObjectName("composer.tools.calls")
        calls.triggered.connect(self.calls_asked)
        pick = QAction(tr("Let the model read a folder…"), self)
        pick.setObjectName("composer.tools.pick")
        pick.triggered.connect(self.folder_asked)
        self.addAction(pick)
        self.addSeparator()
        self._cost = QAction(self.cost_text, self)
        self._cost.setObjectName("composer.tools.cost")
        self._cost.setEnabled(False)
        self._cost.setVisible(bool(self.cost_text))
        self.addAction(self._cost)
        if self._fault and self.active:
            note = QAction(self._fault, self)
            note.setObjectName("composer.tools.fault")
            note.setEnabled(False)
            self.addAction(note)
        self.addAction(calls)

    def show_folder_states(self, states: Mapping[str, FolderState]) -> None:
        """Show how far the folders are read."""
        self._states = states
        for folder, action in self._folders.items():
            name, state = Path(folder).name or folder, states.get(folder)
            text = folder_text(name, state)
            action.setText(f"{text}…".replace("&", "&&"))

    def show_cost(self, n_tokens: int | None) -> None:
        """Show what the active tools take, as the engine counted it; None: it has not counted these."""
        self._n_tokens = n_tokens
        if self._cost is not None:
            self._cost.setText(self.cost_text)
            self._cost.setVisible(bool(self.cost_text))

    @property
    def cost_text(self) -> str:
        """The tokens of each prompt that the active tools take; "" if none is active."""
        active = self.active
        if not active:
            return ""
        if self._n_tokens is not None:
            return tr("The active tools take {0} tokens of each prompt", show_count(self._n_tokens))
        n_tokens = sum(choice.n_tokens for choice in active)
        return tr("The active tools take about {0} tokens of each prompt", show_count(n_tokens))

    @property
    def active(self) -> tuple[ToolChoice, ...]:
        """The tools that are on."""
        settings = self._settings
        is_on = {choice: set(choice.names) <= set(settings.tools) for choice in self._choices}
        usable = (each for each in self._choices if is_on[each] and not each.obstacle)
        return tuple(each for each in usable if settings.tool_folders or not each.needs_folder)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Switch a tool without closing the menu, as often several are wanted."""
        action: QAction | None = self.actionAt(event.position().toPoint())
        if action is None or not (action.isCheckable() and action.isEnabled()):
            super().mouseReleaseEvent(event)
            return
        name, bottom = action.objectName(), self.geometry().bottom()
        action.trigger()
        # It was filled anew, and may be taller: the line with the cost comes with the first tool.
        self.setActiveAction(next(each for each in self.actions() if each.objectName() == name))
        if self.geometry().bottom() > bottom:
            self.move(self.x(), self.y() - (self.geometry().bottom() - bottom))

    def _add_choice(self, choice: ToolChoice) -> None:
        action = QAction(choice.title.replace("&", "&&"), self)
        action.setObjectName(f"composer.tools.{choice.names[0]}")
        action.setCheckable(True)
        action.setChecked(choice in self.active)
        action.setEnabled(not choice.obstacle)
        cost = tr("Takes about {0} tokens of each prompt.", show_count(choice.n_tokens))
        action.setToolTip(join_sentences(choice.promise, choice.obstacle or cost))
        action.triggered.connect(lambda checked=False: self._toggle(choice, on=checked))
        self.addAction(action)

    def _toggle(self, choice: ToolChoice, *, on: bool) -> None:
        others = tuple(name for name in self._settings.tools if name not in choice.names)
        self.chosen.emit((*others, *choice.names) if on else others)
        if on and choice.needs_folder and not self._settings.tool_folders:
            self.hide()
            self.folder_asked.emit()


class ToolsButton(TextButton):
    """Hidden until there are tools to choose from. `choice` is its menu, which has the signals."""

    def __init__(self, words: ButtonWords) -> None:
        super().__init__(kind="pill", icon_name="tool", role="text_dim", size=16)
        self._words = words
        self._tip = ""
        self.choice = ToolsMenu(self)
        self.setMenu(self.choice)
        self.show_tools((), ChatSettings(), None)

    def show_tools(self, choices: Sequence[ToolChoice], settings: ChatSettings, report: LoadReport | None) -> None:
        """Show which tools the model may call; none if its chat template has no calls that are understood."""
        can = report is None or bool(report.template.call_dialect)
        has_fault = report is not None and report.template.needs_parsed_calls
        self.choice.show_tools(choices, settings, tr("QwenDesk corrects this chat template") if has_fault else "")
        self.setVisible(bool(choices))
        self.setEnabled(can)
        self._show_text()
        self._tip = tr("What the model may do in this chat, such as calculating or reading your files")
        if not can:
            self._tip = tr("This model's chat template has no tool calls.")
        self._show_tip()

    def show_cost(self, n_tokens: int | None) -> None:
        """Show how many tokens the active tools take of each prompt, as the engine counted; None: an estimate."""
        self.choice.show_cost(n_tokens)
        self._show_tip()

    def _show_tip(self) -> None:
        cost = self.choice.cost_text if self.isEnabled() else ""
        describe(self, "composer.tools", tr("Tools"), f"{self._tip}\n{cost}" if cost else self._tip)

    def _show_text(self) -> None:
        n_active = len(self.choice.active) if self.isEnabled() else 0
        long = tr("Tools: {0}", n_active) if n_active else tr("Tools")
        short = str(n_active) if n_active else ""
        self._words.set(self, long, short, short)
        restyle(self, "active", "true" if n_active else "")
        self.themed.show("tool", "text" if n_active else "text_dim")
