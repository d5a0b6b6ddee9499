"""App: builds the services of all features, for the window and the command line. No Qt."""

import asyncio
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec

import qwendesk
from qwendesk.chat.chat_services import ChatServices
from qwendesk.chat.state_files import StateFiles
from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.observed import Observed
from qwendesk.core.owner import Owner
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import BenchClient, EngineClient
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engines.command_preview import CommandService
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.idle_unload import IdleUnload
from qwendesk.engines.load_decision import Decide, facts_for
from qwendesk.engines.load_decision import decide as decide_by_header
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.measurements import DraftSpeedups, Measurements
from qwendesk.engines.outgrown_service import OutgrownService
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.engines.services import InstalledEngines
from qwendesk.games.service import GameMode, GameSources, sources_of_this_pc
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.mcp.server_config import server_list_file
from qwendesk.meters.services import MeterServices, MeterSource
from qwendesk.models.library_service import LibraryService
from qwendesk.models.services import ModelFiles, ModelServices
from qwendesk.remote.routed_client import RoutedClient
from qwendesk.remote.service import RemoteService
from qwendesk.settings.deletion import PrivacyService
from qwendesk.settings.profiles import ProfilesService
from qwendesk.settings.service import SettingsService
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.notes import NoteService, note_tools
from qwendesk.toolbox.service import ToolService, consents_file

if TYPE_CHECKING:
    from qwendesk.bench.bench_runs import BenchRuns
    from qwendesk.bench.pc_trial import PcTrial
    from qwendesk.bench.services import BenchServices
    from qwendesk.engines.self_test import SelfTest
    from qwendesk.help.app_updates import AppUpdates
    from qwendesk.mcp.service import McpService
    from qwendesk.server.service import ServerService
    from qwendesk.server.setups.service import SetupService
    from qwendesk.server.switch import ServerSwitch


class Doubles(msgspec.Struct, frozen=True):
    """Stand-ins for the engine, the hardware and other programs, in tests and screenshots. None is the real thing."""

    packs: tuple[EnginePack, ...] | None = None
    make_client: Callable[[], EngineClient] | None = None
    """Makes the client of the self-test."""
    make_bench_client: Callable[[], BenchClient] | None = None
    meters: MeterSource = MeterSource()
    games: GameSources | None = None
    pc_trial: "Callable[[BenchRuns], PcTrial] | None" = None


NO_DOUBLES = Doubles()


