"""The composer's button for tools, and the words that buttons leave out while a row has no room."""

from collections.abc import Sequence

from PySide6.QtWidgets import QHBoxLayout, QPushButton

from qwendesk.chat.view.composer.tools_menu import ToolsMenu
from qwendesk.core.chats import ChatSettings
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.buttons import TextButton, describe, restyle

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


class ToolsButton(TextButton):
    """Hidden until there are tools to choose from. `choice` is its menu, which has the signals."""

    def __init__(self, words: ButtonWords) -> None:
        super().__init__(kind="pill", icon_name="tool", role="text_dim", size=16)
        self._words = words
        self._tip = ""
        self.choice = ToolsMenu(self)
        self.clicked.connect(self.choice.open)
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
            self._tip = tr("This model can't use tools, such as reading folders or the web. Most Qwen models can.")
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
