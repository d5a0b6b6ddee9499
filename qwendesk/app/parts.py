"""Builds the window with all services and each feature's widgets, and connects them.

When a part is built, it registers on an exit stack how it is closed. The parts close in reverse order, and all of them
close even if one raises.
"""

from contextlib import AsyncExitStack
from typing import Any

import msgspec

from qwendesk.app.desktop import DesktopIntegration, build_desktop
from qwendesk.app.last_model_offer import connect_last_model
from qwendesk.app.picker_opener import connect_picker
from qwendesk.app.server_page import add_server_page
from qwendesk.app.tool_parts import join_tools, make_consents_section
from qwendesk.app.window.inspector import Inspector, Tab
from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.tray import missing_tray_remark
from qwendesk.bench.view.wiring import BenchView
from qwendesk.chat.chat_state import ChatEvent, PromptProcessed, TextAdded
from qwendesk.chat.reopen_guard import MayReopen, always
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.inspector.pasted_options import set_options
from qwendesk.chat.view.wiring import ChatView
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.view.wiring import EnginesView
from qwendesk.games.rules import programs_on_gpus
from qwendesk.games.view.wiring import GamesView
from qwendesk.help.view.app_updates import UpdatesSection
from qwendesk.help.view.wiring import GuideOpener
from qwendesk.mcp.view.wiring import make_servers_section
from qwendesk.meters.service import MeterService
from qwendesk.meters.view.wiring import MeterViews
from qwendesk.meters.view.wiring import build_views as build_meter_views
from qwendesk.models.offers import unused_gpus
from qwendesk.models.view.wiring import ModelsView, build_models_view
from qwendesk.services import NO_DOUBLES, App, Doubles
from qwendesk.settings.service import SettingsService
from qwendesk.settings.view.wiring import SettingsView
from qwendesk.toolbox.search_key import SearchKeyService
from qwendesk.toolbox.view.notes_section import NotesSection
from qwendesk.toolbox.view.search_key_section import SearchKeySection
from qwendesk.widgets.actions import COMMANDS, install
from qwendesk.widgets.bind import bind, bind_field, follow
from qwendesk.widgets.tasks import Tasks, window_tasks


class Parts(msgspec.Struct):
    """The window with all its parts."""

    window: MainWindow
    engine: EngineService
    chat: ChatService
    tasks: Tasks
    chats: ChatView
    models: ModelsView
    settings_view: SettingsView
    meter_views: MeterViews
    engines_view: EnginesView
    bench_view: BenchView
    desktop: DesktopIntegration
    help: GuideOpener
    services: App
    closing: AsyncExitStack

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
        last = self.models.services.last_model.read()
        if last is not None and self.services.settings.options.load_last_model:
            self.engine.load_with_next_message(last)  # a message sent before the load begins starts it
            self.tasks.start(self._load_again(last))
            return
        if last is not None:
            self.tasks.start(self._prepare_again(last))
        self.tasks.start(self.models.services.first_start.update())
        self.window.chat_page.set_first_start(self.models.first_start)
        self.models.no_model_strip.begin()

    async def _load_again(self, last: LoadOptions) -> None:
        """Load the last model with its current profile, unless the user has chosen another model meanwhile.

        While a program runs that the user wants to have the memory, a model on this PC waits for its end.
        """
        options = await self.models.services.load_options.options_again(last)
        if self.engine.was_load_requested:
            return
        if is_served(options.model) or not await self.services.game_mode.holds_first_load():
            await self.engine.load(options)

    async def _prepare_again(self, last: LoadOptions) -> None:
        """Show the load options of the last model in the inspector, unless the user has chosen a model meanwhile."""
        options = await self.models.services.load_options.options_again(last)
        if self.services.pending_load.pending.requested is None:
            await self.services.pending_load.prepare(options)

    async def close(self) -> None:
        """Close everything that `build` created; nothing runs afterwards.

        An error does not keep the rest from being closed. The last one is raised at the end, with earlier ones as its
        context.
        """
        await self.closing.aclose()


