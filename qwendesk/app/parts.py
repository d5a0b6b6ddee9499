"""The composition root of the window: makes the services, the bridges and the window, and ends them in order."""

import msgspec

from qwendesk.app.around_part import AroundPart, build_around
from qwendesk.app.chats_part import ChatList, ChatsPart
from qwendesk.app.engine_part import EnginePart, MakeClient, build_engine_page
from qwendesk.app.engines_part import build_engines
from qwendesk.app.help_part import HelpPart, build_help
from qwendesk.app.inspector_part import InspectorPart, build_inspector
from qwendesk.app.meters_part import MeterSource, MetersPart, build_meters
from qwendesk.app.models_part import ModelsPart, build_models
from qwendesk.app.prompt_part import build_prompt_part
from qwendesk.app.settings_part import SettingsPart, build_settings
from qwendesk.app.start_part import StartPart, build_start
from qwendesk.core.engines import EnginePack
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import EngineClient
from qwendesk.services.chat.keeping import StoreKeeper
from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.engines import EnginesService
from qwendesk.services.engine.measured import MeasuredLoads
from qwendesk.services.engine.planning import LoadPlanner
from qwendesk.services.engine.service import Decide, EngineService
from qwendesk.services.meters.answers import AnswerMeter, counted
from qwendesk.services.profiles import ProfilesService
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class Parts(msgspec.Struct):
    """What one window is made of."""

    window: MainWindow
    engine: EngineBridge
    chat: ChatBridge
    tasks: Tasks
    chats: ChatsPart
    models: ModelsPart
    settings: SettingsService
    settings_page: SettingsPart
    first: StartPart
    meters: MetersPart
    engine_page: EnginePart
    inspector: InspectorPart
    around: AroundPart
    help: HelpPart

    def start(self) -> None:
        """Begin what runs by itself: looking at disk and devices. Called once the window is shown."""
        self.chats.start()
        self.models.start()
        self.meters.start()
        self.settings_page.start()
        self.around.start()

    def begin(self) -> None:
        """Load the last model, or show the first start."""
        self.first.begin()

    async def close(self) -> None:
        """End the answer, the tasks and the worker; nothing runs afterwards."""
        self.window.hide()
        self.help.close()
        self.around.close()
        await self.chat.close()
        await self.tasks.close()
        await self.chats.close()
        await self.meters.close()
        await self.inspector.close()
        await self.engine_page.close()
        await self.first.close()
        self.settings_page.close()
        await self.models.close()
        await self.engine.close()
        self.window.deleteLater()


def build(
    client: EngineClient,
    keeper: ThemeKeeper,
    *,
    decide: Decide | None = None,
    meter_source: MeterSource | None = None,
    make_client: MakeClient | None = None,
    engines: EnginesService | None = None,
    settings: SettingsService | None = None,
    packs: tuple[EnginePack, ...] | None = None,
) -> Parts:
    """Services, bridges and the window, joined; nothing is loaded or shown yet. Needs a running event loop."""
    answers = AnswerMeter()
    client = counted(client, answers)
    settings, measured = settings or SettingsService(), MeasuredLoads()
    environment = engines.environment if engines is not None else dict
    planner = LoadPlanner(lambda: settings.options.reserve_gb, lambda: measured.drift, environment)
    engine_service = EngineService(client, decide=decide or planner.decide)
    tasks = Tasks()
    engine = EngineBridge(engine_service, tasks)
    chat_keeper = StoreKeeper()
    chat_list = ChatList(ChatService(client, engine_service, chat_keeper), chat_keeper)
    chat = ChatBridge(chat_list.chat, tasks)
    profiles = ProfilesService()
    models = build_models(keeper, tasks, settings, profiles, engine_service, engine)
    window = MainWindow(keeper, engine, chat, tasks)
    chats = ChatsPart(keeper, tasks, chat_list, chat, window)
    window.add_page("models", "model", tr("Models"), COMMANDS["page_models"].shortcut, models.page)
    source = meter_source or MeterSource()
    meters = build_meters(keeper, tasks, settings, engine_service, answers, window, source, measured)
    engine_list = None if engines is None else build_engines(
        keeper, tasks, engines, packs, settings, engine_service, engine, meters.bridge, models, chat_list.chat.stop
    )  # fmt: skip
    test_client = make_client or (engines.client if engines is not None else WorkerClient)
    engine_page = build_engine_page(
        keeper, tasks, engine, meters.bridge, window, test_client, engines, engine_list, decide
    )
    engine.changed.connect(lambda: engine_page.page.show_plan(planner.latest))
    meters.measuring.subscribe(engine_page.page.show_compared)
    settings_page = build_settings(keeper, tasks, settings, models, window)
    inspector = build_inspector(
        keeper, tasks, settings, profiles, engine_service, answers, measured, engines, chat_list.chat, chat, models,
        settings_page, engine_page, window,
    )  # fmt: skip
    build_prompt_part(keeper, tasks, client, engine_service, chat_list.chat, chat, window, inspector.open_prompt)
    first = build_start(keeper, tasks, settings, engine_service, engine, models, window, chat)
    chats.offer.shown.connect(first.strip.give_way)
    guide = build_help(keeper, window, models, first, meters)
    if engine_list is not None:
        engine_list.join_first_start(first.view)
        engine_list.view.help_asked.connect(lambda: guide.open("engine", "my-graphics-card-is-not-used"))
    return Parts(
        window,
        engine,
        chat,
        tasks,
        chats,
        models,
        settings,
        settings_page,
        first,
        meters=meters,
        engine_page=engine_page,
        inspector=inspector,
        around=build_around(keeper, tasks, window, chats, settings_page, models),
        help=guide,
    )
