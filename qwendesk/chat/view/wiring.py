"""Builds the widgets of the chat feature and connects them to its services."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from qwendesk.chat.chat_services import ChatServices
from qwendesk.chat.reopen_guard import MayReopen, ReopenGuard, always
from qwendesk.chat.view.branch_note import BranchFinder, BranchNote
from qwendesk.chat.view.call_log_opener import CallLogOpener
from qwendesk.chat.view.chat_area import ChatArea
from qwendesk.chat.view.chat_commands import ChatCommands
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.chat_switcher import ChatSwitcher
from qwendesk.chat.view.chat_transfer import ChatTransfer
from qwendesk.chat.view.context_sheet import ContextSheetOpener
from qwendesk.chat.view.inspector.sampling_tab import SamplingTab
from qwendesk.chat.view.inspector.system_prompt_tab import SystemPromptTab
from qwendesk.chat.view.last_chat_opener import LastChatOpener
from qwendesk.chat.view.model_offer import ModelOffer
from qwendesk.chat.view.page_opener import PageOpener
from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.chat.view.source_opener import SourceOpener
from qwendesk.chat.view.store_notices import StoreNotices
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState
from qwendesk.hardware.ladder import StepDown
from qwendesk.widgets.actions import ActionId
from qwendesk.widgets.bind import bind
from qwendesk.widgets.layouts import LazyPage
from qwendesk.widgets.tasks import window_tasks


class ChatView(QObject):
    """The chat feature in the window. `area` is its page; the signals are requests to the window."""

    notice_asked = Signal(object)
    """A Notice to show above every page."""
    error_found = Signal(str, str)
    """Title and sentence."""
    announced = Signal(str)
    """Text for screen readers."""
    page_asked = Signal()
    """Asks the window to show the chat page."""
    inspector_asked = Signal(str)
    """Asks the window to show a tab of the inspector: "system" or "sampling"."""
    command_asked = Signal(str)
    """The user wants to see what a command means that was pasted into the composer."""
    model_search_asked = Signal(str)
    """The user wants to see a model on the Models page whose name or link was pasted into the composer."""
    context_length_asked = Signal()
    """Asks the window to show the option for the model's context length."""

    def __init__(self, services: ChatServices) -> None:
        super().__init__()
        chat, chat_list = services.chat, services.chat_list
        self.services, self._tasks = services, window_tasks()
        self._starting: asyncio.Task[None] | None = None
        self.page = ChatPage(chat, services.context, services.presets)
        self.sidebar = Sidebar(chat_list)
        self.area = ChatArea(self.page, self.sidebar)
        self.offer = ModelOffer(self.page)
        self.transfer = ChatTransfer(services.transfer, self.sidebar)
        self._report: LoadReport | None = None
        self.sampling = LazyPage(self._build_sampling)
        self.system_prompt = LazyPage(lambda: SystemPromptTab(chat, services.prompts))
        self.commands = ChatCommands(self.page, chat, self.area, self.sidebar, self.transfer, self.page_asked.emit)
        self.switcher = ChatSwitcher(services, self.page, self.sidebar, self.offer)
        self._store_notices = StoreNotices(chat_list, self.sidebar)
        self._page_opener = PageOpener(services.pages, chat, self.page)
        self.page.thread_view.page_asked.connect(self._page_opener.ask)
        self.sources = SourceOpener(self.page.thread_view.intents.sources, chat, self.page)
        self.call_log = CallLogOpener(self.page, chat, chat_list)
        self.sidebar.calls_asked.connect(self.call_log.open_chat)
        self.page.add_above(BranchNote(chat, chat_list))
        BranchFinder(self.page.thread_view.intents, chat, chat_list)
        self._connect()

    def start(self, folder: Path | None = None, may_reopen: MayReopen = always) -> None:
        """Open the stored chats, and the chat that was open last if `may_reopen` allows it."""
        self._starting = self._tasks.start(self.services.start(folder, may_reopen))

    async def opened(self) -> None:
        """Wait until `start` has opened the last chat or failed. Return at once if it wasn't called."""
        if self._starting is not None:
            await asyncio.wait([self._starting])

    def show_engine(self, state: EngineState, retry: StepDown | None = None) -> None:
        """Show the engine's state; `retry` is the step to offer after a failed load."""
        self._report = state.report
        self.page.show_engine(state, retry)
        self.offer.show_engine(state)
        self.sidebar.show_model(state.model)
        if self.sampling.is_built:
            self.sampling.page().show_model(state.report)

    def _build_sampling(self) -> SamplingTab:
        tab = SamplingTab(self.services.chat, self.services.presets)
        tab.show_model(self._report)
        return tab

    def add_context_label(self, label: QWidget) -> Mapping[ActionId, Callable[[], None]]:
        """Make `label` open the sheet that shows what fills the context. Return the commands that this adds."""
        opener = ContextSheetOpener(label, self.services.context, self.services.chat)
        opener.prompt_asked.connect(lambda: self.inspector_asked.emit("system"))
        opener.length_asked.connect(self.context_length_asked)
        return {
            "context": opener.open,
            "system_prompt": lambda: self.inspector_asked.emit("system"),
            "call_log": self.call_log.open,
        }

    def last_chat_opener(self, guard: ReopenGuard) -> LastChatOpener:
        """Return the object that decides at startup whether the last chat is opened."""
        opener = LastChatOpener(self.services.chat_list, guard, parent=self)
        opener.notice_asked.connect(self.notice_asked)
        return opener

    def _connect(self) -> None:
        for text_shown in (self.page.banner.content_shown, self.page.composer.notice_changed, self.offer.announced):
            text_shown.connect(self.announced)
        for failed in (self.transfer.failed, self._store_notices.failed):
            failed.connect(self.error_found)
        self._store_notices.notice_asked.connect(self.notice_asked)
        self.page.branched.connect(
            lambda: self.page.composer.show_remark(tr("Branch created. You're in the new chat now."))
        )
        strip = self.page.composer.pasted_strip
        strip.shown.connect(self.announced)
        strip.command_asked.connect(self.command_asked)
        strip.model_asked.connect(self.model_search_asked)
        attachments = self.page.composer.attachments
        attachments.changed.connect(
            lambda: self.services.warmer.show_files(attachments.pictures, attachments.documents)
        )
        intents, warmer = self.page.thread_view.intents, self.services.warmer
        intents.edit_begun.connect(warmer.show_edit)
        intents.edit_ended.connect(lambda: warmer.show_edit(None))
        bind(self, self.services.warmer.is_preparing, self.page.composer.preparing.show_preparing)
        self.page.composer.save_preset_asked.connect(self._name_preset)
        self.page.context_notices.length_asked.connect(self.context_length_asked)

    def _name_preset(self) -> None:
        self.inspector_asked.emit("sampling")
        self.sampling.page().presets.begin_naming()
