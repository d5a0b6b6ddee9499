"""Builds the services of the engines feature for the window."""

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import msgspec

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.engine.contract import EngineClient
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.engine_switch import EngineSwitch
from qwendesk.engines.gpu_engine import GpuEngine
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.packs import PacksService, read_packs
from qwendesk.engines.self_test import AskQuestion, Diagnosis, SelfTest, examine
from qwendesk.hub.network import Network
from qwendesk.settings.service import SettingsService

AskWith = Callable[[EngineClient, EngineService], AskQuestion]
"""Returns a function that asks a question in a new chat with this engine."""


class InstalledEngines(msgspec.Struct):
    """The services for installed engines, for engine packs to download or add, and for switching engines."""

    engines: EngineChoiceService
    packs: PacksService
    installer: PackInstaller
    switch: EngineSwitch
    gpu_engine: GpuEngine


def build_installed(
    engines: EngineChoiceService,
    packs: tuple[EnginePack, ...] | None,
    engine: EngineService,
    settings: SettingsService,
    network: Callable[[], Network],
    limit_bytes_per_s: Callable[[], int],
    stop_answer: Callable[[], Awaitable[None]],
    closing: AsyncExitStack,
) -> InstalledEngines:
    """Build the services. `packs` None means the packs that this version of the app knows.

    `stop_answer` stops the answer in progress.
    """
    listed = read_packs() if packs is None else packs
    packs_service = PacksService(
        listed,
        engines.package_version,
        network,
        folder=engines.user_folder,
        limit_bytes_per_s=limit_bytes_per_s,
    )
    closing.push_async_callback(packs_service.close)
    installer = PackInstaller(engines, listed)
    switch = EngineSwitch(engines, packs_service, engine, settings, stop_answer, installer)
    # run.cmd and make pass on which engine was asked for.
    gpu_engine = GpuEngine(engines, packs_service, switch, settings, os.environ.get("ENGINE", ""))
    return InstalledEngines(engines, packs_service, installer, switch, gpu_engine)


def build_self_test(make_client: Callable[[], EngineClient], decide: Decide | None, ask_with: AskWith) -> SelfTest:
    """Return a self-test that starts a separate worker with `make_client`, so the loaded model stays loaded."""

    async def run() -> Diagnosis:
        client = make_client()
        engine = EngineService(client) if decide is None else EngineService(client, decide=decide)
        try:
            return await examine(client, engine, ask_with(client, engine))
        finally:
            await engine.close()

    return SelfTest(run)
