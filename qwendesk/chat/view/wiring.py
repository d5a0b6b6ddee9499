"""Builds the widgets of the chat feature and connects them to its services."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QAbstractButton, QWidget

from qwendesk.chat.chat_list import ChatListState
from qwendesk.chat.chat_services import ChatServices
from qwendesk.chat.chat_state import ChatState
from qwendesk.chat.reopen_guard import MayReopen, ReopenGuard, always
from qwendesk.chat.view.answer.source_links import SourceOpener
from qwendesk.chat.view.chat_area import ChatArea
from qwendesk.chat.view.chat_commands import ChatCommands, ChatTransfer
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.chat_switcher import ChatSwitcher
from qwendesk.chat.view.composer.context_notices import ContextSheetOpener
from qwendesk.chat.view.inspector.inspector import Inspector, Tab
from qwendesk.chat.view.last_chat_opener import LastChatOpener
from qwendesk.chat.view.model_offer import ModelOffer
from qwendesk.chat.view.page_opener import PageOpener
from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.chat.view.store_notices import StoreNotices
from qwendesk.chat.view.thread.branch_links import BranchFinder, BranchNote
from qwendesk.chat.view.thread.rows import import_message_widgets
from qwendesk.core.citations import SEARCH
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState
from qwendesk.engines.command_preview import CommandService
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.hardware.ladder import StepDown
from qwendesk.settings.service import SettingsService
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.knowledge.search import read_page, read_source
from qwendesk.toolbox.service import ToolService
from qwendesk.widgets.actions import ActionId
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.layouts import size_hidden
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks

if TYPE_CHECKING:
    from qwendesk.chat.view.inspector.sampling_tab import SamplingTab
    from qwendesk.engines.view.load_options.command_dialog import CommandDialog
    from qwendesk.engines.view.load_options.load_part import LoadPart


class ChatToolServices(NamedTuple):
    """The services with which the chat shows tools."""

    toolbox: ToolService
    edits: EditHistory
    folder_indexes: FolderIndexes


class LoadTabServices(NamedTuple):
    """The services of the inspector's Load tab and of pasted commands."""

    pending_load: PendingLoadService
    commands: CommandService
    settings: SettingsService


