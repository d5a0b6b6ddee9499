"""Parts: the window with all services and each feature's views.

The parts are built from top to bottom, and close in reverse order; all of them close even if one raises.
"""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QWidget

from qwendesk.app.desktop import build_desktop
from qwendesk.app.window.inspector import Inspector, Tab
from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.tray import missing_tray_remark
from qwendesk.bench.view.wiring import BenchView
from qwendesk.chat.chat_state import ChatEvent, PromptProcessed, TextAdded
from qwendesk.chat.reopen_guard import MayReopen, always
from qwendesk.chat.view.inspector.pasted_options import set_options
from qwendesk.chat.view.wiring import ChatToolServices, ChatView
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.core.owner import Owner
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.view.wiring import EnginesView
from qwendesk.games.view.wiring import GamesView
from qwendesk.help.view.app_updates import UpdatesSection
from qwendesk.help.view.wiring import GuideOpener
from qwendesk.mcp.view.servers_section import ServersSection
from qwendesk.meters.view.wiring import build_views as build_meter_views
from qwendesk.models.offers import unused_gpus
from qwendesk.models.view.picker_opener import PickerOpener
from qwendesk.models.view.wiring import build_models_view
from qwendesk.remote.view.wiring import RemoteView
from qwendesk.server.view.server_page import build_server_page
from qwendesk.server.view.wiring import ServeView
from qwendesk.services import NO_DOUBLES, App, Doubles
from qwendesk.settings.service import SettingsService
from qwendesk.settings.view.wiring import SettingsView
from qwendesk.toolbox.search_key import SearchKeyService
from qwendesk.toolbox.view.consents_section import ConsentsSection
from qwendesk.toolbox.view.notes_section import NotesSection
from qwendesk.toolbox.view.search_key_section import SearchKeySection
from qwendesk.widgets.actions import COMMANDS, ActionId, install
from qwendesk.widgets.bind import bind, bind_field, follow
from qwendesk.widgets.layouts import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tabbed_page import TabbedPage
from qwendesk.widgets.tasks import Tasks

_PAGE_COMMANDS: Mapping[str, ActionId] = {
    "models": "page_models",
    "engine": "page_engine",
    "bench": "page_bench",
    "server": "page_server",
    "settings": "page_settings",
}


