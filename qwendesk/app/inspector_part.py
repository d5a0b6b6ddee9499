"""Builds the inspector: the draft of the next load, the tabs, and the command on the engine page."""

import msgspec

from qwendesk.app.engine_part import EnginePart
from qwendesk.app.models_part import ModelsPart
from qwendesk.app.settings_part import SettingsPart
from qwendesk.core.options import LoadOptions
from qwendesk.engine.estimating import ask_engine
from qwendesk.engine.protocol import Estimated
from qwendesk.services.chat.library import PromptLibrary
from qwendesk.services.chat.presets import PresetsService
from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.draft import LoadDraft
from qwendesk.services.engine.engines import EnginesService
from qwendesk.services.engine.exact import Ask
from qwendesk.services.engine.measured import MeasuredLoads
from qwendesk.services.engine.service import EngineService
from qwendesk.services.meters.answers import AnswerMeter
from qwendesk.services.profiles import ProfilesService
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.draft import DraftBridge
from qwendesk.ui.bridges.presets import PresetsBridge
from qwendesk.ui.frame.actions import install
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.inspector.command_card import engine_card
from qwendesk.ui.inspector.inspector import Inspector
from qwendesk.ui.inspector.load_part import LoadPart
from qwendesk.ui.inspector.sampling_part import SamplingPart
from qwendesk.ui.inspector.system_part import SystemPart
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class InspectorPart(msgspec.Struct, weakref=True):
    window: MainWindow
    bridge: DraftBridge
    presets: PresetsBridge
    inspector: Inspector

    def open_prompt(self) -> None:
        """Show the system prompt of the open chat."""
        self.window.show_page("chat")
        self.inspector.show_tab("system")
        self.window.chat_room.show_inspector()

    async def close(self) -> None:
        self.presets.close()
        await self.bridge.close()


def build_inspector(
    keeper: ThemeKeeper,
    tasks: Tasks,
    settings: SettingsService,
    profiles: ProfilesService,
    engine: EngineService,
    answers: AnswerMeter,
    measured: MeasuredLoads,
    engines: EnginesService | None,
    chat_service: ChatService,
    chat: ChatBridge,
    models: ModelsPart,
    settings_page: SettingsPart,
    engine_page: EnginePart,
    window: MainWindow,
) -> InspectorPart:
    """Joined to the window, closed until it is asked for."""
    services = models.library.services

    async def base_repo(path: str) -> str:
        return services.loading.base_repo(await services.checks.catalog(), path)

    draft = LoadDraft(
        engine, settings, profiles,
        idle=answers.idle, drift=lambda: measured.drift, ask=_asking(engines), base_repo=base_repo,
    )  # fmt: skip
    bridge = DraftBridge(draft, tasks)
    load = LoadPart(keeper, bridge, settings_page.bridge, lambda: chat.options)
    load.model_asked.connect(window.choose_model)
    presets = PresetsBridge(PresetsService(chat_service), window)
    sampling = SamplingPart(keeper, chat, presets)
    bridge.changed.connect(sampling.show_model)
    inspector = Inspector(keeper, load, sampling, SystemPart(keeper, chat, PromptLibrary()))
    inspector.close_asked.connect(window.chat_room.toggle_inspector)
    window.chat_room.set_inspector(inspector)
    part = InspectorPart(window, bridge, presets, inspector)

    def toggle() -> None:
        window.show_page("chat")
        window.chat_room.toggle_inspector()

    install(window, {"inspector": toggle})
    _join_composer(window, inspector, sampling, presets)
    frame, card = engine_card(keeper)
    engine_page.page.add_card(frame)

    def show_command() -> None:
        card.show_draft(bridge.draft, chat.options)

    bridge.changed.connect(show_command)
    chat.options_changed.connect(show_command)
    chat.options_changed.connect(load.show_commands)
    show_command()
    return part


def _join_composer(window: MainWindow, inspector: Inspector, sampling: SamplingPart, presets: PresetsBridge) -> None:
    composer = window.chat_page.composer

    def keep_values() -> None:
        inspector.show_tab("sampling")
        window.chat_room.show_inspector()
        sampling.presets.begin_naming()

    def show_names() -> None:
        composer.show_presets(presets.names)

    composer.preset_chosen.connect(presets.use)
    composer.keep_asked.connect(keep_values)
    presets.changed.connect(show_names)
    show_names()


def _asking(engines: EnginesService | None) -> Ask:
    async def ask(options: LoadOptions) -> Estimated:
        return await ask_engine(options, environment=engines.environment() if engines is not None else None)

    return ask
