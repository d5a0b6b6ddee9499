"""Builds the services of all features, for the window and the command line. No Qt.

When a service is built, it registers on an exit stack how it is closed. The services close in reverse order, and all
of them close even if one raises.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from qwendesk.bench.compare import CompareService
from qwendesk.bench.comparison import PresetChoice
from qwendesk.bench.published import published_speeds
from qwendesk.bench.quality import SCORING_BYTES
from qwendesk.bench.services import BenchServices, CompareChoices, build_bench_services
from qwendesk.chat.chat_services import ChatServices
from qwendesk.chat.question_files import answer_options, read_question
from qwendesk.chat.service import ChatService
from qwendesk.core import paths, releases
from qwendesk.core.conversation import Answer
from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.failures import LoadFailure
from qwendesk.core.json_file import JsonFile
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.stats import AnswerStats
from qwendesk.core.units import GIB
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import BenchClient, EngineClient
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engines.command_preview import CommandService
from qwendesk.engines.draft_speedups import DraftSpeedups, MeasuredOn
from qwendesk.engines.engine_choice import EngineChoice, EngineChoiceService, choose_engine, package_version
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.idle_unload import IdleUnload
from qwendesk.engines.load_decision import Decide, facts_for
from qwendesk.engines.load_measurements import MeasuredLoads
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.outgrown_service import OutgrownService
from qwendesk.engines.pc_trial.service import PcTrial
from qwendesk.engines.pending_load import PendingLoadService
from qwendesk.engines.self_test import AskQuestion, SelfTest
from qwendesk.engines.services import InstalledEngines, build_installed, build_self_test
from qwendesk.feature_joins import build_tune, model_choices, served_options, vram_pressure
from qwendesk.games.expert_move import experts_on_cpu
from qwendesk.games.service import GameMode, GameSources
from qwendesk.hardware.probes.full_screen import full_screen_program
from qwendesk.hardware.programs import running_programs, started_programs
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.help.app_updates import AppUpdates
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.mcp.service import McpService
from qwendesk.mcp_tools import join_servers
from qwendesk.meters.answer_meter import AnswerMeter, metered_client
from qwendesk.meters.measured_speeds import MeasuredSpeeds
from qwendesk.meters.services import MeterServices, MeterSource
from qwendesk.meters.services import build_services as build_meter_services
from qwendesk.remote.routed_client import RoutedClient
from qwendesk.remote.service import RemoteService
from qwendesk.server.requests import n_waiting_clients
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import ServerService
from qwendesk.server.setups.service import SetupService
from qwendesk.server.switch import ServerSwitch
from qwendesk.settings.privacy_service import PrivacyService
from qwendesk.settings.profiles import ProfilesService
from qwendesk.settings.service import SettingsService
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.note_tools import note_tools
from qwendesk.toolbox.notes import NoteService
from qwendesk.toolbox.service import Grants, ToolService

if TYPE_CHECKING:
    from qwendesk.models.library_service import LibraryService
    from qwendesk.models.services import ModelServices


class Services(msgspec.Struct):
    """The services of all features."""

    settings: SettingsService
    profiles: ProfilesService
    planner: LoadPlanner
    engine: EngineService
    installed: InstalledEngines | None
    """None if the engine is given and there is no choice."""
    self_test: SelfTest
    chat: ChatServices
    models: "ModelServices"
    meters: MeterServices
    pending_load: PendingLoadService
    commands: CommandService
    idle_unload: IdleUnload
    game_mode: GameMode
    privacy: PrivacyService
    pc_trial: PcTrial
    bench: BenchServices
    server: ServerService
    outgrown: OutgrownService
    server_switch: ServerSwitch
    setups: SetupService
    toolbox: ToolService
    notes: NoteService
    folder_indexes: FolderIndexes
    edits: EditHistory
    mcp: McpService
    remote: RemoteService
    app_updates: AppUpdates | None
    """None as long as there is no release."""


def build_services(
    client: EngineClient,
    closing: AsyncExitStack,
    *,
    settings: SettingsService | None = None,
    engines: EngineChoiceService | None = None,
    packs: tuple[EnginePack, ...] | None = None,
    decide: Decide | None = None,
    make_client: Callable[[], EngineClient] | None = None,
    make_bench_client: Callable[[], BenchClient] | None = None,
    meter_source: MeterSource | None = None,
    game_sources: GameSources | None = None,
    pc_trial: PcTrial | None = None,
) -> Services:
    """Build all services; nothing runs yet. Needs a running event loop.

    Without `engines` there is no choice of engine. `decide` replaces the planner. `make_client` starts the worker of
    the self-test. `game_sources` replaces what game mode sees of other programs. `pc_trial` replaces the trial of the
    engines and models of this PC.
    """
    # Imported here because the Hub's library takes half a second to import and some commands don't need it.
    from qwendesk.models.library_service import LibraryService  # noqa: PLC0415
    from qwendesk.models.services import build_model_services  # noqa: PLC0415

    answers = AnswerMeter()
    settings, measured, headers = settings or SettingsService(), MeasuredLoads(), HeaderCache()
    remote = RemoteService(lambda: settings.options.offline, lambda: server.state.addresses)
    closing.push_async_callback(remote.close)
    client = metered_client(RoutedClient(client, remote.client), answers)
    closing.push_async_callback(settings.close)
    environment = engines.environment if engines is not None else dict
    read_files = partial(facts_for, read=headers.read_facts)
    meter_source = meter_source or MeterSource()
    speeds = meter_source.speeds or MeasuredSpeeds()

    def readings() -> tuple[GpuReading, ...]:
        snapshot = meters.service.state.value.snapshot
        return snapshot.gpus if snapshot is not None else ()

    def measured_on() -> MeasuredOn:
        current = engines.engines.current if engines is not None else None
        name = current.name if current is not None else ""
        return MeasuredOn.of(f"{name} {package_version()}", engine.state.devices, readings())

    draft_speedups = DraftSpeedups(measured_on=measured_on)
    planner = LoadPlanner(
        lambda: settings.options.reserve_gb,
        lambda: measured.drift,
        environment,
        read_files=read_files,
        gpu_factor=lambda: speeds.gpu_factor,
        readings=readings,
        draft_speedup=draft_speedups.speedup,
    )
    engine = EngineService(
        client, decide=decide or planner.decide, check=decide or planner.check, read_files=read_files
    )
    engine.read_before_unload = None if decide else read_files
    closing.push_async_callback(engine.close)

    def note_speedup(stats: AnswerStats) -> None:
        report = engine.state.local_report
        if report is not None and stats.draft_speedup:
            draft_speedups.note(report.options, stats.draft_speedup)

    closing.callback(answers.subscribe(note_speedup))
    folder_indexes = FolderIndexes()
    closing.push_async_callback(folder_indexes.close)
    consents = JsonFile(paths.config_folder() / "tool_consents.json", Grants, Grants)
    edits = EditHistory()
    notes = NoteService()
    closing.push_async_callback(notes.close)
    toolbox = ToolService(
        (*builtin_tools(folder_indexes, edits, lambda: settings.options), *note_tools(notes)), consents
    )
    mcp = McpService(is_offline=lambda: settings.options.offline, proxy=lambda: settings.options.proxy)
    closing.push_async_callback(mcp.close)
    closing.callback(join_servers(mcp, toolbox))
    chat = ChatServices(
        client,
        engine,
        prepares_ahead=lambda: settings.options.prepare_ahead,
        state_bytes=lambda: settings.options.chat_states_gb * GIB,
        think_in_new_chats=lambda: settings.options.think_in_new_chats,
        tools=toolbox,
    )
    engine.before_unload = chat.states.save_before_unload
    engine.until_idle = answers.wait_until_idle

    async def forget_edits() -> None:
        """Forget what was kept of changes of files in chats that were deleted."""
        if chat.chat_list.state.value.is_loaded:
            await edits.keep_only(chat.chat_list.state.value.summaries)

    closing.push_async_callback(forget_edits)
    closing.push_async_callback(chat.close)
    profiles = ProfilesService()
    closing.push_async_callback(profiles.close)
    library = LibraryService(headers=headers)
    models = build_model_services(
        settings, profiles, engine, library, closing, speeds=speeds.by_file, gpu_factor=lambda: speeds.gpu_factor,
        readings=readings,
    )  # fmt: skip
    engine.options_for = models.load_options.options_for
    engine.with_saved_options = profiles.applied
    meters = build_meter_services(
        engine,
        answers,
        measured,
        closing,
        read_headers=engine.read_files,
        reserve_bytes=lambda: round(settings.options.reserve_gb * GIB),
        source=msgspec.structs.replace(meter_source, speeds=speeds),
    )
    installed = None
    if engines is not None:
        network = models.network
        installed = build_installed(
            engines,
            packs,
            engine,
            settings,
            network.without_token,
            lambda: network.connection.limit_bytes_per_s,
            chat.chat.stop,
            closing,
        )

    async def estimate(options: DecidedOptions) -> Estimated:
        return await ask_engine(options, environment=environment())

    pending_load = PendingLoadService(
        engine,
        settings,
        profiles,
        idle=answers.wait_until_idle,
        drift=lambda: measured.drift,
        ask=estimate,
        base_repo=models.load_options.base_repo,
        measured=speeds.in_short_chats,
        gpu_factor=lambda: speeds.gpu_factor,
        readings=readings,
    )
    closing.callback(speeds.by_file.subscribe(lambda _speeds: pending_load.show_measured()))
    closing.push_async_callback(pending_load.close)
    idle_unload = IdleUnload(engine, settings)
    closing.push_async_callback(idle_unload.close)
    game_mode = GameMode(
        engine,
        settings,
        game_sources
        or GameSources(
            running_programs, started_programs, full_screen_program, lambda: vram_pressure(meters.service.state.value)
        ),
        is_answering=lambda: chat.chat.busy or answers.is_answering,
        move_experts=lambda report: experts_on_cpu(report, engine.read_files),
    )
    closing.push_async_callback(game_mode.close)
    make_client = make_client or (engines.client if engines is not None else WorkerClient)
    self_test = build_self_test(make_client, decide, ask_in_new_chat)
    pc_trial = pc_trial or PcTrial(
        every_engine_tried,
        partial(library_models, library),
        reserve_bytes=lambda: round(settings.options.reserve_gb * GIB),
    )

    def find_published(options: LoadOptions) -> tuple[SpeedReport, ...]:
        files = read_files(options)
        if isinstance(files, LoadFailure):
            return ()
        return published_speeds(models.catalog.store.catalog, files[0], options.model, engine.state.devices)

    def decode_tok_s(options: LoadOptions) -> float:
        plan = planner.latest
        measured_here = speeds.by_file.value.get(PurePath(options.model).name)
        if measured_here is not None or plan is None or plan.options.model != options.model or plan.speed is None:
            return measured_here or 0.0
        return sum(plan.speed.start) / 2

    async def reload_if_loaded(model: str) -> None:
        report = engine.state.report
        if report is not None and report.options.model == model:
            await engine.reload()

    bench = build_bench_services(
        engine,
        make_bench_client or (engines.client if engines is not None else WorkerClient),
        decide or planner.check,
        decide or partial(planner.check, leave_bytes=SCORING_BYTES),
        find_published,
        decode_tok_s,
        partial(
            build_tune, profiles=profiles, planner=planner, read_files=read_files, reload=reload_if_loaded,
            reserve_bytes=lambda: round(settings.options.reserve_gb * GIB), closing=closing,
        ),
        lambda runs: CompareService(
            engine, client, runs, options_for=models.load_options.options_for, read_question=read_question,
            make_options=answer_options,
        ),
        CompareChoices(
            lambda: model_choices(library),
            lambda: tuple(PresetChoice(preset.name, preset.values) for preset in chat.presets.all),
        ),
    )  # fmt: skip

    async def model_to_serve() -> LoadOptions:
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        return models.last_model.last.value or models.last_model.read() or demo

    async def models_to_name() -> list[Path] | None:
        return await library_files(library) if settings.options.serve_any_model else None

    def load_obstacle() -> str:
        """Return why no model may be loaded for another program now; "" if one may."""
        if chat.chat.busy:
            return "QwenDesk's window is answering with another model. Ask again when it has ended."
        if bench.runs.running.value or pc_trial.state.value.is_running:
            return "A measurement is running on this PC. Ask again when it has ended."
        if engine.state.questions_held or game_mode.state.value.status:
            return "A game or another program has the graphics card. Ask again when it has ended."
        return ""

    server = ServerService(client, ServedModels(engine, model_to_serve, models_to_name, load_obstacle), served_options)
    closing.push_async_callback(server.stop)
    outgrown = OutgrownService(pending_load.state, chat.chat.options)
    closing.callback(outgrown.close)
    waiting = server.requests.observed.subscribe_field(n_waiting_clients, outgrown.note_waiting)
    closing.callback(waiting)
    setups = SetupService(server.requests.observed)
    closing.callback(setups.close)
    server_switch = ServerSwitch(server, lambda: settings.options, settings.change)
    app_updates = None
    if releases.RELEASES:
        app_updates = AppUpdates(releases.RELEASES, settings.state, models.network.without_token)
        closing.push_async_callback(app_updates.close)
    return Services(
        settings, profiles, planner, engine, installed, self_test, chat, models, meters, pending_load,
        CommandService(pending_load, models.load_options.options_named), idle_unload, game_mode,
        PrivacyService(), pc_trial, bench, server, outgrown, server_switch, setups, toolbox, notes,
        folder_indexes, edits, mcp, remote, app_updates,
    )  # fmt: skip


async def preferred_engine(*, try_all: bool = False) -> EngineChoiceService:
    """Return this PC's engines after choosing the one in the settings. `try_all` tries every engine."""
    return await choose_engine(SettingsService().options.engine, try_all=try_all)