def build(
    client: EngineClient,
    *,
    engines: EngineChoiceService | None = None,
    settings: SettingsService | None = None,
    decide: Decide | None = None,
    doubles: Doubles = NO_DOUBLES,
) -> Parts:
    """Build the services and the window; nothing is loaded or shown yet. Needs a running event loop."""
    closing = AsyncExitStack()
    services = App(client, settings=settings, engines=engines, decide=decide, doubles=doubles)
    tasks = Tasks()
    engine, chat, meters = services.engine, services.chat.chat, services.meters
    chats = ChatView(services.chat)
    join_tools(chats, services, tasks)
    window = MainWindow(engine, chats)
    # The window closes among the last, because widgets still show changes while the services close.
    closing.callback(window.deleteLater)
    closing.callback(window.chat_page.thread_view.highlighter.close)
    closing.push_async_callback(services.close)
    models = build_models_view(services.models, closing)
    window.seen.connect(models.watch.set_visible)
    closing.callback(chats.switcher.save_position)
    window.add_page("models", "model", tr("Models"), COMMANDS["page_models"].shortcut, models.page)
    meter_views = build_meter_views(meters, window.meter_bar, window)
    window.add_notice(meter_views.banner)
    window.seen.connect(meters.service.set_visible)
    engines_view = EnginesView(
        engine,
        services.planner,
        services.self_test,
        services.installed,
        services.pending_load,
        services.commands,
        services.settings,
        services.pc_trial,
        chat.options,
    )
    window.add_page("engine", "engine", tr("Engine"), COMMANDS["page_engine"].shortcut, engines_view.page)
    engines_view.page_asked.connect(lambda: window.show_page("engine"))
    install(window, {"test_engine": engines_view.test, "copy_diagnostics": engines_view.page.copy_all})
    bind_field(engines_view.page, meters.service.state, lambda state: state.snapshot, engines_view.show_snapshot)
    bind(
        engines_view.page,
        services.outgrown.state,
        lambda step: engines_view.page.show_next_step(step.sentence if step is not None else ""),
    )
    bind(engines_view.page, meters.comparer.comparisons, engines_view.page.show_compared)
    bench_view = _add_bench(services, window)
    show_servers = add_server_page(services, window, engines_view.show_vllm_command)
    games = GamesView(
        services.game_mode,
        services.settings.state,
        engine.observed,
        engine.question_waits,
        lambda: programs_on_gpus(meters.service.state.value),
    )
    settings_view = _add_settings(services, models, games, window, closing)
    bind_field(engines_view, chat.state, lambda state: state.settings, lambda _settings: engines_view.update_commands())
    _add_inspector(chats, engines_view, models, services, window)
    for search_asked in (engines_view.models_search_asked, chats.model_search_asked):
        search_asked.connect(lambda _text: window.show_page("models"))
        search_asked.connect(models.actions.search_asked)
    _join_models(models, window, engine, chat, engines_view)
    connect_picker(window, models, engine, engines_view, services.remote, show_servers)
    chats.offer.shown.connect(models.no_model_strip.set_replaced)

    def refresh_offers(_engine: str) -> None:
        tasks.start(services.models.offers.refresh())

    if services.installed is not None:
        closing.callback(services.installed.switch.subscribe_switched(refresh_offers))
    guide = GuideOpener(window)
    closing.callback(guide.close)
    guide.error_found.connect(window.report)
    meter_views.banner.help_asked.connect(lambda: guide.open("spill"))
    _join_help(guide, window, models, meters.service)
    presenter = engines_view.presenter
    if presenter is not None:
        models.first_start.set_engine_offer(presenter.offer_row)
        presenter.offer_changed.connect(
            lambda is_shown, problem: models.first_start.show_engine_offer(is_shown=is_shown, trouble=problem)
        )
        # Closing the services changes the engine's state once more, when the first start has already been deleted.
        closing.callback(presenter.offer_changed.disconnect)
        presenter.show_snapshot(meters.service.state.value.snapshot)
        presenter.list.help_asked.connect(guide.open_graphics_help)
    desktop = build_desktop(window, chats, services.settings, models, services.app_updates, engines_view, closing)
    _join_games(games, window, settings_view, desktop)
    # Registered last, so that the running answer and the window's coroutines end first: they use everything else.
    closing.push_async_callback(tasks.close)
    closing.push_async_callback(chat.stop)
    closing.callback(window.hide)
    return Parts(
        window,
        engine,
        chat,
        tasks,
        chats,
        models,
        settings_view,
        meter_views=meter_views,
        engines_view=engines_view,
        bench_view=bench_view,
        desktop=desktop,
        help=guide,
        services=services,
        closing=closing,
    )


def _add_settings(
    services: App, models: ModelsView, games: GamesView, window: MainWindow, closing: AsyncExitStack
) -> SettingsView:
    """Add the settings page to the bottom of the rail, and connect what leads to it."""
    settings, updates = services.settings, services.app_updates
    view = SettingsView(
        settings,
        services.privacy,
        models.make_folders_section,
        models.make_token_section,
        lambda: SearchKeySection(SearchKeyService()),
        lambda: make_servers_section(services.mcp),
        games.make_section,
        lambda: NotesSection(services.notes),
        lambda: make_consents_section(services),
        lambda: UpdatesSection(updates) if updates is not None else None,
        remarks=lambda: missing_tray_remark(settings.options),
    )
    closing.callback(view.appearance.close)
    window.add_page("settings", "settings", tr("Settings"), COMMANDS["page_settings"].shortcut, view.page)
    view.page_asked.connect(window.show_page)
    view.restart_asked.connect(window.restart)
    install(window, {"page_settings": lambda: window.go_to("settings"), "privacy": lambda: view.open_at("privacy")})
    models.downloads_tab.settings_asked.connect(view.open_at)
    models.downloads_tab.online_asked.connect(lambda: settings.change({"offline": False}))

    def report_problem(sentence: str) -> None:
        if sentence and window.page != "settings":
            window.report(tr("Settings not saved"), sentence)

    closing.callback(settings.problem.subscribe(report_problem))
    if settings.problem.value:
        window.report(tr("Settings not read"), settings.problem.value)
    closing.callback(
        services.privacy.state.subscribe_field(lambda state: state.deletion, lambda _request: window.end())
    )
    return view


