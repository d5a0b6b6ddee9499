"""The services for installed engines, for engine packs to download or add, and for switching engines."""

import os
from collections.abc import Awaitable, Callable

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.owner import Owner
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.engine_switch import EngineSwitch
from qwendesk.engines.gpu_engine import GpuEngine
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.packs import PacksService, read_packs
from qwendesk.hub.network import Network
from qwendesk.settings.service import SettingsService


class InstalledEngines(Owner):
    """The services of the window's choice of engine. `packs` None means the packs that this version knows."""

    def __init__(
        self,
        engines: EngineChoiceService,
        engine: EngineService,
        settings: SettingsService,
        *,
        packs: tuple[EnginePack, ...] | None,
        network: Callable[[], Network],
        stop_answer: Callable[[], Awaitable[None]],
    ) -> None:
        """`network` returns the current connection settings. `stop_answer` stops the answer in progress."""
        super().__init__()
        listed = read_packs() if packs is None else packs
        self.engines = engines
        self.packs = self.own(
            PacksService(listed, engines.package_version, network, folder=engines.user_folder, app=settings.state)
        )
        self.installer = PackInstaller(engines, listed)
        self.switch = EngineSwitch(engines, self.packs, engine, settings, stop_answer, self.installer)
        # run.cmd and make pass on which engine was asked for.
        self.gpu_engine = GpuEngine(engines, self.packs, self.switch, settings, os.environ.get("ENGINE", ""))