async def preferred_client() -> EngineClient:
    """Return a client for the engine in the settings."""
    return (await preferred_engine()).client()


async def every_engine_tried() -> EngineChoice:
    """Return this PC's engines after trying each. The window's choice of engine doesn't change."""
    return (await preferred_engine(try_all=True)).engines


async def library_files(library: "LibraryService") -> list[Path]:
    """Return the models on this PC that have no known problem. Looks for them at the first call."""
    models = library.current.models if library.state.value.is_scanned else (await library.refresh()).models
    return [Path(model.path) for model in models if not model.problem]


async def library_models(library: "LibraryService") -> tuple[LoadOptions, ...]:
    """Scan the model folders and return how to load each model without a known problem, the largest first."""
    models = (model for model in (await library.refresh()).models if not model.problem and model.facts is not None)
    return tuple(
        LoadOptions(model=model.path, mmproj=model.mmproj.path if model.mmproj is not None else "")
        for model in sorted(models, key=lambda model: model.n_bytes, reverse=True)
    )


def ask_in_new_chat(client: EngineClient, engine: EngineService) -> AskQuestion:
    """Return a function that asks each question in a new chat."""

    async def ask(question: str, thinking: bool, pictures: Sequence[Path]) -> Answer:
        chat = ChatService(client, engine)
        chat.set_thinking(thinking)
        return (await chat.send(question, pictures)).answer

    return ask