class Parts(Owner):
    """The window with all its parts. Nothing is loaded or shown yet. Needs a running event loop."""

    def __init__(self, app: App) -> None:
        super().__init__()
        self.services, self.engine, self.chat = app, app.engine, app.chat.chat
        self.tasks, self.navigation = Tasks(), Navigation()
        navigation, closing = self.navigation, self._closing
        tools = ChatToolServices(app.toolbox, app.edits, app.folder_indexes)
        self.chats = ChatView(app.chat, tools, navigation)
        self.window = window = MainWindow(app.engine, self.chats)
        # The window closes among the last, because widgets still show changes while the services close.
        self.at_close(window.deleteLater, window.chat_page.thread_view.highlighter.close)
        self.own(app)
        navigation.page_asked.connect(window.show_page)
        navigation.notice_made.connect(window.add_notice)
        navigation.error_found.connect(window.report)
        navigation.announced.connect(window.announcer.announce)
        navigation.restart_asked.connect(window.restart)
        navigation.load_asked.connect(lambda options: self.tasks.start(app.engine.load(options)))

        self.models = build_models_view(app.models, closing)
        self.at_close(self.chats.switcher.save_position)
        self.meter_views = build_meter_views(app.meters, window.meter_bar, window)
        window.add_notice(self.meter_views.banner)
        self.engines_view = EnginesView(
            app.engine,
            app.planner,
            app.self_test,
            installed=app.installed,
            pending_load=app.pending_load,
            commands=app.commands,
            settings=app.settings,
            pc_trial=app.pc_trial,
            answer_options=self.chat.options,
            navigation=navigation,
        )
        self.bench_view = BenchView(app.bench, app.engine.observed, navigation)
        self.bench_view.setParent(window)
        self.games = GamesView(
            app.game_mode, app.settings.state, app.engine, meters=app.meters.service.state, navigation=navigation
        )
        self.games.setParent(window)
        self.help = GuideOpener(window, navigation)
        self.at_close(self.help.close)
        self._add_page("models", "model", tr("Models"), self.models.page)
        self._add_page("engine", "engine", tr("Engine"), self.engines_view.page)
        self._add_page("bench", "bench", tr("Bench"), self.bench_view.page)
        self._add_page("server", "server", tr("Server"), self._server_page())
        self.settings_view = self._settings_view()
        self._add_page("settings", "settings", tr("Settings"), self.settings_view.page)
        self.inspector = Inspector(self.engines_view.load_tab, self.chats.sampling, self.chats.system_prompt)
        self.chats.area.set_inspector(self.inspector)
        self.picker = PickerOpener(
            app.models,
            app.engine,
            app.remote,
            actions=self.models.actions,
            navigation=navigation,
            button=window.top_bar.model,
        )
        self.desktop = build_desktop(
            window, self.chats, app.settings, self.models, app.app_updates, self.engines_view, closing
        )
        self._connect_navigation()
        self._connect_engines()
        self._connect_models()
        self._connect_settings()
        self._connect_start()
        self.games.tray_text_changed.connect(self.desktop.tray.icon.setToolTip)
        self.games.start()
        # Registered last, so that the running answer and the window's coroutines end first: they use everything else.
        self.own(self.tasks)
        closing.push_async_callback(self.chat.stop)
        self.at_close(window.hide)

    def start(self, may_reopen: MayReopen = always) -> None:
        """Start the background work. Call this once the window is shown."""
        self.chats.start(may_reopen=may_reopen)
        self.models.start()
        self.services.meters.service.start()
        self.services.game_mode.start()
        if self.services.settings.options.serve:
            self.tasks.start(self.services.server_switch.follow_settings())
        self.desktop.start()

    def begin(self) -> None:
        """Load the last model, or show the first start. Get an engine for the GPU if there is a better one."""
        self.engines_view.begin()
        last = self.services.models.last_model.read()
        if last is not None and self.services.settings.options.load_last_model:
            self.engine.load_with_next_message(last)  # a message sent before the load begins starts it
            self.tasks.start(self._load_again(last))
            return
        if last is not None:
            self.tasks.start(self._prepare_again(last))
        self.tasks.start(self.services.models.first_start.update())
        self.window.chat_page.set_first_start(self.models.first_start)
        self.models.no_model_strip.begin()

    async def _load_again(self, last: LoadOptions) -> None:
        """Load the last model with its current profile, unless the user has chosen another model meanwhile.

        While a program runs that the user wants to have the memory, a model on this PC waits for its end.
        """
        options = await self.services.models.load_options.options_again(last)
        if self.engine.was_load_requested:
            return
        if is_served(options.model) or not await self.services.game_mode.holds_first_load():
            await self.engine.load(options)

    async def _prepare_again(self, last: LoadOptions) -> None:
        """Show the load options of the last model in the inspector, unless the user has chosen a model meanwhile."""
        options = await self.services.models.load_options.options_again(last)
        if self.services.pending_load.pending.requested is None:
            await self.services.pending_load.prepare(options)

    def _add_page(self, page: str, icon: str, label: str, widget: QWidget) -> None:
        self.window.add_page(page, icon, label, COMMANDS[_PAGE_COMMANDS[page]].shortcut, widget)

    def _server_page(self) -> LazyPage[TabbedPage]:
        """Return the Server page, which is built when it is first shown."""
        app, window = self.services, self.window
        remote = RemoteView(app.remote, app.engine.observed, self.navigation)
        serve = ServeView(app.server_switch, app.setups, app.settings.state)
        for view in (remote, serve):
            view.setParent(window)

        def report_problem(problem: str) -> None:
            if problem and window.page != "server":
                window.report(tr("The server didn't start"), problem)

        bind_field(window, app.server_switch.observed, lambda state: state.problem, report_problem)
        page = LazyPage(
            lambda: build_server_page(serve, remote, app.outgrown.state, self.engines_view.show_vllm_command)
        )
        self.navigation.servers_asked.connect(lambda: window.go_to("server"))
        self.navigation.servers_asked.connect(lambda: page.page().show_tab("engines"))
        return page

    def _settings_view(self) -> SettingsView:
        """Return the settings page with the cards of other features, built when it is first shown."""
        app, models = self.services, self.models
        updates = app.app_updates
        view = SettingsView(
            app.settings,
            app.privacy,
            models.make_folders_section,
            models.make_token_section,
            lambda: SearchKeySection(SearchKeyService()),
            lambda: ServersSection(app.mcp),
            self.games.make_section,
            lambda: NotesSection(app.notes),
            lambda: ConsentsSection(app.toolbox, app.chat.chat_list.title_of),
            lambda: UpdatesSection(updates) if updates is not None else None,
            remarks=lambda: missing_tray_remark(app.settings.options),
            navigation=self.navigation,
        )
        self.at_close(view.appearance.close)
        return view

    def _connect_navigation(self) -> None:
        """Connect what views ask for with the pages, and the commands that show them."""
        navigation, window, models = self.navigation, self.window, self.models
        navigation.settings_asked.connect(self.settings_view.open_at)
        navigation.models_tab_asked.connect(self._show_models_tab)
        navigation.model_search_asked.connect(lambda _text: window.show_page("models"))
        navigation.model_search_asked.connect(models.actions.search_asked)
        navigation.inspector_asked.connect(self._show_inspector)
        navigation.option_asked.connect(self._show_option)
        navigation.command_asked.connect(self.engines_view.show_command)
        navigation.help_asked.connect(self.help.open)
        navigation.model_asked.connect(lambda: self._open_picker(for_options=True))
        window.top_bar.picker_asked.connect(self._open_picker)
        window.chat_page.picker_asked.connect(self._open_picker)
        for asked in (window.top_bar.offers_asked, window.chat_page.offers_asked, models.no_model_strip.all_asked):
            asked.connect(lambda: self._show_models_tab("pc"))
        install(
            window,
            {
                "page_bench": lambda: window.go_to("bench"),
                "page_server": lambda: window.go_to("server"),
                "page_settings": lambda: window.go_to("settings"),
                "privacy": lambda: self.settings_view.open_at("privacy"),
                "downloads": lambda: self._show_models_tab("downloads"),
                "guide": self.help.open,
            },
        )

    def _show_models_tab(self, tab: str) -> None:
        self.window.show_page("models")
        self.models.page.show_tab(tab)

    def _show_inspector(self, tab: Tab) -> None:
        self.inspector.show_tab(tab)
        self.window.show_page("chat")
        self.chats.area.show_inspector()

    def _show_option(self, key: str) -> None:
        self._show_inspector("load")
        self.engines_view.load_tab.page().focus_option(key)

    def _open_picker(self, *, for_options: bool) -> None:
        picker = self.picker.open(for_options=for_options)
        picker.file_asked.connect(self.window.choose_model)
        picker.mmproj_asked.connect(self.window.choose_mmproj)

    def _connect_engines(self) -> None:
        """Connect the Engine page and the inspector with the chat and the meters."""
        app, view, page, window = self.services, self.engines_view, self.engines_view.page, self.window
        meters = app.meters.service.state
        window.seen.connect(app.meters.service.set_visible)
        install(window, {"test_engine": view.test, "copy_diagnostics": page.copy_all})
        bind_field(page, meters, lambda state: state.snapshot, view.show_snapshot)
        bind(page, app.outgrown.state, lambda step: page.show_next_step(step.sentence if step is not None else ""))
        bind(page, app.meters.comparer.comparisons, page.show_compared)
        bind_field(view, self.chat.state, lambda state: state.settings, lambda _settings: view.update_commands())
        view.answer_options_pasted.connect(self._take_options)
        view.command_applied.connect(lambda _text: self._show_inspector("load"))
        view.command_applied.connect(self.chats.page.composer.pasted_strip.remove)
        self.inspector.close_asked.connect(self.chats.area.toggle_inspector)
        presenter, first_start = view.presenter, self.models.first_start
        if presenter is not None:
            first_start.set_engine_offer(presenter.offer_row)
            presenter.offer_changed.connect(
                lambda is_shown, problem: first_start.show_engine_offer(is_shown=is_shown, trouble=problem)
            )
            # Closing the services changes the engine's state once more, when the first start is already deleted.
            self.at_close(presenter.offer_changed.disconnect)
            presenter.show_snapshot(meters.value.snapshot)
            presenter.list.help_asked.connect(self.help.open_graphics_help)
        if app.installed is not None:
            self.at_close(app.installed.switch.subscribe_switched(self._refresh_offers))

    def _refresh_offers(self, _engine: str) -> None:
        self.tasks.start(self.services.models.offers.refresh())

    def _take_options(self, values: dict[str, Any]) -> None:
        try:
            set_options(self.chat, values)
        except QwenDeskError as error:
            self.window.report(error.title, error.sentence)

    def _connect_models(self) -> None:
        """Connect the Models page with the window and the engine."""
        app, models, window, page = self.services, self.models, self.window, self.window.chat_page

        def show_engine(state: EngineState) -> None:
            models.my_models.show_loaded(state.report.options.model if state.report is not None else "")

        def show_count(count: int) -> None:
            window.rail.set_badge("models", str(count) if count else "", tr("Models, downloads: {0}", count))

        def show_options(options: LoadOptions) -> None:
            self.tasks.start(app.pending_load.prepare(options))
            self._show_inspector("load")

        window.seen.connect(models.watch.set_visible)
        models.actions.load_asked.connect(self.navigation.load_asked)
        models.actions.options_asked.connect(show_options)
        models.page.files_help_asked.connect(lambda: self.help.open("flagged-files", "what-the-states-mean"))
        self.meter_views.banner.help_asked.connect(lambda: self.help.open("spill"))
        bind(models.my_models, app.engine.observed, show_engine)
        bind_field(window.rail, app.models.downloads.state, lambda state: len(state.unfinished), show_count)
        last_model = app.models.last_model.last
        page.last_model_asked.connect(self._load_last_model)
        bind(page, last_model, lambda last: page.show_last_model(last.model if last is not None else ""))

    def _load_last_model(self) -> None:
        """Load the last model with its current profile."""
        last = self.services.models.last_model.last.value
        if last is not None:
            self.tasks.start(self._load_profiled(last))

    async def _load_profiled(self, last: LoadOptions) -> None:
        await self.engine.load(await self.services.models.load_options.options_again(last))

    def _connect_start(self) -> None:
        """Connect the first start, and the strip that offers a model while there is none."""
        app, chat, window = self.services, self.chat, self.window
        strip, first_start, offers = self.models.no_model_strip, self.models.first_start, app.models.offers.state
        meters = app.meters.service.state

        def on_chat_event(event: ChatEvent) -> None:
            if not isinstance(event, TextAdded | PromptProcessed):
                strip.set_has_messages(bool(chat.conversation.turns))

        def update_free_space() -> None:
            if first_start.isVisible() or strip.isVisible():
                self.tasks.start(app.models.first_start.update_free_space())

        def show_unused_gpus(_change: object) -> None:
            first_start.show_unused_gpus(unused_gpus(offers.value, meters.value.snapshot))

        window.chat_page.add_above(strip)
        window.activated.connect(update_free_space)
        first_start.shown.connect(update_free_space)
        first_start.demo_asked.connect(window.load_demo)
        first_start.files_asked.connect(lambda: self._show_models_tab("mine"))
        first_start.engine_help_asked.connect(self.help.open_graphics_help)
        self.chats.offer.shown.connect(strip.set_replaced)
        follow(strip, chat.subscribe, on_chat_event)
        bind(first_start, offers, show_unused_gpus)
        bind_field(first_start, meters, lambda state: state.snapshot, show_unused_gpus)

    def _connect_settings(self) -> None:
        """Report what is wrong with the settings, and end the app when everything is to be deleted."""
        settings, window, downloads_tab = self.services.settings, self.window, self.models.downloads_tab
        downloads_tab.settings_asked.connect(self.settings_view.open_at)
        downloads_tab.online_asked.connect(lambda: settings.change({"offline": False}))

        def report_problem(sentence: str) -> None:
            if sentence and window.page != "settings":
                window.report(tr("Settings not saved"), sentence)

        self.at_close(settings.problem.subscribe(report_problem))
        if settings.problem.value:
            window.report(tr("Settings not read"), settings.problem.value)
        self.at_close(
            self.services.privacy.state.subscribe_field(lambda state: state.deletion, lambda _request: window.end())
        )


def build(
    client: EngineClient,
    *,
    engines: EngineChoiceService | None = None,
    settings: SettingsService | None = None,
    decide: Decide | None = None,
    doubles: Doubles = NO_DOUBLES,
) -> Parts:
    """Build the services and the window."""
    return Parts(App(client, engines=engines, settings=settings, decide=decide, doubles=doubles))