class App(Owner):
    """All services, built from top to bottom. They close in reverse order. Needs a running event loop."""

    def __init__(
        self,
        client: EngineClient,
        *,
        settings: SettingsService | None = None,
        engines: EngineChoiceService | None = None,
        decide: Decide | None = None,
        doubles: Doubles = NO_DOUBLES,
    ) -> None:
        """Nothing runs yet. Without `engines` there is no choice of engine. `decide` replaces the planner."""
        super().__init__()
        own = self.own
        self._decide, self._doubles = decide, doubles
        self._make_client = engines.client if engines is not None else WorkerClient

        # What later services tell earlier ones.
        self.snapshot = snapshot = Observed[Snapshot | None](None)
        self._addresses = addresses = Observed[tuple[str, ...]](())
        self.measuring = Observed("")
        """The name of the measurement that runs; "" while none does."""

        self.settings = settings = own(settings or SettingsService())
        self.profiles = own(ProfilesService())
        options = settings.state
        self.remote = own(RemoteService(options, addresses))
        self.answers = answers = AnswerMeter()
        self.client = client = RoutedClient(client, self.remote.client, answers)

        # The engine, and what it needs to load a model.
        headers = HeaderCache()
        read_files = partial(facts_for, read=headers.read_facts)
        measured = Measurements(snapshot, engines, speeds=doubles.meters.speeds, drafts=DraftSpeedups())
        dry_run = engines.dry_run if engines is not None else ask_engine
        self.planner = planner = LoadPlanner(options, measured, dry_run, read_files=read_files)
        files = own(ModelFiles(settings, self.profiles, LibraryService(headers=headers)))
        states = StateFiles(client, options)
        self.engine = engine = own(
            EngineService(
                client,
                decide=decide or planner.decide,
                check=decide or planner.check,
                read_files=read_files,
                options_for=files.load_options.options_for,
                with_saved_options=self.profiles.applied,
                before_unload=states.save_before_unload,
                until_idle=answers.wait_until_idle,
                reads_before_unload=decide is None,
            )
        )
        self.at_close(answers.subscribe(lambda stats: measured.note_answer(stats, engine.state)))
        self.idle_unload = own(IdleUnload(engine, settings))
        self.models = models = own(ModelServices(files, engine, measured))
        self.meters = own(
            MeterServices(
                engine, client, answers, measured, app=options, measuring=self.measuring, source=doubles.meters
            )
        )
        self.pending_load = own(
            PendingLoadService(
                engine,
                settings,
                self.profiles,
                measured=measured,
                ask=dry_run,
                idle=answers.wait_until_idle,
                base_repo=models.load_options.base_repo,
            )
        )
        self.commands = CommandService(self.pending_load, models.load_options.options_named)

        # Chats and their tools.
        self.folder_indexes = own(FolderIndexes())
        self.edits, self.notes = EditHistory(), own(NoteService())
        tools = (*builtin_tools(self.folder_indexes, self.edits, options), *note_tools(self.notes))
        self.toolbox = ToolService(tools, consents_file())
        if server_list_file().path.exists():
            _ = self.mcp  # its servers offer tools
        self.chat = own(ChatServices(client, engine, options, states=states, tools=self.toolbox, edits=self.edits))
        self.outgrown = own(OutgrownService(self.pending_load.state, self.chat.chat.options))

        # Other engines, measurements and trials.
        self.installed: InstalledEngines | None = None
        """None if the engine is given and there is no choice."""
        if engines is not None:
            network, stop = models.network.without_token, self.chat.chat.stop
            self.installed = own(
                InstalledEngines(engines, engine, settings, packs=doubles.packs, network=network, stop_answer=stop)
            )
            self.at_close(self.installed.subscribe_learned(models.offers.plan_again))
        self.game_mode = own(
            GameMode(
                engine,
                settings,
                doubles.games or sources_of_this_pc(self.meters.service.state, self.remote),
                chat=self.chat.chat,
                answers=answers,
            )
        )
        self.privacy = PrivacyService()
        self.app_updates = self._make_app_updates() if qwendesk.RELEASES else None
        """None as long as there is no release."""
        self._first_load: asyncio.Task[None] | None = None

    def begin_first_load(self) -> "asyncio.Task[None] | None":
        """Begin to load the last model, unless that was begun before, and return the task.

        Return None if there is no last model, or the settings don't want it at start.
        """
        last = self.models.last_model
        if self._first_load is None and (options := last.read()) and self.settings.options.load_last_model:
            self.engine.load_with_next_message(options)  # a message sent before the load begins starts it
            loading = last.load_at_start(options, self.game_mode.holds_first_load)
            self._first_load = asyncio.get_running_loop().create_task(loading)
        return self._first_load

    # What only some sessions use is imported and built when it is first needed, so that the window opens sooner.

    def _make_app_updates(self) -> "AppUpdates":
        from qwendesk.help.app_updates import AppUpdates  # noqa: PLC0415

        return self.own(AppUpdates(qwendesk.RELEASES, self.settings.state, self.models.network.without_token))

    @cached_property
    def mcp(self) -> "McpService":
        from qwendesk.mcp.service import McpService  # noqa: PLC0415
        from qwendesk.mcp.tools import join_servers  # noqa: PLC0415

        mcp = self.own(McpService(self.settings.state))
        self.at_close(join_servers(mcp, self.toolbox))
        return mcp

    @cached_property
    def self_test(self) -> "SelfTest":
        from qwendesk.chat.question_files import ask_in_new_chat  # noqa: PLC0415
        from qwendesk.engines.self_test import SelfTest  # noqa: PLC0415

        make_client = self._doubles.make_client or self._make_client
        return SelfTest(make_client, ask_in_new_chat, self._decide or decide_by_header)

    @cached_property
    def bench(self) -> "BenchServices":
        from qwendesk.bench.services import BenchServices  # noqa: PLC0415

        return self.own(
            BenchServices(
                self.engine,
                self.client,
                self.planner,
                make_client=self._doubles.make_bench_client or self._make_client,
                profiles=self.profiles,
                models=self.models,
                presets=self.chat.presets,
                decide=self._decide,
                running=self.measuring,
                make_pc_trial=self._doubles.pc_trial,
            )
        )

    @cached_property
    def server(self) -> "ServerService":
        from qwendesk.server.requests import n_waiting_clients  # noqa: PLC0415
        from qwendesk.server.served_models import ServedModels, named_models  # noqa: PLC0415
        from qwendesk.server.service import ServerService  # noqa: PLC0415

        models, options = self.models, self.settings.state
        served = ServedModels(
            self.engine,
            models.last_model.to_serve,
            named_models(models.library, options),
            obstacle=self._load_obstacle,
        )
        server = self.own(ServerService(self.client, served, addresses=self._addresses))
        self.at_close(server.requests.observed.subscribe_field(n_waiting_clients, self.outgrown.note_waiting))
        return server

    @cached_property
    def server_switch(self) -> "ServerSwitch":
        from qwendesk.server.switch import ServerSwitch  # noqa: PLC0415

        return ServerSwitch(self.server, self.settings)

    @cached_property
    def setups(self) -> "SetupService":
        from qwendesk.server.setups.service import SetupService  # noqa: PLC0415

        return self.own(SetupService(self.server.requests.observed))

    def _load_obstacle(self) -> str:
        """Return why no model may be loaded for another program now; "" if one may."""
        if self.chat.chat.busy:
            return "QwenDesk's window is answering with another model. Ask again when it has ended."
        if self.measuring.value:
            return "A measurement is running on this PC. Ask again when it has ended."
        if self.engine.state.questions_held or self.game_mode.state.value.status:
            return "A game or another program has the graphics card. Ask again when it has ended."
        return ""