class ChatView(QObject):
    """The chat feature in the window. `area` is its page."""

    def __init__(
        self, services: ChatServices, tools: ChatToolServices, load: LoadTabServices, navigation: Navigation
    ) -> None:
        super().__init__()
        self.navigation = navigation
        chat, chat_list = services.chat, services.chat_list
        self.services, self._tasks = services, window_tasks()
        self._starting: asyncio.Task[None] | None = None
        self.page = ChatPage(chat, services.context, services.presets)
        self.sidebar = Sidebar(chat_list)
        self.area = ChatArea(self.page, self.sidebar)
        self.offer = ModelOffer(self.page)
        self.transfer = ChatTransfer(services, self.sidebar)
        self._report: LoadReport | None = None
        self._load_services = load
        self.load_tab = LazyPage(self._build_load_tab)
        self.sampling = LazyPage(self._build_sampling)
        self._sampling_tab: SamplingTab | None = None
        """The tab once it exists, also while its place is still being built."""
        self.inspector = Inspector(self.load_tab, self.sampling, LazyPage(self._build_system_prompt))
        self.area.set_inspector(self.inspector)
        self._command_dialog: CommandDialog | None = None
        self.commands = ChatCommands(self.page, chat, self.area, self.sidebar, self.transfer, self._show_page)
        self.switcher = ChatSwitcher(services, self.page, self.sidebar, self.offer)
        self._store_notices = StoreNotices(chat_list, self.sidebar)
        self._page_opener = PageOpener(services.pages, chat, self.page)
        self.page.thread_view.page_asked.connect(self._page_opener.ask)
        self.sources = SourceOpener(self.page.thread_view.intents.sources, chat, self.page)
        self.sidebar.calls_asked.connect(self._show_call_log)
        self.page.composer.tools.choice.calls_asked.connect(self._show_call_log)
        self.page.composer.tools.choice.settings_asked.connect(lambda: navigation.settings_asked.emit("mcp"))
        self.page.add_above(BranchNote(chat, chat_list))
        BranchFinder(self.page.thread_view.intents, chat, chat_list)
        self._is_first_start = False
        self._connect()
        self._connect_tools(tools)

    def start(self, folder: Path | None = None, may_reopen: MayReopen = always) -> None:
        """Open the stored chats, and the chat that was open last if `may_reopen` allows it."""
        self._starting = self._tasks.start(self.services.start(folder, may_reopen))
        self._tasks.start(self._get_ready())

    async def _get_ready(self) -> None:
        """Do ahead, while nobody waits, what would delay the first model and the first message."""
        await asyncio.to_thread(import_message_widgets)
        await size_hidden(self.page.window())

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
        if self._sampling_tab is not None:
            self._sampling_tab.show_model(state.report)

    # The tabs of the inspector and the dialogs are imported when they are first shown: few starts need them.

    def _show_call_log(self, chat_id: str = "") -> None:
        """Show the tool calls of a chat; without an id, those of the open one."""
        from qwendesk.chat.view.thread.tools.call_log_dialog import show_call_log  # noqa: PLC0415

        show_call_log(self.page, self.services.chat, self.services.chat_list, chat_id)

    def _build_load_tab(self) -> "Iterator[LoadPart | None]":
        from qwendesk.engines.view.load_options.load_part import LoadPart  # noqa: PLC0415

        yield None
        needed = self._load_services
        yield LoadPart(needed.pending_load, needed.settings, self.services.options, self.navigation)

    def _build_system_prompt(self) -> Iterator[QWidget | None]:
        from qwendesk.chat.view.inspector.system_prompt_tab import SystemPromptTab  # noqa: PLC0415

        yield None
        yield SystemPromptTab(self.services.chat, self.services.prompts)

    def _build_sampling(self) -> "Iterator[SamplingTab | None]":
        from qwendesk.chat.view.inspector.sampling_tab import SamplingTab  # noqa: PLC0415

        yield None
        self._sampling_tab = tab = SamplingTab(self.services.chat, self.services.presets)
        tab.show_model(self._report)
        yield tab

    def add_context_button(self, button: QAbstractButton) -> Mapping[ActionId, Callable[[], None]]:
        """Make `button` open the sheet that shows what fills the context. Return the commands that this adds."""
        opener = ContextSheetOpener(button, self.services.context, self.services.chat)
        opener.prompt_asked.connect(self._show_system_prompt)
        opener.length_asked.connect(self._show_context_length)
        return {
            "context": opener.open,
            "context_length": self._show_context_length,
            "load_options": self._show_all_options,
            "system_prompt": self._show_system_prompt,
            "call_log": self._show_call_log,
        }

    def last_chat_opener(self, guard: ReopenGuard) -> LastChatOpener:
        """Return the object that decides at startup whether the last chat is opened."""
        opener = LastChatOpener(self.services.chat_list, guard, parent=self)
        opener.notice_asked.connect(self.navigation.notice_made)
        return opener

    def _connect(self) -> None:
        navigation = self.navigation
        navigation.inspector_asked.connect(self.show_inspector)
        navigation.option_asked.connect(self._show_option)
        navigation.options_asked.connect(self._show_options)
        navigation.command_asked.connect(self.show_command)
        self.inspector.close_asked.connect(self.area.toggle_inspector)
        self.page.first_start_shown.connect(self._show_first_start)
        bind_field(self, self.services.chat_list.state, _has_chats, lambda _has: self._place_sidebar())
        self.page.picker_asked.connect(navigation.picker_asked)
        self.page.offers_asked.connect(lambda: navigation.models_tab_asked.emit("pc"))
        self.page.model_asked.connect(navigation.model_file_asked)
        self.page.mmproj_asked.connect(navigation.mmproj_file_asked)
        for text_shown in (self.page.banner.content_shown, self.page.composer.notice_changed, self.offer.announced):
            text_shown.connect(navigation.announced)
        for failed in (self.transfer.failed, self._store_notices.failed):
            failed.connect(navigation.error_found)
        self.transfer.recovered.connect(self.page.withdraw_report)
        self._store_notices.notice_asked.connect(navigation.notice_made)
        self.page.branched.connect(
            lambda: self.page.composer.show_remark(tr("Branch created. You're in the new chat now."))
        )
        strip = self.page.composer.pasted_strip
        strip.shown.connect(navigation.announced)
        strip.command_asked.connect(navigation.command_asked)
        strip.model_asked.connect(navigation.model_search_asked)
        attachments = self.page.composer.attachments
        attachments.changed.connect(
            lambda: self.services.warmer.show_files(attachments.pictures, attachments.documents)
        )
        intents, warmer = self.page.thread_view.intents, self.services.warmer
        intents.edit_begun.connect(warmer.show_edit)
        intents.edit_ended.connect(lambda: warmer.show_edit(None))
        bind(self, self.services.warmer.is_preparing, self.page.composer.preparing.show_preparing)
        self.page.composer.save_preset_asked.connect(self._name_preset)
        self.page.context_notices.length_asked.connect(self._show_context_length)

    def show_command(self, text: str = "") -> None:
        """Open the dialog that shows what a command of another program means here."""
        if self._command_dialog is None:
            from qwendesk.engines.view.load_options.command_dialog import CommandDialog  # noqa: PLC0415

            commands = self._load_services.commands
            self._command_dialog = dialog = CommandDialog(commands, self.navigation, self.page.window())
            dialog.answer_options_pasted.connect(self._take_options)
            dialog.applied.connect(self.page.composer.pasted_strip.remove)
        self._command_dialog.show_text(text)

    def _take_options(self, values: dict[str, Any]) -> None:
        from qwendesk.chat.view.inspector.sampling_tab import set_pasted_options  # noqa: PLC0415

        try:
            set_pasted_options(self.services.chat, values)
        except QwenDeskError as error:
            self.navigation.error_found.emit(error.title, error.sentence)

    def _show_first_start(self, is_shown: bool) -> None:
        if is_shown != self._is_first_start:
            self._is_first_start = is_shown
            self._place_sidebar()

    def _place_sidebar(self) -> None:
        """A newcomer sees no list of chats before there is one."""
        has_chats = _has_chats(self.services.chat_list.state.value)
        self.area.set_sidebar_needed(has_chats or not self._is_first_start)

    def show_inspector(self, tab: Tab) -> None:
        self.inspector.show_tab(tab)
        self._show_page()
        self.area.show_inspector()

    def _show_option(self, key: str) -> None:
        self.show_inspector("load")
        self.load_tab.when_built(lambda tab: tab.focus_option(key))

    def _show_options(self, options: LoadOptions) -> None:
        self._tasks.start(self._load_services.pending_load.prepare(options))
        self.show_inspector("load")

    def _show_page(self) -> None:
        self.navigation.page_asked.emit("chat")

    def _show_system_prompt(self) -> None:
        self.navigation.inspector_asked.emit("system")

    def _show_context_length(self) -> None:
        self.navigation.option_asked.emit("n_ctx")

    def _show_all_options(self) -> None:
        self.show_inspector("load")
        self.load_tab.when_built(lambda tab: tab.show_options())

    def _connect_tools(self, tools: ChatToolServices) -> None:
        """Offer the tools; those that may be impossible on this PC are tried when that must be known."""
        toolbox, page = tools.toolbox, self.page
        picker, actions = page.tool_picker, page.call_actions
        picker.obstacles_asked.connect(lambda: self._tasks.start(toolbox.find_obstacles()))
        actions.set_edits(tools.edits)
        self.sources.set_reader(read_source, read_page)
        page.ask_for_consent(toolbox.waiting, toolbox.decide)
        page.show_progress(toolbox.progress)

        def show_tools(_change: object) -> None:
            picker.show_choices(toolbox.choices)
            actions.show_tools(toolbox.looks)

        self._read_folders(tools.folder_indexes)
        bind(picker, toolbox.obstacles, show_tools)
        bind(picker, toolbox.added, show_tools)

    def _read_folders(self, indexes: FolderIndexes) -> None:
        """Read the folders of the open chat in the background while a tool that searches them is on."""
        chat = self.services.chat

        def folders() -> tuple[str, ...]:
            return chat.settings.tool_folders if SEARCH in chat.settings.tools else ()

        def of_chat(state: ChatState) -> tuple[object, ...]:
            return state.chat_id, state.settings.tool_folders, SEARCH in state.settings.tools

        self.page.folders.follow(indexes.states, lambda: indexes.read_again(folders(), in_memory=chat.is_incognito))
        bind_field(
            self.page.folders,
            chat.state,
            of_chat,
            lambda _changed: indexes.attach(folders(), in_memory=chat.is_incognito),
        )

    def _name_preset(self) -> None:
        self.navigation.inspector_asked.emit("sampling")
        self.sampling.when_built(lambda tab: tab.presets.begin_naming())


def _has_chats(state: ChatListState) -> bool:
    return bool(state.summaries)
