"""Builds the list of engines: on the Engine page, and where the first start offers one for the card of this PC."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from qwendesk.app.models_part import ModelsPart
from qwendesk.core.engines import Backend, EnginePack
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.services.engine.engines import EnginesService
from qwendesk.services.engine.pack_fit import fits, obstacle, packs_for, unserved
from qwendesk.services.engine.packs import PacksService, PackState, read_packs
from qwendesk.services.engine.service import EngineService
from qwendesk.services.engine.switching import EngineSwitch
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.engines import EnginesBridge
from qwendesk.ui.bridges.meters import MeterBridge
from qwendesk.ui.engine import row_texts
from qwendesk.ui.engine.engine_list import EngineList
from qwendesk.ui.engine.questions import ask_deletion, ask_when
from qwendesk.ui.engine.row_texts import PackLine
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.first_start import FirstStart


class EnginesPart(msgspec.Struct, weakref=True):
    """The engines of this PC, joined to their list. `first` is the first start's view, once it is there."""

    bridge: EnginesBridge
    engine: EngineBridge
    meters: MeterBridge
    view: EngineList
    own_place: str
    first: FirstStart | None = None

    def show(self) -> None:
        """Everything as it is now."""
        engines, wanted = self.bridge.engines, self.bridge.wanted
        lines = row_texts.engine_lines(engines, wanted, self.engine.state.devices)
        note = row_texts.note_text(engines, wanted, waits=self.bridge.waits)
        is_busy = bool(engines.trying) or self.bridge.waits
        best = row_texts.best_text(engines)
        self.view.show_engines(lines, best, note, is_best=not wanted, is_busy=is_busy)
        self.view.show_packs(self._pack_lines(), self._unserved_text())
        if self.first is not None:
            self.first.show_pack(next(iter(self._pack_lines()), None), self._trouble())

    def ask_use(self, name: str) -> None:
        """Change the engine, after a question if that would stop an answer."""
        if self.bridge.is_answering:
            ask_when(self.view, lambda at_once: self.bridge.use(name, at_once=at_once))
        else:
            self.bridge.use(name, at_once=True)

    def ask_delete(self, name: str) -> None:
        line = next((each for each in row_texts.engine_lines(self.bridge.engines, "") if each.name == name), None)
        if line is not None:
            can_fetch = any(state.pack.name == name for state in self.bridge.packs)
            ask_deletion(self.view, line, lambda: self.bridge.delete(name), can_fetch=can_fetch)

    def handle_pack(self, name: str, what: str) -> None:
        """One of the buttons of a pack."""
        actions: Mapping[str, Callable[[str], None]] = {
            "get": self.bridge.get,
            "online": self.bridge.get_online,
            "pause": self.bridge.pause,
            "discard": self.bridge.discard,
        }
        actions[what](name)

    def join_first_start(self, view: FirstStart) -> None:
        """Offer a pack there too, if one is for a card that no engine here can use."""
        self.first = view
        view.pack_asked.connect(self.handle_pack)
        self.show()

    async def close(self) -> None:
        await self.bridge.close()

    def _gpus(self) -> tuple[GpuReading, ...]:
        snapshot = self.meters.meters.snapshot
        return snapshot.gpus if snapshot is not None else ()

    def _to_fetch(self) -> tuple[PackState, ...]:
        """Packs for the cards of this PC that are not here, and those that were begun."""
        fitting = packs_for(self.bridge.packs, self._gpus())
        begun = (each for each in self.bridge.packs if each.is_running or each.done_bytes)
        return tuple(each for each in dict.fromkeys((*fitting, *begun)) if not each.is_here)

    def _pack_lines(self) -> tuple[PackLine, ...]:
        gpus = self._gpus()
        return tuple(row_texts.pack_line(each, obstacle(each.pack, gpus)) for each in self._to_fetch())

    def _unserved(self) -> tuple[GpuReading, ...]:
        current = self.bridge.engines.current
        return unserved(self._gpus(), self.engine.state.devices or (current.devices if current is not None else ()))

    def _trouble(self) -> str:
        """Why an engine that is here cannot use the card; "" if there is none for it."""
        cards = self._unserved()
        lines = row_texts.engine_lines(self.bridge.engines, "")
        backends: dict[str, Backend] = {trial.name: trial.backend for trial in self.bridge.engines.trials}
        told = (line for line in lines if line.sentence and any(fits(backends[line.name], card) for card in cards))
        return next((tr("{0}: {1}", line.title, line.sentence) for line in told), "")

    def _unserved_text(self) -> str:
        cards = self._unserved()
        if not cards or self._to_fetch() or self._trouble():
            return ""
        name = tr(" and ").join(gpu.name or str(gpu.vendor) for gpu in cards)
        build = "cuda" if any(gpu.vendor == "nvidia" for gpu in cards) else "vulkan"
        return tr(
            "{0} is in this PC, but no engine here can use it, and none for it is published yet. Until then: run "
            "QwenDesk from its source with ENGINE={1}, or put a folder with an engine into {2}.",
            name, build, self.own_place,
        )  # fmt: skip


def build_engines(
    keeper: ThemeKeeper,
    tasks: Tasks,
    engines: EnginesService,
    packs: tuple[EnginePack, ...] | None,
    settings: SettingsService,
    engine_service: EngineService,
    engine: EngineBridge,
    meters: MeterBridge,
    models: ModelsPart,
    stop_answer: Callable[[], Awaitable[None]],
) -> EnginesPart:
    """The list and what stands behind it. `packs` None: those that this version of the app knows."""
    known = read_packs() if packs is None else packs
    network = models.network
    service = PacksService(
        known, engines.package_version, network.without_token, folder=engines.own_place,
        limit_bytes_per_s=lambda: network.connection.limit_bytes_per_s,
    )  # fmt: skip
    switch = EngineSwitch(engines, service, engine_service, settings, stop_answer)
    bridge = EnginesBridge(engines, service, switch, tasks)
    view = EngineList(keeper)
    part = EnginesPart(bridge, engine, meters, view, str(engines.own_place))
    for signal in (bridge.changed, engine.changed, meters.changed):
        signal.connect(part.show)
    bridge.switched.connect(models.offers.look_again)
    bridge.folder_ready.connect(lambda folder: QDesktopServices.openUrl(QUrl.fromLocalFile(folder)))
    view.use_asked.connect(part.ask_use)
    view.try_asked.connect(bridge.try_again)
    view.delete_asked.connect(part.ask_delete)
    view.pack_asked.connect(part.handle_pack)
    view.folder_asked.connect(bridge.open_folder)
    part.show()
    return part