def _add_bench(services: App, window: MainWindow) -> BenchView:
    """Add the Bench page, which is built when it is first shown."""
    view = BenchView(services.bench, services.engine.observed)
    view.setParent(window)
    view.failed.connect(window.report)
    window.add_page("bench", "bench", tr("Bench"), COMMANDS["page_bench"].shortcut, view.page)
    install(window, {"page_bench": lambda: window.go_to("bench")})
    return view


def _add_inspector(
    chats: ChatView, engines_view: EnginesView, models: ModelsView, services: App, window: MainWindow
) -> None:
    """Add the inspector, closed."""

    def show_inspector(tab: Tab) -> None:
        inspector.show_tab(tab)
        window.show_page("chat")
        chats.area.show_inspector()

    def show_context_length() -> None:
        show_inspector("load")
        engines_view.load_tab.page().focus_option("n_ctx")

    def show_options(options: LoadOptions) -> None:
        window_tasks().start(services.pending_load.prepare(options))
        show_inspector("load")

    def take_options(values: dict[str, Any]) -> None:
        try:
            set_options(chats.services.chat, values)
        except QwenDeskError as error:
            window.report(error.title, error.sentence)

    engines_view.answer_options_pasted.connect(take_options)
    engines_view.command_applied.connect(lambda _text: show_inspector("load"))
    engines_view.command_applied.connect(chats.page.composer.pasted_strip.remove)
    chats.command_asked.connect(engines_view.show_command)
    models.actions.options_asked.connect(show_options)
    inspector = Inspector(engines_view.load_tab, chats.sampling, chats.system_prompt)
    inspector.close_asked.connect(chats.area.toggle_inspector)
    chats.inspector_asked.connect(show_inspector)
    chats.context_length_asked.connect(show_context_length)
    chats.area.set_inspector(inspector)


def _join_models(
    models: ModelsView, window: MainWindow, engine: EngineService, chat: ChatService, engines_view: EnginesView
) -> None:
    """Connect the widgets of the models feature to the window, the engine and the chat."""

    def open_tab(tab: str) -> None:
        window.show_page("models")
        models.page.show_tab(tab)

    def show_engine(state: EngineState) -> None:
        models.my_models.show_loaded(state.report.options.model if state.report is not None else "")

    def on_chat_event(event: ChatEvent) -> None:
        if not isinstance(event, TextAdded | PromptProcessed):
            models.no_model_strip.set_has_messages(bool(chat.conversation.turns))

    def update_free_space() -> None:
        if models.first_start.isVisible() or models.no_model_strip.isVisible():
            window_tasks().start(models.services.first_start.update_free_space())

    def show_count(count: int) -> None:
        window.rail.set_badge("models", str(count) if count else "", tr("Models, downloads: {0}", count))

    window.chat_page.add_above(models.no_model_strip)
    window.activated.connect(update_free_space)
    models.first_start.shown.connect(update_free_space)
    models.first_start.demo_asked.connect(window.load_demo)
    models.first_start.files_asked.connect(lambda: open_tab("mine"))
    models.no_model_strip.all_asked.connect(lambda: open_tab("pc"))
    models.actions.load_asked.connect(lambda options: window_tasks().start(engine.load(options)))
    bind(models.my_models, engine.observed, show_engine)
    follow(models.no_model_strip, chat.subscribe, on_chat_event)
    bind_field(window.rail, models.services.downloads.state, lambda state: len(state.unfinished), show_count)
    install(window, {"downloads": lambda: open_tab("downloads")})
    connect_last_model(window, models.services, engine)


def _join_games(games: GamesView, window: MainWindow, settings_view: SettingsView, desktop: DesktopIntegration) -> None:
    """Show what game mode does."""
    games.setParent(window)
    games.notice_made.connect(window.add_notice)
    games.rules_asked.connect(lambda: settings_view.open_at("games"))
    games.tray_text_changed.connect(desktop.tray.icon.setToolTip)
    games.start()


def _join_help(guide: GuideOpener, window: MainWindow, models: ModelsView, meters: MeterService) -> None:
    """Connect the guide to its command and to the widgets that offer help."""

    def show_unused_gpus(_change: object) -> None:
        unused = unused_gpus(models.services.offers.state.value, meters.state.value.snapshot)
        models.first_start.show_unused_gpus(unused)

    install(window, {"guide": guide.open})
    models.page.files_help_asked.connect(lambda: guide.open("flagged-files", "what-the-states-mean"))
    models.first_start.engine_help_asked.connect(guide.open_graphics_help)
    bind(models.first_start, models.services.offers.state, show_unused_gpus)
    bind_field(models.first_start, meters.state, lambda state: state.snapshot, show_unused_gpus)
