"""Lets the user choose which tools the model may call in the open chat, and in which folders they may read."""

from collections.abc import Sequence
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.core.chats import ChatSettings
from qwendesk.core.paths import is_demo
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.tasks import window_tasks

# The tools with which the built-in demo can do something.
_FOR_DEMO = ("current_time", "calculate")


class ToolPicker(QObject):
    """Connects the composer's menu of tools with the settings of the chat."""

    obstacles_asked = Signal()
    """Asks for the tools that can't be used on this PC."""

    def __init__(self, composer: Composer, chat: ChatService, gauge: ContextGauge) -> None:
        super().__init__(composer)
        self._composer, self._chat, self._gauge, self._tasks = composer, chat, gauge, window_tasks()
        self._counted: tuple[object, ...] = ()
        """The tools and settings of the last count of tokens."""
        self._choices: Sequence[ToolChoice] = ()
        self._report: LoadReport | None = None
        self._fault_said_of: LoadReport | None = None
        choice = composer.tools.choice
        choice.chosen.connect(lambda names: self._change(tools=tuple(names)))
        choice.folder_asked.connect(self.ask_for_folder)
        composer.folder_asked.connect(self.ask_for_folder)
        choice.opened.connect(self.obstacles_asked)
        bind_field(self, chat.state, lambda state: state.settings, self._show)

    def show_choices(self, choices: Sequence[ToolChoice]) -> None:
        """Offer these tools."""
        self._choices = choices
        self._show()

    def show_report(self, report: LoadReport | None) -> None:
        self._report = report
        self._show()

    def _show(self, _settings: ChatSettings | None = None) -> None:
        settings = self._chat.settings
        self._composer.tools.show_tools(self._offered(settings), settings, self._report)
        self._count_if_changed()
        if any(choice.obstacle and set(choice.names) <= set(settings.tools) for choice in self._choices):
            self.obstacles_asked.emit()

    def _offered(self, settings: ChatSettings) -> Sequence[ToolChoice]:
        """Return the tools that suit the loaded model, and those that are on, so that they can be turned off.

        The demo's menu also has the tools that read files, with the reason why it can't use them.
        """
        if not self._is_demo:
            return self._choices
        usable = {*_FOR_DEMO, *settings.tools}
        reason = tr("Needs a larger model, which can also use the web and run code.")
        files = next((choice for choice in self._choices if choice.needs_folder), None)
        shown = ((choice, usable.issuperset(choice.names)) for choice in self._choices)
        return [
            choice if suits else msgspec.structs.replace(choice, obstacle=reason)
            for choice, suits in shown
            if suits or choice is files
        ]

    @property
    def _is_demo(self) -> bool:
        return self._report is not None and is_demo(self._report.options.model)

    def _count_if_changed(self) -> None:
        """Have the engine count what the active tools take, unless it did so for the same ones."""
        report, settings = self._report, self._chat.settings
        active = self._composer.tools.choice.active
        wanted = (report, active, settings.system_prompt, bool(settings.tool_folders))
        if wanted == self._counted:
            return
        self._counted = wanted
        self._composer.tools.show_cost(None)
        self._say_fault(report if active else None)
        if active and report is not None and report.template.call_dialect and report.served_by is None:
            self._tasks.start(self._count(wanted), self)

    def _say_fault(self, report: LoadReport | None) -> None:
        """Say once for each loaded model that its template is corrected for calls."""
        if report is None or not report.template.needs_parsed_calls or report == self._fault_said_of:
            return
        self._fault_said_of = report
        self._composer.show_remark(
            tr(
                "The chat template in this model's file has a known fault in tool calls. QwenDesk corrects it; other "
                "programs may not."
            )
        )

    async def _count(self, wanted: tuple[object, ...]) -> None:
        n_tokens = await self._gauge.count_tools()
        if self._counted == wanted and isinstance(n_tokens, int):
            self._composer.tools.show_cost(n_tokens)

    def _change(self, **changes: Any) -> None:
        self._chat.change_settings(msgspec.structs.replace(self._chat.settings, **changes))

    def _refuses_folders(self) -> bool:
        """Return True if the loaded model can't read folders, and say so in the composer."""
        if self._is_demo:
            sentence = tr("The built-in demo can't read folders. A larger model can.")
        elif self._report is not None and not self._report.template.call_dialect:
            sentence = tr(
                "This model can't use tools, so it can't read folders. Attach files instead, or choose another model."
            )
        else:
            return False
        self._composer.show_notice(sentence, ("models",))
        return True

    def ask_for_folder(self) -> None:
        """Have the user choose a folder, unless the loaded model can't read any."""
        if self._refuses_folders():
            return
        title = tr("Let the model read a folder")
        ask_for_folder(self._composer, "composer.tools.dialog", title, self.add_folder)

    def add_folder(self, folder: str) -> None:
        """Take a folder, and switch on the tools that read in it, which come first among those that need one.

        If the loaded model can't read folders, say so instead.
        """
        if self._refuses_folders():
            return
        settings = self._chat.settings
        reading = next((choice.names for choice in self._choices if choice.needs_folder), ())
        tools = (*settings.tools, *(name for name in reading if name not in settings.tools))
        self._change(tools=tools, tool_folders=tuple(dict.fromkeys((*settings.tool_folders, folder))))
