"""The services for installed engines, for engine packs to download or add, and for switching engines."""

import os
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.observed import Subscribers
from qwendesk.core.owner import Owner
from qwendesk.engines.engine_choice import EngineChoice, EngineChoiceService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.engine_switch import EngineSwitch
from qwendesk.engines.gpu_engine import GpuEngine
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.packs import PacksService, read_packs
from qwendesk.hub.network import Network
from qwendesk.settings.service import SettingsService

if TYPE_CHECKING:
    from qwendesk.engines.engine_updates import EngineUpdates


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
        self._settings, self._network, self._is_metered = settings, network, False
        self._learned = Subscribers[None]()
        self.at_close(engines.observed.subscribe_field(_names, lambda _: self._learned.notify(None)))

    def subscribe_learned(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when another engine is here or known of, until the returned function is called."""
        return self._learned.add(lambda _: callback())

    def set_metered(self, is_metered: bool) -> None:
        """Set whether the connection is metered. Nothing is downloaded or asked automatically on such a connection."""
        self._is_metered = is_metered
        self.gpu_engine.set_metered(is_metered)

    @cached_property
    def updates(self) -> "EngineUpdates":
        """The search for other releases of llama.cpp. It is built when it is first needed."""
        from qwendesk.engines.engine_updates import EngineUpdates  # noqa: PLC0415

        updates = self.own(
            EngineUpdates(
                self.engines,
                self.installer,
                self.switch.add_pack_file,
                self._settings.state,
                self._network,
                is_metered=lambda: self._is_metered,
            )
        )
        self.at_close(updates.state.subscribe_field(lambda state: state.found, lambda _: self._learned.notify(None)))
        return updates


def _names(choice: EngineChoice) -> tuple[str, ...]:
    return tuple(trial.name for trial in choice.trials)
