"""Parts: the window with all services and each feature's views.

The parts are built from top to bottom, and close in reverse order; all of them close even if one raises.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from qwendesk.app.desktop import DesktopIntegration
from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.tray import missing_tray_remark
from qwendesk.chat.chat_state import ChatEvent, PromptProcessed, TextAdded
from qwendesk.chat.reopen_guard import MayReopen, always
from qwendesk.chat.view.wiring import ChatToolServices, ChatView, LoadTabServices
from qwendesk.core.conversation import Answer
from qwendesk.core.owner import Owner
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.view.gpu_engine_notices import GpuEngineNotices
from qwendesk.games.view.game_notice import GameNotice
from qwendesk.help.view.guide_opener import GuideOpener
from qwendesk.meters.view.spill_banner import SpillBanner
from qwendesk.meters.why_text import OptionChange
from qwendesk.models.view.folder_watcher import build_library_watch
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.picker_opener import PickerOpener
from qwendesk.services import NO_DOUBLES, App, Doubles
from qwendesk.settings.service import SettingsService
from qwendesk.settings.view.appearance import AppearanceSync
from qwendesk.widgets.actions import COMMANDS, ActionId, install
from qwendesk.widgets.bind import bind, bind_field, follow
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import Tasks

if TYPE_CHECKING:
    from qwendesk.bench.view.bench_page import BenchPage
    from qwendesk.engines.view.engine_page import EnginePage
    from qwendesk.engines.view.engines_presenter import EnginesPresenter
    from qwendesk.models.view.first_start import FirstStart
    from qwendesk.models.view.models_page import ModelsPage
    from qwendesk.models.view.no_model_strip import NoModelStrip
    from qwendesk.server.switch import ServerSwitch
    from qwendesk.server.view.server_page import ServerPage
    from qwendesk.settings.view.settings_page import SettingsPage
    from qwendesk.widgets.rows.titled_card import TitledCard

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
        navigation = self.navigation
        self.chats = ChatView(
            app.chat,
            ChatToolServices(app.toolbox, app.edits, app.folder_indexes),
            LoadTabServices(app.pending_load, app.commands, app.settings),
            navigation,
        )
        intents = self.chats.page.thread_view.intents
        intents.speed_reason = app.meters.why.reason
        intents.why_asked.connect(navigation.why_asked)
        self.window = window = MainWindow(app.engine, self.chats, app.meters, navigation)
        # The window closes among the last, because widgets still show changes while the services close.
        self.at_close(window.deleteLater, window.chat_page.thread_view.highlighter.close)
        self.own(app)
        self.library_watch = build_library_watch(app.models.library, self._closing)
        self.at_close(self.chats.switcher.save_position)
        self.appearance = self.own(AppearanceSync(app.settings))
        self.help = self.own(GuideOpener(window, navigation))
        self.spill_banner = SpillBanner(app.meters, navigation)
        window.add_notice(self.spill_banner)

        # What is shown at once, or may be at any time.
        if app.installed is not None:
            self.gpu_engine_notices = GpuEngineNotices(window, app.installed, app.snapshot, navigation)
            self.at_close(app.installed.switch.subscribe_switched(self._refresh_offers))
        self.model_actions = ModelActions(app.models, navigation)
        self.picker = PickerOpener(
            app.models,
            app.engine,
            app.remote,
            actions=self.model_actions,
            navigation=navigation,
            button=window.top_bar.model,
        )
        self.game_notice = GameNotice(app.game_mode, app.settings.state, app.engine, navigation)
        self.game_notice.setParent(window)

        # The pages are imported and built when they are first shown, so that the window opens sooner.
        self.models_page = LazyPage(self._build_models_page)
        self.engine_page = LazyPage(self._build_engine_page)
        self.bench_page = LazyPage(self._build_bench_page)
        self.server_page = LazyPage(self._build_server_page)
        self.settings_page = LazyPage(self._build_settings_page)
        self._add_page("models", "model", tr("Models"), self.models_page)
        self._add_page("engine", "engine", tr("Engine"), self.engine_page)
        self._add_page("bench", "bench", tr("Bench"), self.bench_page)
        self._add_page("server", "server", tr("Server"), self.server_page)
        self._add_page("settings", "settings", tr("Settings"), self.settings_page)
        self.desktop = DesktopIntegration(app, window, self.chats)
        self.at_close(self.desktop.tray.close)
        self.game_notice.tray_text_changed.connect(self.desktop.tray.icon.setToolTip)
        self.game_notice.start()
        self._connect_pages()
        self._connect_models()
        self._connect_settings()
        # Registered last, so that the running answer and the window's coroutines end first: they use everything else.
        self.own(self.tasks)
        self._closing.push_async_callback(self.chat.stop)
        self.at_close(window.hide)

    def start(self, may_reopen: MayReopen = always) -> None:
        """Start the background work. Call this once the window is shown."""
        app = self.services
        self.chats.start(may_reopen=may_reopen)
        self.library_watch.start()
        app.models.start()
        self.tasks.start(app.models.offers.update())
        self.tasks.start(app.models.token.update())
        app.meters.service.start()
        app.game_mode.start()
        if app.settings.options.serve:
            self.tasks.start(self._server_switch.follow_settings())
        self.desktop.start()

    def begin(self) -> None:
        """Load the last model, or show the first start. Get an engine for the GPU if there is a better one."""
        app = self.services
        if app.installed is not None:
            self.gpu_engine_notices.begin()
        loading = app.begin_first_load()
        if loading is not None:
            self.tasks.own(loading)
            return
        last = app.models.last_model.last.value
        if last is not None:
            self.tasks.start(app.models.last_model.show_options(last, app.pending_load))
        self.tasks.start(app.models.first_start.update())
        self.window.chat_page.set_first_start(self.first_start)
        self.no_model_strip.begin()

    def _refresh_offers(self, _engine: str) -> None:
        self.tasks.start(self.services.models.offers.refresh())

    def _add_page(self, page: str, icon: str, label: str, widget: QWidget) -> None:
        self.window.add_page(page, icon, label, COMMANDS[_PAGE_COMMANDS[page]].shortcut, widget)

    @cached_property
    def engines(self) -> "EnginesPresenter | None":
        """The engines that the user can choose, and those to download; None if the engine is given."""
        from qwendesk.engines.view.engines_presenter import EnginesPresenter  # noqa: PLC0415

        app = self.services
        if app.installed is None:
            return None
        presenter = EnginesPresenter(app.installed, app.engine, app.snapshot, self.navigation)
        presenter.list.setParent(self.window)  # until the Engine page takes it, if that is ever shown
        presenter.list.hide()
        return presenter

    @cached_property
    def first_start(self) -> "FirstStart":
        """What the chat page shows while there is no model."""
        from qwendesk.models.view.first_start import FirstStart  # noqa: PLC0415

        app = self.services
        first_start = FirstStart(app.models, self.model_actions, lambda: self.engines, app.snapshot, self.navigation)

        def update_free_space() -> None:
            if first_start.isVisible() or self.no_model_strip.isVisible():
                first_start.update_free_space()

        self.window.activated.connect(update_free_space)
        return first_start

    @cached_property
    def no_model_strip(self) -> "NoModelStrip":
        """What offers a model above an old chat while there is none."""
        from qwendesk.models.view.no_model_strip import NoModelStrip  # noqa: PLC0415

        chat, offer = self.chat, self.chats.offer
        strip = NoModelStrip(self.services.models.first_start, self.navigation)

        def on_chat_event(event: ChatEvent) -> None:
            if not isinstance(event, TextAdded | PromptProcessed):
                strip.set_has_messages(bool(chat.conversation.turns))

        self.window.chat_page.add_above(strip)
        strip.set_has_messages(bool(chat.conversation.turns))
        strip.set_replaced(offer.is_shown)
        offer.shown.connect(strip.set_replaced)
        follow(strip, chat.subscribe, on_chat_event)
        return strip

    # The builders of the pages yield after each step: see `LazyPage`.

    def _build_models_page(self) -> "Iterator[ModelsPage | None]":
        from qwendesk.models.view.models_page import ModelsPage  # noqa: PLC0415

        yield None
        page = ModelsPage(self.services.models, self.model_actions, self.navigation)
        for _ in page.add_tabs():
            yield None
        yield page

    def _build_engine_page(self) -> "Iterator[EnginePage | None]":
        from qwendesk.engines.view.engine_page import EnginePage  # noqa: PLC0415
        from qwendesk.engines.view.engine_update_card import EngineUpdateCard  # noqa: PLC0415
        from qwendesk.meters.view.memory_picture import MemoryPicture  # noqa: PLC0415
        from qwendesk.meters.view.why_card import WhyCard  # noqa: PLC0415

        yield None
        app = self.services
        page = EnginePage(
            app.engine, app.planner, app.self_test, self.navigation, engines=self.engines, snapshot=app.snapshot
        )
        yield None
        compared = app.meters.comparer.comparisons
        page.add_command(app.pending_load, app.chat.options, app.outgrown.state, compared)
        meters = app.meters.service.state
        page.add_card(MemoryPicture(app.engine.observed, meters))
        yield None
        why = WhyCard(app.meters.why)
        why.change_asked.connect(self._change_options)
        page.add_card(why)
        if app.installed is not None:
            page.add_card(EngineUpdateCard(app.installed.updates, app.installed.switch))
        bind_field(page, meters, lambda state: state.spill is not None, page.show_spill)
        yield page

    def _build_bench_page(self) -> "Iterator[BenchPage | None]":
        from qwendesk.bench.view.bench_page import BenchPage  # noqa: PLC0415

        yield None
        yield BenchPage(self.services.bench, self.engine.observed, self.navigation)

    def _build_server_page(self) -> "Iterator[ServerPage | None]":
        from qwendesk.remote.view.engines_tab import EnginesTab  # noqa: PLC0415
        from qwendesk.server.view.server_page import ServerPage, ServeTab  # noqa: PLC0415

        yield None
        app, navigation = self.services, self.navigation
        engine = app.engine.observed
        page = ServerPage(app.outgrown.state, navigation)
        serve = ServeTab(self._server_switch, app.setups, app.settings.state, engine, navigation)
        yield None
        page.add_tab("serve", tr("Share this model"), serve)
        yield None
        page.add_tab("engines", tr("Other engines"), EnginesTab(app.remote, engine, navigation))
        yield page

    def _build_settings_page(self) -> "Iterator[SettingsPage | None]":
        from qwendesk.games.view.programs_section import ProgramsSection  # noqa: PLC0415
        from qwendesk.help.view.app_updates import UpdatesSection  # noqa: PLC0415
        from qwendesk.mcp.view.servers_section import ServersSection  # noqa: PLC0415
        from qwendesk.models.view.folders_section import FoldersSection  # noqa: PLC0415
        from qwendesk.models.view.token_section import TokenSection  # noqa: PLC0415
        from qwendesk.settings.view.settings_page import SettingsPage  # noqa: PLC0415
        from qwendesk.toolbox.search_key import SearchKeyService  # noqa: PLC0415
        from qwendesk.toolbox.view.settings_sections import (  # noqa: PLC0415
            ConsentsSection,
            NotesSection,
            SearchKeySection,
        )

        yield None
        app, models, meters = self.services, self.services.models, self.services.meters.service.state
        updates = app.app_updates
        cards: dict[str, tuple[Callable[[], TitledCard], ...]] = {
            "Models": (lambda: FoldersSection(models.library),),
            "Network": (lambda: TokenSection(models.token, models.network),),
            "Web search": (lambda: SearchKeySection(SearchKeyService()),),
            "Tools": (
                lambda: ServersSection(app.mcp),
                lambda: ConsentsSection(app.toolbox, app.chat.chat_list.title_of),
                lambda: NotesSection(app.notes),
            ),
            "Games": (lambda: ProgramsSection(app.game_mode, app.settings.state, app.engine.observed, meters),),
            "Updates": (lambda: UpdatesSection(updates),) if updates is not None else (),
        }
        page = SettingsPage(
            app.settings, app.privacy, cards, lambda: missing_tray_remark(app.settings.options), self.navigation
        )
        for _ in page.add_sections():
            yield page

    @cached_property
    def _server_switch(self) -> "ServerSwitch":
        """The local server, whose problems the window reports on other pages."""
        window, switch = self.window, self.services.server_switch

        def report_problem(problem: str) -> None:
            if problem and window.page != "server":
                window.report(tr("The server didn't start"), problem)

        bind_field(window, switch.observed, lambda state: state.problem, report_problem)
        return switch

    def _connect_pages(self) -> None:
        """Connect what views ask for with the pages."""
        navigation, window, meters = self.navigation, self.window, self.services.meters.service
        navigation.settings_asked.connect(self._show_settings)
        navigation.models_tab_asked.connect(self._show_models_tab)
        navigation.bench_section_asked.connect(self._show_bench_section)
        navigation.why_asked.connect(self._show_why)
        navigation.model_search_asked.connect(self._search_models)
        navigation.servers_asked.connect(self._show_servers)
        navigation.vllm_command_asked.connect(self._show_vllm_command)
        navigation.newer_engine_asked.connect(self._show_newer_engine)
        window.seen.connect(meters.set_visible)
        window.seen.connect(self.library_watch.set_visible)
        install(window, {"test_engine": self._test_engine, "copy_diagnostics": self._copy_diagnostics})

    def _show_settings(self, part: str) -> None:
        self.window.show_page("settings")
        self.settings_page.when_built(lambda page: page.open_at(part))

    def _show_models_tab(self, tab: str) -> None:
        self.window.show_page("models")
        self.models_page.when_built(lambda page: page.show_tab(tab))

    def _show_why(self, answer: Answer) -> None:
        self.services.meters.why.show(answer)
        self.window.go_to("engine")
        self.engine_page.when_built(lambda page: page.show_card("why"))

    def _change_options(self, change: OptionChange) -> None:
        """Set options of the loaded model, and show them where the model is reloaded with them."""
        pending = self.services.pending_load
        if change.load_options:
            pending.show_loaded()
            pending.change(change.load_options)
            self.navigation.option_asked.emit(next(iter(change.load_options)))
        else:
            self.navigation.inspector_asked.emit("sampling")

    def _show_bench_section(self, section: str) -> None:
        self.window.go_to("bench")
        self.bench_page.when_built(lambda page: page.show_section(section))

    def _search_models(self, text: str) -> None:
        self.window.show_page("models")
        self.models_page.when_built(lambda page: page.search(text))

    def _show_servers(self) -> None:
        self.window.go_to("server")
        self.server_page.when_built(lambda page: page.show_tab("engines"))

    def _show_vllm_command(self) -> None:
        self.window.show_page("engine")
        self.engine_page.when_built(lambda page: page.show_vllm_command())

    def _show_newer_engine(self) -> None:
        self.window.show_page("engine")
        self.engine_page.when_built(lambda page: page.show_card("engine.update"))

    def _test_engine(self) -> None:
        self.window.show_page("engine")
        self.engine_page.when_built(lambda page: page.test())

    def _copy_diagnostics(self) -> None:
        self.engine_page.when_built(lambda page: page.copy_all())

    def _connect_models(self) -> None:
        """Connect the last model, and the number of downloads on the rail."""
        app, window, page = self.services, self.window, self.window.chat_page
        last_model = app.models.last_model

        def show_count(count: int) -> None:
            window.rail.set_badge("models", str(count) if count else "", tr("Models, downloads: {0}", count))

        page.ask_before_interrupting(app.measuring)
        page.last_model_asked.connect(lambda: self.tasks.start(last_model.load()))
        bind(page, last_model.last, lambda last: page.show_last_model(last.model if last is not None else ""))
        bind_field(window.rail, app.models.downloads.state, lambda state: len(state.unfinished), show_count)

    def _connect_settings(self) -> None:
        """Report what is wrong with the settings, and end the app when everything is to be deleted."""
        settings, window = self.services.settings, self.window

        def report_problem(sentence: str) -> None:
            if sentence and window.page != "settings":
                window.report(tr("Settings not saved"), sentence)

        self.at_close(settings.problem.subscribe(report_problem))
        if settings.problem.value:
            window.report(tr("Settings not read"), settings.problem.value)
        deletions = self.services.privacy.state
        self.at_close(deletions.subscribe_field(lambda state: state.deletion, lambda _request: window.end()))


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
