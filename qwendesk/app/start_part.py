"""What happens when the window opens: the last model is loaded, or the first start is shown."""

import msgspec

from qwendesk.app.models_part import ModelsPart
from qwendesk.core.options import LoadOptions
from qwendesk.services.engine.idle import IdleEject
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.last_model import LastModel
from qwendesk.services.models.loading import Loading
from qwendesk.services.models.starting import StartService
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.start import StartBridge
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.first_start import FirstStart
from qwendesk.ui.models.no_model_strip import NoModelStrip


class StartPart(msgspec.Struct):
    """The first start, and the memory of the last model."""

    window: MainWindow
    engine: EngineBridge
    settings: SettingsService
    tasks: Tasks
    loading: Loading
    last_model: LastModel
    idle_eject: IdleEject
    bridge: StartBridge
    view: FirstStart
    strip: NoModelStrip

    def begin(self) -> None:
        """Load the last model if there is one and that is wanted; else show what this PC could run."""
        last = self.last_model.read() if self.settings.options.load_last_model else None
        if last is not None:
            self.tasks.start(self._load(last))
            return
        self.bridge.look()
        self.window.chat_page.set_first_start(self.view)
        self.strip.begin()

    async def _load(self, last: LoadOptions) -> None:
        """With the model's profile, which may have changed since; nothing if the person was quicker."""
        options = await self.loading.again(last)
        if not self.engine.was_asked:
            self.engine.load(options)

    async def close(self) -> None:
        self.last_model.close()
        await self.idle_eject.close()
        await self.bridge.close()
        self.view.deleteLater()


def build_start(
    keeper: ThemeKeeper,
    tasks: Tasks,
    settings: SettingsService,
    engine_service: EngineService,
    engine: EngineBridge,
    models: ModelsPart,
    window: MainWindow,
    chat: ChatBridge,
) -> StartPart:
    """The first start, joined to the page of models; nothing is shown or loaded before `begin`."""
    service = StartService(engine_service, models.models, models.offers_service, models.downloads)
    bridge = StartBridge(service, tasks)
    view = FirstStart(keeper, bridge, models.offers)
    strip = NoModelStrip(keeper, engine, chat, bridge)
    window.chat_page.add_above(strip)

    def open_files() -> None:
        window.show_page("models")
        models.page.show_tab("mine")

    def open_offers() -> None:
        window.show_page("models")
        models.page.show_tab("pc")

    def look_at_room() -> None:
        if view.isVisible() or strip.isVisible():
            bridge.look_at_room()

    window.activated.connect(look_at_room)
    view.shown.connect(bridge.look_at_room)
    strip.all_asked.connect(open_offers)
    view.demo_asked.connect(engine.load_demo)
    view.use_asked.connect(engine.load_model)
    view.files_asked.connect(open_files)
    return StartPart(
        window,
        engine,
        settings,
        tasks,
        models.library.services.loading,
        LastModel(engine_service),
        IdleEject(engine_service, settings),
        bridge,
        view,
        strip,
    )
