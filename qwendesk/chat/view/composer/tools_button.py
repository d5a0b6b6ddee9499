"""The composer's button for tools: how many are on, with the menu that chooses them."""

from collections.abc import Sequence

from qwendesk.chat.view.composer.button_words import ButtonWords
from qwendesk.chat.view.composer.tools_menu import ToolsMenu
from qwendesk.core.chats import ChatSettings
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.buttons import TextButton, describe, restyle


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
        describe(self, "composer.tools", tr("Tools"), f"{self._tip}. {cost}" if cost else self._tip)

    def _show_text(self) -> None:
        n_active = len(self.choice.active) if self.isEnabled() else 0
        long = tr("Tools: {0}", n_active) if n_active else tr("Tools")
        short = f" {n_active}" if n_active else ""
        self._words.set(self, f" {long}", short, short)
        restyle(self, "active", "true" if n_active else "")
        self.themed.show("tool", "text" if n_active else "text_dim")
